// `tilewright check FILE`: prove every kernel of a file, or show where it is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "cli/check_cute.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/limits.h"
#include "cli/terminal.h"
#include "diagnose/check.h"
#include "report/check_page.h"
#include "runtime/verdicts.h"

namespace tw::cli {
namespace check_command {

struct Options {
    std::string file, kernel, log, html;
    std::vector<std::string> settings;
    bool json = false, verbose = false;
    double seconds = 3, audit = 1;
    int audit_run = 0;
    std::uint64_t seed = 1;
    Limits limits;
};

constexpr const char* wrong_proof =
    "every assertion was proved, and this run refutes the proof: that is a bug of tilewright, please report it with this file";

nlohmann::json place(const ir::Loc& l) {
    nlohmann::json j = {{"line", l.line}, {"column", l.column}};
    if (!l.file.empty()) j["file"] = l.file;  // one that the kernel's own imports
    return j;
}

nlohmann::json to_json(const diagnose::Counterexample& c, const SourceMap& sources) {
    nlohmann::json j = {{"kind", c.kind},           {"code", c.code},           {"message", c.message},
                        {"place", place(c.loc)},    {"statement", c.statement}, {"sizes", c.sizes_text},
                        {"schedule", c.schedule},   {"seed", c.seed},           {"block", {c.block[0], c.block[1], c.block[2]}},
                        {"thread", c.thread},       {"element", c.element},     {"hint", c.hint},
                        {"confirmed", c.confirmed}, {"trials", c.tried}};
    j["source"] = source_line(sources, c.loc);
    if (c.other.line) j["other"] = {{"place", place(c.other)}, {"statement", c.other_statement}, {"source", source_line(sources, c.other)}};
    if (!c.expected_tag.empty()) {
        j["expected_tag"] = c.expected_tag;
        j["actual_tag"] = c.actual_tag;
        j["expected_value"] = c.expected;
        j["actual_value"] = c.actual;
        j["differences"] = nlohmann::json::array();
        for (const auto& d : c.differences) j["differences"].push_back({{"kind", diagnose::name_of(d.kind)}, {"text", d.text}});
    }
    if (!c.missing.empty()) j["missing"] = c.missing;
    if (c.repair)
        j["repair"] = {
            {"place", place(c.repair->loc)}, {"change", c.repair->text}, {"passed", c.repair->passed}, {"proved", c.repair->proved}};
    j["trace"] = nlohmann::json::array();
    for (const diagnose::TraceStep& t : c.trace) {
        nlohmann::json iteration = nlohmann::json::object();
        for (const auto& [name, at] : t.iteration) iteration[name] = at;
        j["trace"].push_back({{"place", place(t.loc)},
                              {"action", t.action},
                              {"detail", t.detail},
                              {"who", t.who},
                              {"role", t.role},
                              {"thread", t.thread},
                              {"block", {t.block[0], t.block[1], t.block[2]}},
                              {"iteration", iteration},
                              {"source", source_line(sources, t.loc)},
                              {"statement", t.statement}});
    }
    const auto window = [](const diagnose::TilePicture& p) {
        return nlohmann::json{{"title", p.title}, {"rows", p.rows},     {"columns", p.columns}, {"cells", p.cells},
                              {"wrong", p.wrong}, {"legend", p.legend}, {"clipped", p.clipped}};
    };
    if (!c.picture.empty()) j["picture"] = window(c.picture);
    if (!c.layout.empty()) j["layout"] = window(c.layout);
    return j;
}

template <class... Parts>
void add(std::string& text, fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Parts>(parts)...);
}

// The window with its coordinates; wrong cells carry a star, and colour on a terminal.
void print_picture(std::string& text, const diagnose::TilePicture& p) {
    if (p.empty()) return;
    std::size_t width = 3;
    for (const auto& row : p.cells) {
        for (const std::string& cell : row) width = std::max(width, cell.size() + 1);
    }
    for (std::int64_t c : p.columns) width = std::max(width, std::to_string(c).size());
    if (p.legend.rfind("x ", 0) == 0) width = std::max<std::size_t>(2, std::to_string(p.columns.back()).size());
    const bool colour = use_colour(stdout);
    add(text, "  picture:   {}\n             {:>5} ", p.title, "");
    for (std::int64_t c : p.columns) add(text, " {:>{}}", c, width);
    add(text, "\n");
    for (std::size_t r = 0; r < p.cells.size(); ++r) {
        add(text, "             {:>5}|", p.rows[r]);
        for (std::size_t c = 0; c < p.cells[r].size(); ++c) {
            const bool star = p.wrong[r][c] && p.cells[r][c] != "x";
            const std::string cell = fmt::format("{:>{}}", p.cells[r][c] + (star ? "*" : ""), width);
            add(text, " {}{}{}", colour && p.wrong[r][c] ? "\033[31m" : "", cell, colour && p.wrong[r][c] ? "\033[0m" : "");
        }
        add(text, "{}\n", p.clipped ? " .." : "");
    }
    add(text, "             {}\n", p.legend);
}

std::string label(diagnose::TagDifference::Kind kind) {
    switch (kind) {
        case diagnose::TagDifference::Kind::missing: return "missing:";
        case diagnose::TagDifference::Kind::repeated: return "repeated:";
        case diagnose::TagDifference::Kind::foreign: return "foreign:";
        case diagnose::TagDifference::Kind::relative: return "relative:";
        case diagnose::TagDifference::Kind::never_written: return "unset:";
        case diagnose::TagDifference::Kind::never_stored: return "stored:";
        default: return "differs:";
    }
}

void print_counterexample(std::string& text, const diagnose::Counterexample& c, const std::string& file, const SourceMap& sources) {
    add(text, "{}:{}: violated[{}]: {}\n", printable(ir::place_text(c.loc, file)), c.loc.column, c.code, printable_lines(c.message));
    add(text, "{}", excerpt(sources, c.loc));
    if (c.other.line) {
        add(text, "  it collides with {}:\n{}", ir::place_text(c.other, file), excerpt(sources, c.other));
    }
    add(text, "  instance:  {} (schedule: {}, seed {})\n", c.sizes_text, c.schedule, c.seed);
    if (c.thread >= 0)
        add(text, "  where:     block ({}, {}, {}), thread {}, `{}`\n", c.block[0], c.block[1], c.block[2], c.thread, c.statement);
    if (!c.element.empty()) add(text, "  element:   {}\n", c.element);
    if (!c.expected_tag.empty()) {
        add(text, "  expected:  {} = {:g}\n", c.expected_tag, c.expected);
        add(text, "  actual:    {} = {:g}\n", c.actual_tag, c.actual);
        for (const auto& d : c.differences) add(text, "  {:<10} {}\n", label(d.kind), d.text);
    }
    for (std::size_t i = 0; i < c.trace.size(); ++i) {
        const diagnose::TraceStep& t = c.trace[i];
        add(text, "  {:<10} line {}: {}{}{}\n", i ? "" : "trace:", ir::line_text(t.loc), t.action, t.detail.empty() ? "" : " " + t.detail,
            t.who.empty() ? "" : "  [" + t.who + "]");
    }
    if (!c.missing.empty()) add(text, "  missing:   {}\n", c.missing);
    print_picture(text, c.picture);
    add(text, "  replay:    {}\n", c.confirmed ? "confirmed on the emulator" : "NOT confirmed (this is our bug: please report it)");
    if (!c.hint.empty()) add(text, "  hint:      {}\n", c.hint);
    if (c.repair) {
        const std::string others = c.repair->passed > 1 ? fmt::format(", and so do {} others", c.repair->passed - 1) : "";
        add(text, "  tried:     with this change the instance passes{}{}\n", others, c.repair->proved ? "; the kernel is then proved" : "");
    }
}

// How to see the run again that an audit failed at.
std::string again(const Options& o, const diagnose::CheckResult& result, const std::string& kernel) {
    std::string words = fmt::format("tilewright check {} --kernel {}", o.file, kernel);
    for (const std::string& s : o.settings) words += " --set " + s;
    return words + fmt::format(" --seed {} --audit-run {}", o.seed, result.audit->failing);
}

nlohmann::json audit_json(const Options& o, const diagnose::CheckResult& result, const std::string& kernel) {
    const diagnose::AuditResult& a = *result.audit;
    nlohmann::json j = {{"runs", a.runs}, {"unfinished", a.unfinished}, {"seconds", a.seconds}, {"text", a.text()}};
    if (a.failing) {
        j["failing_run"] = a.failing;
        j["replay"] = again(o, result, kernel);
        j["message"] = wrong_proof;
    }
    return j;
}

// One kernel or program, checked.
struct Checked {
    const char* what;  // "kernel" or "program"
    std::string name, plain_name;
    ir::Loc loc;
    const diagnose::CheckResult& result;

