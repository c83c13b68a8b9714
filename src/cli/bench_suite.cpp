#include "cli/bench_suite.h"
#include "cli/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iostream>
#include <set>
#include <thread>

#include "base/diagnostic.h"
#include "base/digest.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "codegen/emit.h"
#include "report/scaling_picture.h"
#include "report/suite_picture.h"
#include "runtime/evaluate.h"
#include "runtime/launch.h"
#include "runtime/signature.h"
#include "runtime/torch_peer.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::string peer_name(const json& peer) {
    if (peer == "cublaslt") return "cuBLASLt, autotuned";
    if (peer.is_string()) return peer;
    if (peer.contains("name")) return peer["name"];
    if (peer.contains("torch")) return "torch: " + peer["torch"].get<std::string>();
    std::string constants;
    for (const auto& [name, value] : peer.value("constants", json::object()).items())
        constants += (constants.empty() ? "@" : ",") + name + "=" + value.dump();
    return peer.value("file", std::string("?")) + constants;
}

// Inputs that a function of bench/suite_inputs.py makes; a problem when it does not.
void add_inputs(json& request, const json& listed, const fs::path& root, std::string& problem) {
    if (!listed.contains("inputs_from")) return;
    runtime::WorkerLimits limits;
    limits.box = runtime::box_for_checks();
    const auto made = runtime::run_program_in_worker({"python3", (root / "bench/suite_inputs.py").string(), listed["inputs_from"],
                                                      request["sizes"].dump(), listed.value("arguments", json::object()).dump()},
                                                     limits);
    json inputs = parse_json(made.answer);
    if (made.end != runtime::WorkerEnd::finished || !inputs.is_object())
        problem = "its inputs could not be made: " + std::string(trim(made.words)) + " " + made.sentence();
    else request["inputs"] = std::move(inputs);
}

// What a row was measured of: the CUDA text of every variant that the case may launch, its sizes and what its inputs are made of. Empty
// when there is no text.
std::string measured_digest(const json& request, const json& listed) {
    auto module = runtime::KernelModule::from_file(request["file"], request["constants"].get<lower::ConstValues>());
    if (!module) return "";
    const auto signature = runtime::find_signature((*module)->ir(), request.value("kernel", std::string()));
    if (!signature) return "";
    Digest digest;
    for (const ir::Kernel* kernel : signature->kernels) {
        const auto emitted = codegen::emit(*kernel, "");
        if (!emitted) return "";
        digest.add_field(codegen::without_comments(emitted->source));
    }
    for (const char* field : {"sizes", "scalars", "l2", "inputs_from", "arguments"}) digest.add_field(listed.value(field, json()).dump());
    return digest.hex().substr(0, 16);
}

json row_of(const json& request, const std::string& peer, const json& listed) {
    return {{"case", request["case"]},    {"file", listed["file"]}, {"constants", request["constants"]},
            {"sizes", request["sizes"]},  {"peer", peer},           {"notes", listed.value("notes", std::string())},
            {"digest", request["digest"]}};
}

void say(const json& row) {
    if (row.contains("ratio"))
        fmt::print("  {}: {:.2f} us; {} {:.2f} us; ratio {:.3f} [{:.3f}, {:.3f}]\n", row["case"].get<std::string>(),
                   row["ours_us"].get<double>(), row["peer"].get<std::string>(), row["peer_us"].get<double>(), row["ratio"].get<double>(),
                   row["interval"][0].get<double>(), row["interval"][1].get<double>());
    else fmt::print("  {}: {}: {}\n", row["case"].get<std::string>(), row.value("status", "not measured"), row.value("message", ""));
    std::fflush(stdout);
}

}  // namespace

int suite_with_engine(const SuiteOptions& o, const units::EngineOptions& engine) {
    // Suites hold Python for their peers: units name one of bench/, a folder cannot bring its own.
    if (o.name.find_first_of("/.") != std::string::npos)
        return complain(exit_bad_input, "--engine takes suites of bench/suites alone, not files", "gemm, attention, grouped, memory");
    const auto text = read_file(runtime::bench_folder() / "bench/suites" / (o.name + ".json"));
    const json suite = text ? parse_json(*text) : json();
    if (!text) return complain(exit_bad_input, text.error(), "suites are bench/suites/*.json: gemm, attention, grouped, memory");
    UnitsPlan plan;
    for (const json& listed : part_in(suite, "cases", json::array())) {
        const std::string name = text_in(listed, "case");
        if (name.empty() || (!o.only.empty() && name.find(o.only) == std::string::npos)) continue;
        plan.add(name, "bench",
                 {"--suite=" + o.name, "--case=" + name, fmt::format("--rounds={}", o.rounds), fmt::format("--heuristics={}", o.heuristics),
                  fmt::format("--timeout={}", o.timeout)});
    }
    plan.manifest.about = {{"suite", o.name}};
    return run_units(engine, std::move(plan), [&](const UnitResults& all) { return combine_bench(all, o.json_out); });
}

