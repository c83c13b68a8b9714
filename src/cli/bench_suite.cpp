#include "cli/bench_suite.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/kernel_file.h"
#include "report/suite_picture.h"
#include "runtime/evaluate.h"
#include "runtime/device_data.h"
#include "runtime/measure.h"
#include "runtime/shared_library.h"
#include "runtime/signature.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The folder that holds bench/: here, or the source tree or installation that this program lies in.
fs::path root_folder() {
    std::error_code ignored;
    fs::path above = fs::current_path(ignored);
    if (fs::exists(above / "bench/suites", ignored)) return above;
    above = runtime::own_folder();
    for (int level = 0; level < 4 && !above.empty(); ++level, above = above.parent_path()) {
        for (const char* below : {".", "share/tilewright"}) {
            if (fs::exists(above / below / "bench/suites", ignored)) return above / below;
        }
    }
    return {};
}

std::string temporary_file(const char* purpose) {
    std::string path = (fs::temp_directory_path() / (std::string("tilewright-") + purpose + "-XXXXXX")).string();
    const int file = ::mkstemp(path.data());
    if (file < 0) return {};
    ::close(file);
    return path;
}

// What the torch process needs to know to make the tensors; empty and a problem when the case cannot be described.
json torch_case(const json& request, std::string& problem) {
    LoadedFile loaded;
    load_kernel_file(loaded, request["file"], request["constants"].get<lower::ConstValues>());
    if (!loaded.module) return problem = render_text(loaded.sink, loaded.sources), json();
    loaded.module->file = request["file"];
    auto signature = runtime::find_signature(*loaded.module, request.value("kernel", std::string()));
    if (!signature) return problem = signature.error().text(), json();
    auto sizes = runtime::size_values(*signature, request["sizes"].get<std::map<std::string, std::int64_t>>());
    if (!sizes) return problem = sizes.error().text(), json();
    auto scalars = runtime::scalar_values(*signature, request.value("scalars", json::object()).get<std::map<std::string, double>>(), request.value("seed", std::uint64_t{1}));
    if (!scalars) return problem = scalars.error().text(), json();
    const auto indices = runtime::index_tensors(signature->tensors, signature->computes, signature->kernels);
    json tensors = json::array(), values = json::object();
    for (std::size_t i = 0; i < signature->tensors.size(); ++i) {
        const ir::Tensor& t = signature->tensors[i];
        json dims = json::array();
        for (const ir::Expr& e : t.dims) dims.push_back(runtime::size_value(e, *sizes).value_or(0));
        tensors.push_back({{"name", t.name}, {"dtype", target::name(t.dtype)}, {"dims", dims}, {"output", t.is_output}, {"index", static_cast<bool>(indices[i])}});
    }
    for (std::size_t i = 0; i < scalars->size(); ++i) values[signature->scalars[i].name] = (*scalars)[i];
    json out = request;
    out["kernel"] = signature->name;
    out["tensors"] = tensors;
    out["scalars"] = values;
    return out;
}

std::string peer_name(const json& peer) {
    if (peer.is_string()) return peer;
    if (peer.contains("name")) return peer["name"];
    if (peer.contains("torch")) return "torch: " + peer["torch"].get<std::string>();
    std::string constants;
    for (const auto& [name, value] : peer.value("constants", json::object()).items()) constants += (constants.empty() ? "@" : ",") + name + "=" + value.dump();
    return peer.value("file", std::string("?")) + constants;
}

// Inputs that a function of bench/suite_inputs.py makes; false and a problem when it does not.
bool add_inputs(json& request, const json& listed, const fs::path& root, std::string& problem) {
    if (!listed.contains("inputs_from")) return true;
    const auto made = runtime::run_program_in_worker({"python3", (root / "bench/suite_inputs.py").string(), listed["inputs_from"], request["sizes"].dump(), listed.value("arguments", json::object()).dump()});
    json inputs = json::parse(made.answer, nullptr, false);
    if (made.end != runtime::WorkerEnd::finished || !inputs.is_object()) return problem = "its inputs could not be made: " + std::string(trim(made.words)) + " " + made.sentence(), false;
    request["inputs"] = std::move(inputs);
    return true;
}

json row_of(const json& request, const std::string& peer, const json& listed) {
    return {{"case", request["case"]}, {"file", request["file"]}, {"constants", request["constants"]}, {"sizes", request["sizes"]}, {"peer", peer}, {"notes", listed.value("notes", std::string())}};
}

void say(const json& row) {
    if (row.contains("ratio")) fmt::print("  {}: {:.2f} us; {} {:.2f} us; ratio {:.3f} [{:.3f}, {:.3f}]\n", row["case"].get<std::string>(), row["ours_us"].get<double>(), row["peer"].get<std::string>(), row["peer_us"].get<double>(),
                                          row["ratio"].get<double>(), row["interval"][0].get<double>(), row["interval"][1].get<double>());
    else fmt::print("  {}: {}: {}\n", row["case"].get<std::string>(), row.value("status", "not measured"), row.value("message", ""));
    std::fflush(stdout);
}

}  // namespace