    const char* verdict() const { return result.violated() ? "violated" : result.proved() ? "proved" : "not_proved"; }
};

nlohmann::json json_of(const Options& o, const Checked& checked, const SourceMap& sources) {
    const diagnose::CheckResult& result = checked.result;
    nlohmann::json j = {{checked.what, checked.name},    {"line", checked.loc.line},
                        {"verdict", checked.verdict()},  {"milliseconds", result.milliseconds},
                        {"instances", result.instances}, {"questions", result.questions},
                        {"used", result.used()},         {"assertions", nlohmann::json::array()}};
    for (const auto& ob : result.obligations) {
        nlohmann::json a = {{"kind", ob.kind},
                            {"code", ob.code},
                            {"text", ob.text},
                            {"place", place(ob.loc)},
                            {"status", verify::name_of(ob.status)},
                            {"prover", ob.prover},
                            {"milliseconds", ob.milliseconds},
                            {"used", ob.used}};
        if (!ob.reason.empty()) a["reason"] = ob.reason;
        j["assertions"].push_back(a);
    }
    if (result.counterexample) j["counterexample"] = to_json(*result.counterexample, sources);
    if (result.audit) j["audit"] = audit_json(o, result, checked.plain_name);
    j["remarks"] = nlohmann::json::array();
    for (const auto& r : result.accesses.remarks) {
        j["remarks"].push_back({{"code", r.code},
                                {"message", r.message},
                                {"hint", r.hint},
                                {"place", place(r.loc)},
                                {"statement", r.statement},
                                {"cost", r.cost},
                                {"ideal", r.ideal},
                                {"unit", r.unit}});
    }
    for (const auto& r : result.warnings)
        j["remarks"].push_back({{"code", r.code}, {"message", r.message}, {"hint", r.hint}, {"place", place(r.loc)}});
    if (result.accesses.registers) j["estimated_registers"] = result.accesses.registers;
    return j;
}

std::string text_of(const Options& o, const Checked& checked, const SourceMap& sources) {
    const diagnose::CheckResult& result = checked.result;
    std::string text;
    int proved = 0;
    for (const auto& ob : result.obligations) proved += ob.status == verify::Status::proved;
    add(text, "{}:{}: {}: {} ({} of {} assertions proved, {} instances, {:.1f} ms{})\n", printable(o.file), checked.loc.line,
        printable(checked.name), checked.verdict(), proved, result.obligations.size(), result.instances, result.milliseconds,
        result.audit                     ? "; " + result.audit->text()
        : result.proved() && o.audit > 0 ? "; not audited: the time was used up"
                                         : "");
    for (const auto& ob : result.obligations) {
        if (ob.status == verify::Status::proved && !o.verbose) continue;
        if (ob.status == verify::Status::proved) {
            add(text, "  proved      {:<28} {} [{}]\n", ob.kind, printable(ob.text), ob.prover);
        } else if (!result.violated() || o.verbose) {
            add(text, "  {:<11} {}: {}\n{}      {}\n", verify::name_of(ob.status), ob.kind, printable(ob.text), excerpt(sources, ob.loc),
                printable_lines(ob.reason));
        }
    }
    if (result.counterexample) print_counterexample(text, *result.counterexample, o.file, sources);
    if (result.wrongly_proved()) add(text, "  audit:     {}\n  again:     {}\n", wrong_proof, again(o, result, checked.plain_name));
    for (const auto& r : result.warnings)
        add(text, "{}:{}: remark[{}]: {}\n{}  hint: {}\n", ir::place_text(r.loc, o.file), r.loc.column, r.code, r.message,
            excerpt(sources, r.loc), r.hint);
    if (!result.violated()) {
        for (const auto& r : result.accesses.remarks) {
            add(text, "{}:{}: remark[{}]: {}\n{}  hint: {}\n", ir::place_text(r.loc, o.file), r.loc.column, r.code, r.message,
                excerpt(sources, r.loc), r.hint);
        }
    }
    if (o.verbose) {
        if (result.accesses.registers)
            add(text, "  registers: about {} a thread (an estimate; `tilewright emit --to report` compiles and knows)\n",
                result.accesses.registers);
        for (const std::string& u : result.used()) add(text, "  used: {}\n", u);
    }
    return text;
}

// What a run has found so far.
struct Report {
    const Options& options;
    const SourceMap& sources;
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    std::string text;
    std::map<std::string, std::string> verdicts;  // by name, the worst of its variants
    int exit_code = exit_fine;

