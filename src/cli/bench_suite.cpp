#include "cli/bench_suite.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/evidence.h"
#include "report/suite_picture.h"
#include "runtime/evaluate.h"
#include "runtime/torch_peer.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

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

int run_suite(const SuiteOptions& o) {
    const fs::path root = runtime::bench_folder();
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
    const fs::path root = runtime::bench_folder();
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
            json described = runtime::torch_case(request, problem);
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
        const json answers = runtime::time_against_torch(torch_cases, o.timeout);
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