int combine_bench(const UnitResults& all, const std::string& path) {
    // Times of different GPUs do not stand in one table.
    std::map<std::string, json> by_gpu;
    int worst = exit_fine;
    for (const auto& r : all.results) {
        if (!r) continue;
        const json versions = part_in(*r, "versions", json::object());
        json& table = by_gpu[text_in(versions, "gpu", "no GPU")];
        if (table.is_null())
            table = {{"suite", text_in(all.manifest->about, "suite")},
                     {"cases", json::array()},
                     {"versions", versions},
                     {"command", all.manifest->command}};
        for (const json& row : part_in(*r, "cases", json::array()))
            if (row.is_object()) {
                const std::string status = text_in(row, "status");
                worst = std::max<int>(worst, status == "right" ? exit_fine : status == "no gpu" ? exit_not_measured : exit_kernel_wrong);
                table["cases"].push_back(row);
            }
    }
    for (const auto& [gpu, table] : by_gpu) fmt::print("{}: {} rows\n", printable(gpu), table["cases"].size());
    const json out = by_gpu.size() == 1 ? by_gpu.begin()->second : json{{"by_gpu", by_gpu}};
    if (!path.empty() && !write_json(path, out)) return exit_bad_input;
    return worst;
}

int run_suite(const SuiteOptions& o) {
    const fs::path root = runtime::bench_folder();
    fs::path path = o.name;
    if (path.extension() != ".json") path = root / "bench/suites" / (o.name + ".json");
    const auto text = read_file(path);
    if (!text) return complain(exit_bad_input, text.error(), "suites are bench/suites/*.json: gemm, attention, grouped, memory");
    const json suite = parse_json(*text);
    if (!suite.is_object() || !suite.contains("cases") || !suite["cases"].is_array())
        return complain(exit_bad_input, path.string() + " is not a suite: {\"cases\": [...]}");
    try {
        return run_cases(suite, o);
    } catch (const json::exception& e) {
        return complain(exit_bad_input, path.string() + " is not as bench/suites/README.md says: " + e.what());
    }
}

int draw_suite(const std::string& file, const std::string& svg_out) {
    const auto text = read_file(file);
    if (!text) return complain(exit_bad_input, text.error(), "name a file that `tilewright bench --suite NAME --json FILE` wrote");
    json result = parse_json(*text);
    const bool scaling = text_in(result, "schema") == "tilewright scaling 1";
    if (!scaling && (!result.is_object() || !result.contains("cases") || !result["cases"].is_array()))
        return complain(exit_bad_input, file + " is not a suite's result: {\"cases\": [...], \"versions\": {...}}");
    if (!result.contains("suite")) result["suite"] = fs::path(file).stem().string();
    try {
        const std::string picture = scaling ? report::scaling_picture(result) : report::suite_picture(result);
        if (svg_out.empty()) std::cout << picture;
        else if (auto written = write_file_atomically(svg_out, picture); !written) return complain(exit_bad_input, written.error());
    } catch (const json::exception& e) {
        return complain(exit_bad_input, file + " is not a suite's result: " + e.what());
    }
    return exit_fine;
}

namespace {

bool is_torch(const json& peer) { return peer.is_object() && peer.contains("torch"); }

// A case of the list: what it asks the worker, and the peers that have no row yet.
struct Case {
    json listed, request, checked;  // `checked`: what the worker said of our kernel
    std::vector<json> inside, torch;
    std::string problem;
};

// The rows so far, written as they come: a run that is stopped loses the case in flight.
class Table {
public:
    Table(const json& suite, const SuiteOptions& o)
        : o_(o),
          result_{
              {"suite", suite.value("suite", o.name)}, {"cases", json::array()}, {"versions", json::object()}, {"command", own_command()}} {
        if (!o.resume) return;
        const auto text = read_file(o.json_out);
        const json before = text ? parse_json(*text) : json();
        if (!before.is_object() || !before.contains("cases") || !before["cases"].is_array()) return;
        std::set<std::pair<std::string, std::string>> listed;
        for (const json& c : suite["cases"]) {
            listed.emplace(c.value("case", std::string()), "");
            for (const json& p : c.value("peers", json::array())) listed.emplace(c.value("case", std::string()), peer_name(p));
        }
        for (const json& row : before["cases"]) {
            if (row.is_object() && row.contains("ratio") &&
                listed.count({row.value("case", std::string()), row.value("peer", std::string())}))
                result_["cases"].push_back(row);
        }
        if (before.contains("versions") && before["versions"].is_object()) result_["versions"] = before["versions"];
    }