    void add_checked(const Checked& checked) {
        const diagnose::CheckResult& result = checked.result;
        if (result.wrongly_proved()) exit_code = exit_our_bug;
        else if (result.violated() && exit_code != exit_our_bug) exit_code = exit_kernel_wrong;
        else if (!result.proved() && exit_code == exit_fine) exit_code = exit_not_proved;
        std::string& worst = verdicts.emplace(checked.plain_name, "proved").first->second;
        if (result.wrongly_proved() || (!result.proved() && worst == "proved")) worst = "not_proved";
        if (result.violated()) worst = "violated";
        const std::string said = text_of(options, checked, sources);
        text += said;
        if (options.json || !options.html.empty())
            out[std::string(checked.what) + "s"].push_back(nlohmann::ordered_json(json_of(options, checked, sources)));
        if (!options.json) print_coloured(said);
    }

    std::string verdict() const {
        if (exit_code == exit_fine) return "proved";
        if (exit_code == exit_kernel_wrong && !verdicts.empty()) return "violated";
        return exit_code == exit_not_proved ? "not_proved" : exit_code == exit_our_bug ? "internal_error" : "rejected";
    }

    void finish() {
        out["verdict"] = verdict();
        out["text"] = text;
        out["exit_code"] = exit_code;
    }

    void print_json() {
        finish();
        std::cout << out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    }
};

// A kernel that the program launches and that is not proved; empty where all are. `known`: by name, whether all its variants are.
std::string unproved_kernel(const ir::Module& module, const ir::Program& program, const diagnose::CheckOptions& options,
                            std::map<std::string, bool>& known) {
    for (const ir::Launch& l : program.launches) {
        const std::string& name = module.kernels[static_cast<std::size_t>(l.kernel)].name;
        auto it = known.find(name);
        if (it == known.end()) {
            const bool all = std::all_of(module.kernels.begin(), module.kernels.end(),
                                         [&](const ir::Kernel& k) { return k.name != name || diagnose::check(k, options).proved(); });
            it = known.emplace(name, all).first;
        }
        if (!it->second) return name;
    }
    return "";
}

int run(const Options& o) {
    std::string problem;
    auto values = parse_settings(o.settings, problem);
    if (!values) return complain(exit_bad_input, problem, "write --set BM=64,BN=128");
    if (o.file.ends_with(".toml"))
        return complain(exit_bad_input, o.file + " is a task, not a kernel file", "tilewright optimize " + o.file);
    static const char* const cute_text[] = {".cu", ".cuh", ".hpp", ".h", ".inl"};
    if (std::any_of(std::begin(cute_text), std::end(cute_text), [&](const char* e) { return o.file.ends_with(e); })) {
        const Watchdog watchdog(o.limits);
        return check_cute(o.file, o.log, o.json, o.verbose);
    }
    LoadedFile loaded;
    Report report{o, loaded.sources};
    // The verdicts so far are printed when a kernel is given up.
    Limits limits = o.limits;  // searches and audits have their own time, on every core
    limits.seconds += (std::max(o.seconds, 0.0) + std::max(o.audit, 0.0)) * std::max(1u, std::thread::hardware_concurrency());
    Watchdog watchdog(limits, [&](const std::string& why) {
        if (!o.json) return;
        report.out["gave_up"] = why;
        if (report.exit_code != exit_kernel_wrong) report.exit_code = exit_not_proved;
        report.print_json();
    });
    load_kernel_file(loaded, o.file, *values);
    if (o.json || !o.html.empty()) {
        const auto held = watchdog.hold();
        report.out = {{"schema", "tilewright check 3"}, {"verdict", ""}, {"text", ""}, {"file", o.file}, {"exit_code", 0}};
        report.out.update(nlohmann::ordered_json(tw::to_json(loaded.sink, loaded.sources)));
        report.out["kernels"] = nlohmann::json::array();
        report.out["programs"] = nlohmann::json::array();
        if (!loaded.sink.empty()) report.text = render_text(loaded.sink, loaded.sources);
    }
    if (!o.json && !loaded.sink.empty()) {
        std::cerr << render_text(loaded.sink, loaded.sources);
    }
    report.exit_code = loaded.exit_code;
    bool found = false;
    if (loaded.module) {
        diagnose::CheckOptions options;
        options.search_seconds = o.seconds;
        options.seed = o.seed;
        options.accesses = true;
        options.audit_run = o.audit_run;
        auto wanted = [&](const auto& named) { return o.kernel.empty() || named.name == o.kernel; };
        // The time for audits is that of the file: each of its kernels and programs has its part, a tenth at least while there is some, and
        // what one leaves goes to the others.
        double audit_left = o.audit_run > 0 ? 1 : o.audit;
        auto waiting = std::count_if(loaded.module->kernels.begin(), loaded.module->kernels.end(), wanted) +
                       std::count_if(loaded.module->programs.begin(), loaded.module->programs.end(), wanted);
        auto next_audit = [&] {
            options.audit_seconds =
                audit_left > 0.02 * o.audit
                    ? std::min(audit_left, std::max(audit_left / static_cast<double>(std::max<std::ptrdiff_t>(1, waiting)), o.audit / 10))
                    : 0;
        };
        auto audited = [&](const diagnose::CheckResult& r) {
            --waiting;
            if (r.audit && o.audit_run == 0) audit_left -= r.audit->seconds;
        };
        std::map<std::string, bool> kernel_proved;  // by name: all its variants
        for (const ir::Kernel& k : loaded.module->kernels) {
            if (!wanted(k)) continue;
            found = true;
            watchdog.next(k.name);
            next_audit();
            const diagnose::CheckResult result = diagnose::check(k, options);
            audited(result);
            kernel_proved.emplace(k.name, true).first->second &= result.proved();
            const auto held = watchdog.hold();
            report.add_checked({"kernel", k.variant.empty() ? k.name : k.name + " (" + k.variant + ")", k.name, k.loc, result});
        }
        for (const ir::Program& p : loaded.module->programs) {
            if (!wanted(p)) continue;
            found = true;
            watchdog.next(p.name);
            // It stands on its kernels: one that is not proved, or was not looked at, leaves it unproved.
            options.audit_seconds = 0;
            const std::string unproved = unproved_kernel(*loaded.module, p, options, kernel_proved);
            if (unproved.empty()) next_audit();
            diagnose::CheckResult result = diagnose::check_program(*loaded.module, p, options);
            audited(result);
            for (auto& ob : result.obligations) {
                if (unproved.empty() || ob.status != verify::Status::proved) continue;
                ob.status = verify::Status::not_proved;
                ob.reason = "it follows from what " + unproved + " says it computes, and " + unproved + " is not proved";
            }
            const auto held = watchdog.hold();
            report.add_checked({"program", p.name, p.name, p.loc, result});
        }
        if (!found && o.kernel.empty())
            return complain(exit_bad_input, o.file + " holds no kernel and no program", "a kernel is a function with @tw.kernel");
        if (!found && !o.kernel.empty()) return no_such_kernel(*loaded.module, o.kernel, o.file);
    }
    if (loaded.module && loaded.sources.size() > 0) runtime::record_verdicts(loaded.text, *values, report.verdicts);
    const auto held = watchdog.hold();
    if (!o.html.empty()) {
        report.finish();
        if (auto written = write_file_atomically(o.html, report::check_page(report.out)); !written)
            return complain(exit_bad_input, written.error());
        fmt::print(stderr, "the page is {}\n", o.html);
    }
    if (o.json) report.print_json();
    return report.exit_code;
}

}  // namespace check_command