json time_against_torch(const json& cases, double seconds_each) {
    json answers = json::array();
    for (std::size_t i = 0; i < cases.size(); ++i) answers.push_back({{"problem", "not reached"}});
    const fs::path root = root_folder();
    if (root.empty()) {
        for (json& a : answers) a["problem"] = "bench/torch_peer.py was not found; run this in the source tree";
        return answers;
    }
    const std::string file = temporary_file("cases"), out = temporary_file("torch");
    if (file.empty() || out.empty() || !write_file_atomically(file, cases.dump())) {
        for (json& a : answers) a["problem"] = "no temporary file can be made";
        return answers;
    }
    // The kernels are compiled and launched by this installation, whatever Python finds first.
    std::size_t next = 0;
    while (next < cases.size()) {
        runtime::WorkerLimits limits;
        limits.seconds = 30 + seconds_each * static_cast<double>(cases.size() - next);
        const runtime::GpuLock lock(0);
        const auto ran = runtime::run_program_in_worker({"python3", (root / "bench/torch_peer.py").string(), file, out, std::to_string(next)}, limits);
        std::size_t began = next;
        bool any = false;
        const auto text = read_file(out);
        for (const auto line : split_lines(text ? std::string_view(*text) : std::string_view())) {
            const json said = json::parse(line, nullptr, false);
            if (said.is_discarded()) continue;
            if (said.contains("began")) began = std::max(began, said["began"].get<std::size_t>()), any = true;
            if (said.contains("number")) answers[said["number"].get<std::size_t>()] = said, answers[said["number"].get<std::size_t>()].erase("number");
        }
        if (!any) {
            for (std::size_t i = next; i < cases.size(); ++i) answers[i]["problem"] = "torch did not start: " + std::string(trim(ran.words.substr(ran.words.size() > 400 ? ran.words.size() - 400 : 0))) + " (" + ran.sentence() + ")";
            break;
        }
        if (answers[began].value("problem", std::string()) == "not reached") answers[began]["problem"] = "the process " + ran.sentence();
        if (ran.end == runtime::WorkerEnd::finished) break;
        next = began + 1;
    }
    std::error_code ignored;
    fs::remove(file, ignored);
    fs::remove(out, ignored);
    return answers;
}

int run_suite(const SuiteOptions& o) {
    const fs::path root = root_folder();
    fs::path path = o.name;
    if (path.extension() != ".json") path = root / "bench/suites" / (o.name + ".json");
    const auto text = read_file(path);
    if (!text) return complain(exit_bad_input, text.error(), "suites are bench/suites/*.json: gemm, attention, grouped, memory");
    const json suite = json::parse(*text, nullptr, false);
    if (!suite.is_object() || !suite.contains("cases") || !suite["cases"].is_array()) return complain(exit_bad_input, path.string() + " is not a suite: {\"cases\": [...]}");
    try {
        return run_cases(suite, o);
    } catch (const json::exception& e) {
        return complain(exit_bad_input, path.string() + " is not as bench/suites/README.md says: " + e.what());
    }
}

int draw_suite(const std::string& file, const std::string& svg_out) {
    const auto text = read_file(file);
    if (!text) return complain(exit_bad_input, text.error(), "name a file that `tilewright bench --suite NAME --json FILE` wrote");
    json result = json::parse(*text, nullptr, false);
    if (!result.is_object() || !result.contains("cases") || !result["cases"].is_array()) return complain(exit_bad_input, file + " is not a suite's result: {\"cases\": [...], \"versions\": {...}}");
    if (!result.contains("suite")) result["suite"] = fs::path(file).stem().string();
    try {
        const std::string picture = report::suite_picture(result);
        if (svg_out.empty()) std::cout << picture;
        else if (auto written = write_file_atomically(svg_out, picture); !written) return complain(exit_bad_input, written.error());
    } catch (const json::exception& e) {
        return complain(exit_bad_input, file + " is not a suite's result: " + e.what());
    }
    return exit_fine;
}

