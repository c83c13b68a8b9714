// `tilewright generate GRAPH.json`: from a graph of operators to kernels, each proved, and the plan of their launches.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "base/text.h"
#include "cli/command.h"
#include "cli/limits.h"
#include "cli/process_pool.h"
#include "cli/terminal.h"
#include "diagnose/check.h"
#include "graph/evaluate.h"
#include "graph/program_text.h"
#include "graph/sizes.h"
#include "lower/lower.h"
#include "runtime/verdicts.h"

namespace tw::cli {
namespace generate_command {

using nlohmann::json;

struct Options {
    std::string file, folder, tf32 = "conv";
    bool strict = false, as_json = false, emulate = false;
    double seconds = 30;
    int jobs = 1;
    std::uint64_t seed = 1;
    std::int64_t large = std::int64_t{1} << 29;
};

int refuse(const graph::Problem& p) {
    return complain(exit_bad_input, fmt::format("{}: {}", printable(p.where), printable_lines(p.what)), p.help);
}

// The verdict on every kernel, each in a process of its own: one that takes too long costs its own verdict.
json prove(const Options& o, const graph::Generated& made, const ir::Module& module, std::map<std::string, json>& known) {
    json verdicts = json::array();
    for (const graph::KernelText& k : made.kernels)
        verdicts.push_back({{"kernel", k.name}, {"family", k.family}, {"nodes", k.nodes}, {"verdict", "not_proved"}});
    const auto work = [&](std::size_t i) -> std::string {
        diagnose::CheckOptions options;
        options.search = false;
        for (const ir::Kernel& k : module.kernels) {
            if (k.name != made.kernels[i].name) continue;
            const auto result = diagnose::check(k, options);
            std::string why;
            for (const auto& ob : result.obligations)
                if (ob.status != verify::Status::proved && why.empty())
                    why = ob.kind + ": " + ob.text + (ob.reason.empty() ? "" : "\n" + ob.reason);
            return json{{"verdict", result.proved() ? "proved" : "not_proved"}, {"milliseconds", result.milliseconds}, {"why", why}}.dump(
                -1, ' ', false, json::error_handler_t::replace);
        }
        return "{}";
    };
    // A kernel that was proved, or not, before the graph was cut anew is not tried again, whatever it is called now.
    std::vector<std::size_t> open;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < made.kernels.size(); ++i) {
        std::string text = made.kernels[i].text;
        if (const auto at = text.find("def " + made.kernels[i].name + "("); at != std::string::npos)
            text.erase(at + 4, made.kernels[i].name.size());
        if (const auto found = known.find(text); found != known.end()) verdicts[i].update(found->second);
        else open.push_back(i);
        texts.push_back(std::move(text));
    }
    run_pool(
        open.size(), {o.jobs, o.seconds}, [&](std::size_t n) { return work(open[n]); },
        [&](std::size_t n, const PoolResult& r) {
            const std::size_t i = open[n];
            const json answer = json::parse(r.text, nullptr, false);
            if (r.end == PoolResult::End::finished && answer.is_object()) verdicts[i].update(answer);
            else
                verdicts[i]["why"] =
                    r.end == PoolResult::End::timeout ? fmt::format("given up after {} s", o.seconds) : "the prover ended: " + r.text;
            known[texts[i]] = verdicts[i];
            for (const char* own : {"kernel", "nodes"}) known[texts[i]].erase(own);
        });
    return verdicts;
}

// Is the program of all launches what the graph computes? Each kernel's own proof is not asked here.
json prove_program(const Options& o, const graph::Graph& g, const graph::Generated& made) {
    if (!made.program_problem.empty()) return {{"verdict", "not_proved"}, {"why", made.program_problem}};
    const auto work = [&](std::size_t) -> std::string {
        SourceMap sources;
        DiagnosticSink sink;
        const auto module = lower::compile_text(sources, g.name + ".py", made.source, {}, sink);
        if (!module || module->programs.size() != 1) return json{{"why", "the program does not compile"}}.dump();
        diagnose::CheckOptions options;
        options.search = false;
        options.audit_seconds = 0;
        const auto result = diagnose::check_program(*module, module->programs[0], options);
        std::string why;
        std::set<std::string> open;  // "precision" alone: the values are proved
        for (const auto& ob : result.obligations) {
            if (ob.status == verify::Status::proved) continue;
            open.insert(ob.kind);
            if (why.empty()) why = ob.kind + ": " + ob.text + (ob.reason.empty() ? "" : "\n" + ob.reason);
        }
        return json{
            {"verdict", result.proved() ? "proved" : "not_proved"}, {"milliseconds", result.milliseconds}, {"open", open}, {"why", why}}
            .dump(-1, ' ', false, json::error_handler_t::replace);
    };
    json verdict = {{"verdict", "not_proved"}};
    run_pool(1, {1, o.seconds}, work, [&](std::size_t, const PoolResult& r) {
        const json answer = json::parse(r.text, nullptr, false);
        if (r.end == PoolResult::End::finished && answer.is_object()) verdict.update(answer);
        else
            verdict["why"] =
                r.end == PoolResult::End::timeout ? fmt::format("given up after {} s", o.seconds) : "the prover ended: " + r.text;
    });
    return verdict;
}

json emulated(const Options& o, const graph::Graph& g, const graph::Generated& made) {
    const auto values = graph::random_values(g, o.seed);
    const auto expected = graph::evaluate(g, values);
    if (!expected) return {{"refused", expected.error().where + ": " + expected.error().what}};
    const auto actual = graph::emulate(g, made, values);
    if (!actual) return {{"fault", actual.error().where + ": " + actual.error().what}};
    const auto d = graph::compare(*expected, *actual);
    return {{"worst", d.worst}, {"output", d.output}, {"element", d.element}, {"expected", d.expected}, {"actual", d.actual}};
}

// Of open sizes the least values, and two more of each; the worst of them.
json emulated_at_sizes(const Options& o, const graph::Graph& g, const graph::Generated& made) {
    if (g.sizes.empty()) return emulated(o, g, made);
    json worst, at = json::array();
    for (const std::int64_t more : {0, 4, 31}) {
        std::vector<std::int64_t> values;
        for (const graph::OpenSize& size : g.sizes)
            values.push_back(std::min(size.most, size.least + more + (more > 0 ? static_cast<std::int64_t>(values.size()) : 0)));
        json now = emulated(o, graph::graph_at(g, values), graph::launches_at(made, g, values));
        at.push_back(values);
        now["sizes"] = at;
        if (!now.contains("worst")) return now;
        if (worst.is_null() || now["worst"] > worst["worst"]) worst = now;
    }
    worst["sizes"] = at;
    return worst;
}

struct Made {
    graph::Generated generated;
    json verdicts;
    std::size_t unproved = 0;
};

// Kernels with a verdict each. Where one is not proved, its window goes row by row, or the graph is cut once more inside it, until all are
// proved, or nothing is left to try.
Expected<Made, int> make(const Options& o, const graph::Graph& g) {
    std::set<int> stored;
    graph::Precision how{o.tf32 != "none", o.tf32 == "all", o.large, {}};
    std::map<std::string, json> known;
    std::optional<Made> best;
    for (int round = 0; round < 24; ++round) {
        auto made = graph::generate(g, how, stored);
        if (!made) {
            if (best) break;
            return Unexpected<int>{refuse(made.error())};
        }
        SourceMap sources;
        DiagnosticSink sink;
        auto module = lower::compile_text(sources, g.name + ".py", made->source, {}, sink);
        if (!module && made->program_problem.empty()) {  // its text may be too long, or say what kernels cannot
            made->program_problem = sink.diagnostics().empty() ? "the program does not compile" : sink.diagnostics()[0].message;
            made->source = made->kernels_only;
            sources = SourceMap();
            sink = DiagnosticSink();
            module = lower::compile_text(sources, g.name + ".py", made->source, {}, sink);
        }
        if (!module) {
            // A template that asks for more than a block has: the plain one is tried in its place.
            const std::size_t by_rows = how.rows.size();
            for (const graph::KernelText& k : made->kernels)
                if (!k.rows.empty()) how.rows.insert(k.rows);
            if (how.rows.size() != by_rows) {
                stored.clear();
                continue;
            }
            if (best) break;
            std::fputs(render_text(sink, sources).c_str(), stderr);
            return Unexpected<int>{complain(
                exit_our_bug, "the generated kernels do not compile: that is a bug of tilewright, please report it with this graph")};
        }
        Made now{*std::move(made), json::array()};
        now.verdicts = prove(o, now.generated, *module, known);
        const std::size_t before = stored.size(), by_rows = how.rows.size();
        for (std::size_t i = 0; i < now.verdicts.size(); ++i) {
            if (now.verdicts[i]["verdict"] == "proved") continue;
            ++now.unproved;
            const std::string& rows = now.generated.kernels[i].rows;
            if (!rows.empty() && how.rows.insert(rows).second) continue;
            for (const int cut : now.generated.kernels[i].cuts)
                if (stored.insert(cut).second) break;
        }
        if (!best || now.unproved < best->unproved) best = std::move(now);
        if (best->unproved == 0 || (stored.size() == before && how.rows.size() == by_rows)) break;
        if (how.rows.size() != by_rows) stored.clear();  // primitives have other numbers then
    }
    return *std::move(best);
}

int run(const Options& o) {
    const auto text = read_file(o.file);
    if (!text) return complain(exit_bad_input, text.error());
    const auto g = graph::read_graph(*text);
    if (!g) return refuse(g.error());
    const auto result = make(o, *g);
    if (!result) return result.error();
    const graph::Generated* made = &result->generated;
    json report = {{"graph", g->name}, {"kernels", result->verdicts}, {"unsupported", json::array()}};
    std::size_t proved = 0;
    for (const json& k : report["kernels"]) proved += k["verdict"] == "proved" ? 1 : 0;
    report["proved"] = proved == made->kernels.size();
    // Each kernel is proved against its own equation, and their program against what the graph computes. Where that is not shown, that the
    // launches together are the graph rests on how the generator cut it.
    report["program"] = prove_program(o, *g, *made);
    if (report["program"]["verdict"] == "proved" && !report["proved"].get<bool>())
        report["program"].update({{"verdict", "not_proved"}, {"why", "it stands on its kernels, and not all of them are proved"}});
    report["composition"] = report["program"]["verdict"] == "proved" ? "proved" : "by construction";
    for (const graph::OpenSize& size : g->sizes)
        report["sizes"].push_back({{"name", size.name}, {"least", size.least}, {"most", size.most}});
    if (o.emulate) {
        Watchdog watchdog({});  // the emulator is for small sizes, and a graph may have any
        watchdog.next("--emulate");
        report["emulated"] = emulated_at_sizes(o, *g, *made);
    }
    if (!o.folder.empty()) {
        std::error_code error;
        std::filesystem::create_directories(o.folder, error);
        const std::filesystem::path folder = o.folder;
        for (const auto& [name, content] : {std::pair{"kernels.py", made->source},
                                            std::pair{"plan.json", made->plan.dump(1, ' ', false, json::error_handler_t::replace) + "\n"},
                                            std::pair{"report.json", report.dump(1, ' ', false, json::error_handler_t::replace) + "\n"}})
            if (const auto written = write_file_atomically(folder / name, content); !written)
                return complain(exit_bad_input, written.error());
    }
    std::map<std::string, std::string> verdicts;
    for (const json& k : report["kernels"]) verdicts[k["kernel"].get<std::string>()] = k["verdict"].get<std::string>();
    if (made->program_problem.empty()) verdicts[graph::kProgramName] = report["program"]["verdict"].get<std::string>();
    runtime::record_verdicts(made->source, {}, verdicts);
    if (o.as_json) {
        print_json(report);
    } else {
        if (o.folder.empty()) std::cout << made->source;
        for (const json& k : report["kernels"]) {
            std::string nodes;
            for (const json& n : k["nodes"]) nodes += (nodes.empty() ? "" : ", ") + n.get<std::string>();
            fmt::print("{}: {} ({}; {})\n", k["kernel"].get<std::string>(), k["verdict"].get<std::string>(), k["family"].get<std::string>(),
                       printable(nodes));
            if (k["verdict"] != "proved") fmt::print("  {}\n", printable_lines(k.value("why", "")));
        }
        fmt::print("the launches together: {}\n", report["program"]["verdict"].get<std::string>());
        if (report["program"]["verdict"] != "proved") fmt::print("  {}\n", printable_lines(report["program"].value("why", "")));
        if (o.emulate) fmt::print("emulated: {}\n", printable(report["emulated"].dump()));
    }
    const bool wrong = o.emulate && (report["emulated"].contains("fault") || report["emulated"].value("worst", 0.0) > 0.02);
    return wrong ? exit_kernel_wrong : report["proved"].get<bool>() || !o.strict ? exit_fine : exit_not_proved;
}

}  // namespace generate_command

