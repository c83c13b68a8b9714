// `tilewright bench FILE`: is it right, then how fast, against a peer in the same run. The JSON is the evidence of a speed.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <memory>

#include "base/input.h"
#include "base/text.h"
#include "cli/bench_suite.h"
#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/evidence.h"
#include "runtime/evaluate.h"
#include "runtime/profile.h"
#include "runtime/worker.h"

namespace tw::cli {
namespace bench_command {

using nlohmann::json;

struct Options {
    CandidateOptions candidate;
    SuiteOptions suite;
    units::EngineOptions engine;
    std::string draw, recount;
    std::string torch, prelude, setup;
    std::string against, json_out, requests, l2 = "cold";
    std::vector<std::string> candidates;
    int rounds = 30, heuristics = 64;
    bool samples = false, profile = false, proof = false;
};

// One JSON request a line, one answer a line, as long as there are requests: for programs that try many candidates.
int answer_requests(const Options& o) {
    auto in = LineReader::open(o.requests);
    if (!in) return complain(exit_bad_input, in.error());
    runtime::SessionLimits limits;
    limits.seconds = o.candidate.timeout;
    runtime::EvaluationSession session(limits);
    int worst = exit_fine;
    bool too_long = false;
    for (std::string line; in->next(line, too_long);) {
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        json request = parse_json(line);
        json answer;
        if (request.is_discarded() || !request.is_object())
            answer = {{"status", "refused"}, {"message", "a request is one JSON object on one line"}};
        else answer = session.evaluate(request);
        std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
        worst = std::max(worst, runtime::exit_status_of(answer));
    }
    return worst;
}

// Ours is checked in the worker, then timed beside the expression in a Python process.
int against_torch(const Options& o, json request) {
    SuiteOptions suite = o.suite;
    json peer = {{"torch", o.torch}, {"name", "torch"}};
    if (!o.prelude.empty()) peer["prelude"] = o.prelude;
    if (!o.setup.empty()) peer["setup"] = o.setup;
    request["case"] = request["file"];
    request["peers"] = json::array({peer});
    suite.rounds = o.rounds;
    suite.timeout = o.candidate.timeout;
    suite.json_out = o.json_out;
    return run_cases({{"suite", request["file"]}, {"cases", json::array({request})}}, suite);
}

// The verdicts of `tilewright check` on the request's file, in a process of its own.
json proof_of(const json& request) {
    std::vector<std::string> words = {runtime::own_program(), "check", request["file"].get<std::string>(), "--json"};
    std::string constants;
    for (const auto& [name, value] : request["constants"].items())
        constants += fmt::format("{}{}={}", constants.empty() ? "" : ",", name, value.dump());
    if (!constants.empty()) words.insert(words.end(), {"--set", constants});
    runtime::WorkerLimits limits;
    limits.seconds = 300;
    limits.box = runtime::box_for_checks();
    const auto ran = runtime::run_program_in_worker(words, limits);
    const json said = parse_json(ran.answer);
    if (!said.is_object() || !said.contains("kernels")) return {{"problem", "the check " + ran.sentence()}};
    json kernels = json::array();
    for (const json& k : said["kernels"]) {
        int proved = 0;
        for (const json& a : k["assertions"]) proved += a.value("status", "") == "proved";
        kernels.push_back({{"kernel", k["kernel"]},
                           {"verdict", k["verdict"]},
                           {"assertions", k["assertions"].size()},
                           {"proved", proved},
                           {"used", k["used"]}});
    }
    return {{"kernels", kernels}};
}

std::string describe_proof(const json& p) {
    if (p.contains("problem")) return "  proof: " + p["problem"].get<std::string>() + "\n";
    std::string text;
    for (const json& k : p["kernels"])
        text += fmt::format("  proof of {}: {} ({} of {} assertions)\n", k["kernel"].get<std::string>(), k["verdict"].get<std::string>(),
                            k["proved"].get<int>(), k["assertions"].get<int>());
    return text;
}

std::string describe_profile(const json& p) {
    std::string text;
    if (p.value("source", "") == "ncu") {
        for (const auto& [kernel, metrics] : p["kernels"].items()) {
            text += "  " + kernel + ", by ncu:\n";
            for (const auto& [name, m] : metrics.items())
                text += fmt::format("    {:>14.6g} {:<6} {}\n", m["value"].get<double>(), m.value("unit", ""), m.value("meaning", name));
        }
        return text;
    }
    text += fmt::format("  no counters ({}); instructions in the machine code:\n", p.value("why", ""));
    if (p.contains("mix_note")) text += "    " + p["mix_note"].get<std::string>() + "\n";
    for (const json& mix : p.value("mix", json::array())) {
        text += fmt::format("    {}: {} instructions:", mix["kernel"].get<std::string>(), mix["instructions"].get<int>());
        for (const auto& [kind, count] : mix["kinds"].items()) text += fmt::format(" {} {},", count.get<int>(), kind);
        text.back() = '\n';
    }
    return text;
}

int run(const Options& o) {
    if (!o.draw.empty()) return draw_suite(o.draw, o.suite.svg_out);
    if (!o.recount.empty()) return recount_suite(o.recount, o.json_out);
    if (!o.suite.name.empty()) {
        SuiteOptions suite = o.suite;
        suite.rounds = o.rounds;
        suite.heuristics = o.heuristics;
        suite.timeout = o.candidate.timeout;
        suite.json_out = o.json_out;
        if (!o.engine.name.empty()) return suite_with_engine(suite, o.engine);
        return run_suite(suite);
    }
    if (!o.engine.name.empty()) return complain(exit_bad_input, "--engine needs --suite", "a single kernel is one measurement");
    if (!o.requests.empty()) return answer_requests(o);
    if (o.l2 != "cold" && o.l2 != "warm") return complain(exit_bad_input, fmt::format("--l2 {}", o.l2), "it is cold or warm");
    if (o.candidate.file.empty()) return complain(exit_bad_input, "no kernel file was named", "tilewright bench FILE --set M=...,N=...");
    Requested asked = request_from(o.candidate);
    if (asked.exit_code != exit_fine) return asked.exit_code;
    json& base = asked.request;
    base["time"] = true;
    base["rounds"] = o.rounds;
    base["l2"] = o.l2;
    base["heuristics"] = o.heuristics;
    base["samples"] = o.samples;
    if (o.against == "torch") {
        if (o.torch.empty())
            return complain(exit_bad_input, "--against torch needs the expression to compare with",
                            "add --torch 'torch.softmax(X, -1)': a Python expression over the parameters by name");
        return against_torch(o, base);
    }
    if (o.against == "cublaslt") {
        base["against"] = {{"peer", "cublaslt"}};
    } else if (!o.against.empty()) {
        Requested other = request_for_file(o.against, json::object());
        if (other.exit_code != exit_fine) return other.exit_code;
        if (base.contains("kernel")) other.request["kernel"] = base["kernel"];
        other.request["kernel_optional"] = true;
        base["against"] = other.request;
    }
    std::vector<json> requests = {base};
    for (const std::string& spec : o.candidates) {
        Requested more = request_for_file(spec, base);
        if (more.exit_code != exit_fine) return more.exit_code;
        more.request["kernel_optional"] = true;
        requests.push_back(std::move(more.request));
    }
    runtime::SessionLimits limits;
    limits.seconds = o.candidate.timeout;
    runtime::EvaluationSession session(limits);
    json results = json::array();
    int worst = exit_fine;
    for (const json& request : requests) {
        json evidence = session.evaluate(request);
        evidence["command"] = own_command();
        if (o.proof) evidence["proof"] = proof_of(request);
        if (o.profile) evidence["profile"] = runtime::profile(request, 2 * o.candidate.timeout);
        worst = std::max(worst, runtime::exit_status_of(evidence));
        if (o.json_out != "-")
            fmt::print("{}{}", describe(evidence) + (o.proof ? describe_proof(evidence["proof"]) : ""),
                       o.profile ? describe_profile(evidence["profile"]) : ""),
                std::fflush(stdout);
        results.push_back(std::move(evidence));
    }
    if (!o.json_out.empty() && !write_json(o.json_out, results.size() == 1 ? results[0] : json{{"results", results}}))
        return exit_bad_input;
    return worst;
}

}  // namespace bench_command

std::function<int()> declare_bench(CLI::App& app) {
    using namespace bench_command;
    auto o = std::make_shared<Options>();
    declare_candidate(app, o->candidate, false);
    app.add_option("--suite", o->suite.name,
                   "every case of bench/suites/NAME.json (gemm, attention, grouped, memory) or of the file NAME against its peers");
    declare_engine(app, o->engine);
    declare_unit_result(app, o->suite.unit_result);
    app.add_option("--case", o->suite.exact, "of a suite, the case of this name alone");
    app.add_option("--only", o->suite.only, "of a suite, the cases whose name contains this");
    app.add_flag("--resume", o->suite.resume,
                 "of a suite: rows that the file of --json has of the same CUDA text and sizes are kept; it is written row by row");
    app.add_option("--svg", o->suite.svg_out, "of a suite: bars against the peers and a roofline, as a picture");
    app.add_option("--draw", o->draw, "only the picture of a suite's result that --json wrote before, to --svg or the standard output");
    app.add_option("--recount", o->recount,
                   "only a suite's result with its bytes and operations counted anew from the kernels, to --json; times stay as measured");
    app.add_option("--torch", o->torch, "with --against torch: a Python expression over the parameters by name, torch and F");
    app.add_option("--prelude", o->prelude, "with --against torch: Python that runs once before");
    app.add_option("--setup", o->setup, "with --against torch: Python that runs once for each set of inputs");
    app.add_option("--against", o->against,
                   "peer timed in the same run: cublaslt (plain products), torch (see --torch), or another kernel file "
                   "FILE[@NAME=VALUE,...] with the same parameters");
    app.add_option("--candidate", o->candidates,
                   "more kernel files, FILE[@NAME=VALUE,...], evaluated one after another with the same sizes and peer");
    app.add_option("--requests", o->requests,
                   "JSON requests, one a line, from a file or - (standard input); one line of JSON answers each");
    app.add_option("--rounds", o->rounds, "timed rounds; the contenders take turns in each")->capture_default_str();
    app.add_option("--l2", o->l2, "cold: inputs rotate so that L2 never holds them; warm: one set of inputs")->capture_default_str();
    app.add_option("--heuristics", o->heuristics, "how many of cuBLASLt's algorithms are tried")->capture_default_str();
    app.add_flag("--proof", o->proof, "also what `check` says of the file with these constants");
    app.add_flag("--profile", o->profile, "also counters by ncu; where they are refused, the instruction mix and the compiler's figures");
    app.add_flag("--samples", o->samples, "put the time of every round into the JSON");
    app.add_option("--json", o->json_out, "file for the evidence, or - for standard output");
    app.footer(
        "Exit status: 0 right and measured, 1 wrong (or rejected, faulted, timed out), 2 bad usage, 3 no GPU here: the compiler's figures "
        "are given, nothing is measured, 70 our bug.\n"
        "Example: tilewright bench kernels/gemm_sm90.py --set M=4096,N=4096,K=4096 --against cublaslt --json gemm.json");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