int run_cases(const json& suite, const SuiteOptions& o) {
    const fs::path root = root_folder();
    runtime::SessionLimits limits;
    limits.seconds = o.timeout;
    runtime::EvaluationSession session(limits);
    json rows = json::array(), torch_cases = json::array(), versions = json::object();
    std::vector<json> torch_rows;
    int worst = exit_fine;
    for (const json& listed : suite["cases"]) {
        if (!listed.is_object() || !listed.contains("case") || !listed.contains("file") || !listed.contains("sizes")) return complain(exit_bad_input, "a case lacks \"case\", \"file\" or \"sizes\": " + listed.dump().substr(0, 200));
        if (!o.only.empty() && listed["case"].get<std::string>().find(o.only) == std::string::npos) continue;
        json request = {{"case", listed["case"]}, {"time", true}, {"rounds", o.rounds}, {"heuristics", o.heuristics}, {"timeout_s", o.timeout}, {"constants", listed.value("constants", json::object())},
                        {"sizes", listed["sizes"]}, {"scalars", listed.value("scalars", json::object())}, {"l2", listed.value("l2", std::string("cold"))}, {"seed", listed.value("seed", 1)}};
        std::error_code ignored;
        const std::string file = listed["file"];
        request["file"] = fs::exists(file, ignored) ? file : (root / file).string();
        if (listed.contains("kernel")) request["kernel"] = listed["kernel"];
        if (listed.contains("tolerance")) request["tolerance"] = listed["tolerance"];
        std::string problem;
        json peers = listed.value("peers", json::array());
        const bool has_inputs = add_inputs(request, listed, root, problem);
        // One evaluation with each peer that lies in this program; with none, ours alone, so that torch rows know it is right.
        json first;
        json inside = json::array();
        for (const json& p : peers) {
            if (!p.is_object() || !p.contains("torch")) inside.push_back(p);
        }
        if (inside.empty()) inside.push_back(nullptr);
        for (const json& p : inside) {
            json row = row_of(request, p.is_null() ? "" : peer_name(p), listed);
            json asked = request;
            if (p.is_string()) asked["against"] = {{"peer", p}};
            else if (p.is_object()) {
                asked["against"] = p;
                const std::string other = p.value("file", file);
                asked["against"]["file"] = fs::exists(other, ignored) ? other : (root / other).string();
                if (!p.contains("kernel") && listed.contains("kernel")) asked["against"]["kernel"] = listed["kernel"];
            } else asked["time"] = peers.empty();
            const json evidence = has_inputs ? session.evaluate(asked) : json{{"status", "refused"}, {"message", problem}};
            if (first.is_null()) first = evidence;
            worst = std::max(worst, runtime::exit_status_of(evidence));
            row["status"] = evidence["status"];
            for (const char* field : {"message", "roofline", "resources", "work"}) {
                if (evidence.contains(field)) row[field] = evidence[field];
            }
            if (evidence.contains("check")) row["outputs"] = evidence["check"]["outputs"];
            if (evidence.contains("versions")) versions.update(evidence["versions"]);
            if (evidence.contains("us")) {
                row["ours_us"] = evidence["us"];
                row["ours_interval"] = evidence["timing"]["interval"];
                row["l2"] = evidence["timing"]["l2"];
                row["clocks"] = evidence["timing"]["clocks"]["after"];
            }
            if (evidence.contains("ratio")) {
                row["peer_us"] = evidence["peer"]["us"];
                row["ratio"] = evidence["ratio"];
                row["interval"] = evidence["ratio_interval"];
                if (evidence["peer"].contains("algorithm")) row["peer_algorithm"] = evidence["peer"]["algorithm"];
                row["peer_right"] = evidence["peer"]["right"];
            }
            if (p.is_null() && !peers.empty()) continue;   // only the check: the torch rows carry it
            say(row);
            rows.push_back(std::move(row));
        }
        for (const json& p : peers) {
            if (!p.is_object() || !p.contains("torch")) continue;
            json row = row_of(request, peer_name(p), listed);
            row["status"] = first["status"];
            if (first.contains("check")) row["outputs"] = first["check"]["outputs"];
            for (const char* field : {"message", "resources", "work"}) {
                if (first.contains(field)) row[field] = first[field];
            }
            json described = torch_case(request, problem);
            if (described.is_null() || first["status"] != "right") {
                if (!row.contains("message")) row["message"] = problem;
                say(row);
                rows.push_back(std::move(row));
                continue;
            }
            for (const char* field : {"torch", "prelude", "setup"}) {
                if (p.contains(field)) described[field] = p[field];
            }
            torch_cases.push_back(std::move(described));
            torch_rows.push_back(std::move(row));
        }
    }
    if (!torch_cases.empty()) {
        const json answers = time_against_torch(torch_cases, o.timeout);
        for (std::size_t i = 0; i < answers.size(); ++i) {
            json row = torch_rows[i];
            if (answers[i].contains("versions")) versions.update(answers[i]["versions"]);
            if (answers[i].contains("problem")) row["message"] = answers[i]["problem"], row["status"] = "not measured";
            else row.update(answers[i]);
            row.erase("versions");
            say(row);
            rows.push_back(std::move(row));
        }
    }
    const json result = {{"suite", suite.value("suite", o.name)}, {"cases", rows}, {"versions", versions}, {"command", own_command()}};
    if (!o.json_out.empty() && !write_json(o.json_out, result)) return exit_bad_input;
    if (!o.svg_out.empty()) {
        if (auto written = write_file_atomically(o.svg_out, report::suite_picture(result)); !written) return complain(exit_bad_input, written.error());
    }
    if (rows.empty()) return complain(exit_bad_input, "no case was run", o.only.empty() ? "" : "no case's name contains '" + o.only + "'");
    return worst;
}

}  // namespace tw::cli