std::function<int()> declare_generate(CLI::App& app) {
    using namespace generate_command;
    auto o = std::make_shared<Options>();
    app.add_option("graph", o->file, "a graph in JSON (docs/graph.md)")->required();
    app.add_option("-o,--output", o->folder, "folder for kernels.py, plan.json and report.json; left out, the kernels are printed");
    app.add_flag("--strict", o->strict, "a kernel that is not proved is an error (exit status 3)");
    app.add_option("--tf32", o->tf32, "whose f32 operands are rounded to tf32, as the reference does: conv, all or none")
        ->check(CLI::IsMember({"conv", "all", "none"}))
        ->capture_default_str();
    app.add_option("--large", o->large,
                   "multiplications from which on kernels of their own bring operands into the matrix unit's form (tests: 1, always)")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 60))
        ->capture_default_str();
    app.add_flag("--emulate", o->emulate,
                 "also run the launches on the emulator with random inputs and compare with the graph in fp64 (small sizes)");
    app.add_option("--seed", o->seed, "of those inputs")->capture_default_str();
    app.add_option("--limit-seconds", o->seconds, "processor time for the proof of one kernel")
        ->check(positive_number())
        ->capture_default_str();
    app.add_option("--jobs", o->jobs, "proofs side by side")->check(CLI::Range(1, 64))->capture_default_str();
    app.add_flag("--json", o->as_json, "print the report as JSON");
    app.footer(
        "Exit status: 0 generated (with --strict: and everything proved), 1 the emulator finds a fault or a wrong value, 2 a graph that "
        "cannot be taken, 3 not proved, 70 our bug.\n"
        "Example: tilewright generate tests/graph/conv_relu.json -o out --emulate");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