    // A row of this very text: a kernel that has changed since is measured again.
    bool has(const json& request, const std::string& peer) const {
        return std::any_of(rows().begin(), rows().end(), [&](const json& r) {
            return same_place(r, request["case"], peer) && !request["digest"].get_ref<const std::string&>().empty() &&
                   r.contains("digest") && r["digest"] == request["digest"];
        });
    }
    void versions(const json& evidence) {
        if (evidence.contains("versions")) result_["versions"].update(evidence["versions"]);
    }
    bool add(json row) {
        say(row);
        json& all = result_["cases"];
        const auto before = std::find_if(all.begin(), all.end(), [&](const json& r) { return same_place(r, row["case"], row["peer"]); });
        if (before != all.end()) *before = std::move(row);
        else all.push_back(std::move(row));
        return o_.json_out.empty() || o_.json_out == "-" || write_json(o_.json_out, result_);
    }
    const json& rows() const { return result_["cases"]; }
    const json& result() const { return result_; }

private:
    static bool same_place(const json& row, const json& name, const std::string& peer) {
        return row.value("case", json()) == name && row.value("peer", std::string()) == peer;
    }

    const SuiteOptions& o_;
    json result_;
};

json row_of(const Case& c, const std::string& peer, const json& evidence) {
    json row = row_of(c.request, peer, c.listed);
    row["status"] = evidence["status"];
    for (const char* field : {"message", "roofline", "resources", "work"}) {
        if (evidence.contains(field)) row[field] = evidence[field];
    }
    if (evidence.contains("check")) row["outputs"] = evidence["check"]["outputs"];
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
        if (evidence["peer"].contains("right")) row["peer_right"] = evidence["peer"]["right"];
    }
    return row;
}

// Our kernels of these cases against fp64, untimed, in several workers: most of it is compiling.
void check_side_by_side(const std::vector<Case*>& cases, const runtime::SessionLimits& limits) {
    std::atomic<std::size_t> next = 0;
    std::mutex telling;
    std::int64_t done = 0;
    Progress progress("bench: checking", "cases", static_cast<std::int64_t>(cases.size()));
    const auto work = [&] {
        runtime::EvaluationSession session(limits);
        for (std::size_t i = next++; i < cases.size(); i = next++) {
            Case& c = *cases[i];
            json asked = c.request;
            asked["time"] = false;
            c.checked = c.problem.empty() ? session.evaluate(asked) : json{{"status", "refused"}, {"message", c.problem}};
            const std::lock_guard guard(telling);
            progress.done(++done);
        }
    };
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < std::min<std::size_t>({cases.size(), 8, std::max(1u, std::thread::hardware_concurrency() / 2)}); ++i)
        workers.emplace_back(work);
}

// Kernels that are timed one after another, and peers that are files, into the compile cache beforehand.
void compile_side_by_side(const std::vector<json>& requests) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < std::min<std::size_t>(requests.size(), std::max(1u, std::thread::hardware_concurrency())); ++i) {
        workers.emplace_back([&] {
            for (std::size_t at = next++; at < requests.size(); at = next++)
                runtime::static_figures(requests[at]);  // what does not compile is said by the evaluation
        });
    }
}

// A peer of a case as the worker is asked for it.
json against(const json& peer, const json& listed, const fs::path& root) {
    if (peer.is_string()) return {{"peer", peer}};
    if (!peer.is_object()) return nullptr;
    json asked = peer;
    std::error_code ignored;
    const std::string other = peer.value("file", listed["file"].get<std::string>());
    asked["file"] = fs::exists(other, ignored) ? other : (root / other).string();
    if (!peer.contains("kernel") && listed.contains("kernel")) asked["kernel"] = listed["kernel"];
    return asked;
}

}  // namespace