std::function<int()> declare_check(CLI::App& app) {
    using namespace check_command;
    auto options = std::make_shared<Options>();
    app.add_option("file", options->file, "a kernel file, or CuTe text (.cu, .cuh, .hpp, .h, .inl: docs/cute.md)")->required();
    app.add_option("--kernel", options->kernel, "only the kernels, or the program, of this name");
    app.add_option("--set", options->settings, "const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_option("--log", options->log, "of CuTe text: what nvcc or NVRTC said of it, to be read with it");
    app.add_option("--search", options->seconds, "seconds to look for a counterexample to what is not proved");
    app.add_option(
           "--audit", options->audit,
           "seconds of the file's audit: what is proved also runs on the emulator, with other sizes, data and schedules (0: it does not)")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 86400.0));
    app.add_option("--audit-run", options->audit_run, "only this run of the audit, as a failed one says")->check(CLI::PositiveNumber);
    app.add_option("--seed", options->seed, "seed of the search");
    declare_limits(app, options->limits);
    app.add_flag("--json", options->json, "print JSON (schema in docs/verifier.md)");
    app.add_option("--html", options->html, "also write the result as a page: verdicts, the run of a counterexample, its picture");
    app.add_flag("-v,--verbose", options->verbose, "print every assertion and what its proof used");
    app.footer(
        "Exit code: 0 everything proved, 1 wrong (a counterexample is shown) or rejected by the language, 2 bad usage or an unreadable "
        "file, 3 not proved or given up at a limit, 70 our bug "
        "(an audit refutes a proof).\n"
        "Example: tilewright check kernels/gemm_sm90.py -v");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