int run_cases(const json& suite, const SuiteOptions& o) {
    const fs::path root = runtime::bench_folder();
    runtime::SessionLimits limits;
    limits.seconds = o.timeout;
    Table table(suite, o);
    std::vector<Case> cases;
    bool found = false;
    for (const json& listed : suite["cases"]) {
        if (!listed.is_object() || !listed.contains("case") || !listed.contains("file") || !listed.contains("sizes"))
            return complain(exit_bad_input, "a case lacks \"case\", \"file\" or \"sizes\": " + listed.dump().substr(0, 200));
        if (!o.only.empty() && listed["case"].get<std::string>().find(o.only) == std::string::npos) continue;
        if (!o.exact.empty() && listed["case"].get<std::string>() != o.exact) continue;
        found = true;
        Case c;
        c.listed = listed;
        c.request = {{"case", listed["case"]},
                     {"time", true},
                     {"rounds", o.rounds},
                     {"heuristics", o.heuristics},
                     {"timeout_s", o.timeout},
                     {"constants", listed.value("constants", json::object())},
                     {"sizes", listed["sizes"]},
                     {"scalars", listed.value("scalars", json::object())},
                     {"l2", listed.value("l2", std::string("cold"))},
                     {"seed", listed.value("seed", 1)}};
        std::error_code ignored;
        const std::string file = listed["file"];
        c.request["file"] = fs::exists(file, ignored) ? file : (root / file).string();
        if (listed.contains("kernel")) c.request["kernel"] = listed["kernel"];
        c.request["digest"] = measured_digest(c.request, listed);
        const json peers = listed.value("peers", json::array());
        for (const json& p : peers) {
            if (!table.has(c.request, peer_name(p))) (is_torch(p) ? c.torch : c.inside).push_back(p);
        }
        if (c.inside.empty() && c.torch.empty() && (!peers.empty() || table.has(c.request, ""))) continue;
        if (listed.contains("tolerance")) c.request["tolerance"] = listed["tolerance"];
        add_inputs(c.request, listed, root, c.problem);
        cases.push_back(std::move(c));
    }
    if (!found) return complain(exit_bad_input, "no case was run", o.only.empty() ? "" : "no case's name contains '" + o.only + "'");

    int worst = exit_fine;
    std::vector<Case*> only_checked;
    for (Case& c : cases) {
        if (c.inside.empty() && !c.torch.empty()) only_checked.push_back(&c);
    }
    check_side_by_side(only_checked, limits);

    std::vector<json> compiled;
    const auto once = [&](const json& request) {
        json wanted = {{"file", request["file"]},
                       {"kernel", request.value("kernel", std::string())},
                       {"constants", request.value("constants", json::object())}};
        if (std::find(compiled.begin(), compiled.end(), wanted) == compiled.end()) compiled.push_back(std::move(wanted));
    };
    for (const Case& c : cases) {
        if (c.inside.empty() && !c.torch.empty()) continue;  // known to the cache by now
        once(c.request);
        for (const json& p : c.inside) {
            if (p.is_object()) once(against(p, c.listed, root));
        }
    }
    compile_side_by_side(compiled);

    runtime::EvaluationSession session(limits);
    Progress progress("bench", "cases", static_cast<std::int64_t>(cases.size()));
    for (Case& c : cases) {
        progress.done(&c - cases.data(), c.listed["case"].get<std::string>());
        if (c.inside.empty() && c.torch.empty()) c.inside.push_back(nullptr);  // ours alone
        for (const json& p : c.inside) {
            json asked = c.request;
            if (!p.is_null()) asked["against"] = against(p, c.listed, root);
            const json evidence = c.problem.empty() ? session.evaluate(asked) : json{{"status", "refused"}, {"message", c.problem}};
            if (c.checked.is_null()) c.checked = evidence;
            worst = std::max(worst, runtime::exit_status_of(evidence));
            table.versions(evidence);
            if (!table.add(row_of(c, p.is_null() ? "" : peer_name(p), evidence))) return exit_bad_input;
        }
    }

    json torch_cases = json::array();
    std::vector<json> torch_rows;
    for (Case& c : cases) {
        if (c.torch.empty()) continue;
        worst = std::max(worst, runtime::exit_status_of(c.checked));
        table.versions(c.checked);
        for (const json& p : c.torch) {
            json row = row_of(c, peer_name(p), c.checked);
            for (const char* timed : {"ours_us", "ours_interval", "ratio", "interval", "peer_us", "peer_algorithm", "peer_right"})
                row.erase(timed);
            json described = runtime::torch_case(c.request, c.problem);
            if (described.is_null() || c.checked["status"] != "right") {
                if (!row.contains("message")) row["message"] = c.problem;
                if (!table.add(std::move(row))) return exit_bad_input;
                continue;
            }
            for (const char* field : {"torch", "prelude", "setup"}) {
                if (p.contains(field)) described[field] = p[field];
            }
            torch_cases.push_back(std::move(described));
            torch_rows.push_back(std::move(row));
        }
    }
    bool written = true;
    runtime::time_against_torch(torch_cases, o.timeout, "python3", [&](std::size_t i, const json& answer) {
        json row = torch_rows[i];
        table.versions(answer);
        if (answer.contains("problem")) row["message"] = answer["problem"], row["status"] = "not measured";
        else row.update(answer);
        row.erase("versions");
        written = table.add(std::move(row)) && written;
    });
    if (!written || (o.json_out == "-" && !write_json("-", table.result()))) return exit_bad_input;
    if (!o.unit_result.empty() && !write_json(o.unit_result, table.result())) return exit_bad_input;
    if (!o.svg_out.empty()) {
        if (auto drawn = write_file_atomically(o.svg_out, report::suite_picture(table.result())); !drawn)
            return complain(exit_bad_input, drawn.error());
    }
    return worst;
}

}  // namespace tw::cli
