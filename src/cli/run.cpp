// `tilewright run FILE`: execute a kernel on the emulator or the GPU with random data and compare with `computes` in fp64.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/evidence.h"
#include "cli/kernel_file.h"
#include "cli/terminal.h"
#include "emulate/program.h"
#include "emulate/trial.h"
#include "runtime/evaluate.h"
#include "runtime/profile.h"

namespace tw::cli {
namespace run_command {

struct Options {
    CandidateOptions candidate;
    std::string target = "cpu", sanitizer;
    int schedules = 0, blocks = 4, seeds = 1;
    bool json = false, check = false;
};

// On the GPU, in a worker: outputs poisoned, inputs by seed, compared with the fp64 reference there.
int run_on_gpu(const Options& o) {
    Requested asked = request_from(o.candidate);
    if (asked.exit_code != exit_fine) return asked.exit_code;
    runtime::SessionLimits limits;
    limits.seconds = o.candidate.timeout;
    runtime::EvaluationSession session(limits);
    nlohmann::json results = nlohmann::json::array();
    int worst = exit_fine;
    for (int i = 0; i < std::max(1, o.seeds); ++i) {
        asked.request["seed"] = o.candidate.seed + static_cast<std::uint64_t>(i);
        nlohmann::json evidence = session.evaluate(asked.request);
        evidence["command"] = own_command();
        const int code = runtime::exit_status_of(evidence);
        worst = std::max(worst, code);
        if (!o.json) fmt::print("{}", describe(evidence));
        results.push_back(std::move(evidence));
        if (code == exit_not_measured) break;  // the next seed would find no GPU either
    }
    if (o.json) write_json("-", results.size() == 1 ? results[0] : nlohmann::json{{"results", results}});
    return worst;
}

// The same under compute-sanitizer: its errors are the kernel's.
int run_sanitized(const Options& o) {
    static constexpr std::string_view tools[] = {"memcheck", "racecheck", "synccheck", "initcheck"};
    if (std::find(std::begin(tools), std::end(tools), o.sanitizer) == std::end(tools))
        return complain(exit_bad_input, fmt::format("there is no sanitizer '{}'", o.sanitizer),
                        "the sanitizers are memcheck, racecheck, synccheck and initcheck");
    Requested asked = request_from(o.candidate);
    if (asked.exit_code != exit_fine) return asked.exit_code;
    nlohmann::json result = runtime::sanitize(asked.request, o.sanitizer, o.candidate.timeout);
    result["command"] = own_command();
    if (o.json) write_json("-", result);
    else if (result.contains("problem")) fmt::print("{}: {}\n", o.sanitizer, result["problem"].get<std::string>());
    else
        fmt::print("{}{}: {} errors\n{}", describe(result["evidence"]), o.sanitizer, result["errors"].get<int>(),
                   result.value("report", ""));
    if (result.contains("problem")) return exit_not_measured;
    return result["errors"].get<int>() > 0 ? exit_kernel_wrong + 0 : runtime::exit_status_of(result["evidence"]);
}

// On standard error while a run takes long: how far it is and how long it will take.
class ProgressLine {
public:
    explicit ProgressLine(double limit_s) : limit_(limit_s) {}
    bool update(const emulate::Progress& p) {
        const double now = elapsed();
        // The time before the first cluster's end belongs to making the inputs: it does not come again with every cluster.
        if (first_ < 0) first_ = now, first_done_ = p.clusters_done;
        else if (p.clusters_done > first_done_)
            total_ = first_ +
                     (now - first_) / static_cast<double>(p.clusters_done - first_done_) * static_cast<double>(p.clusters - first_done_);
        if (now > limit_) return false;
        if (now < next_) return true;
        next_ = now + (live_ ? 1 : 10);
        std::string text =
            fmt::format("{:.0f} s: {} of {} clusters of blocks, {} statements", now, p.clusters_done, p.clusters, p.statements);
        if (total_ > 0)
            text += fmt::format("; about {:.0f} s in all{}", total_,
                                total_ > limit_ ? fmt::format(", more than --timeout {:.0f}", limit_) : "");
        fmt::print(stderr, "{}emulating, {}{}", live_ ? "\r\033[K" : "", text, live_ ? "" : "\n");
        std::fflush(stderr);
        shown_ = true;
        return true;
    }
    void clear() const {
        if (shown_ && live_) fmt::print(stderr, "\r\033[K");
    }
    std::string estimate() const { return total_ > 0 ? fmt::format("; all of it would take about {:.0f} s", total_) : ""; }

private:
    double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    bool live_ = ::isatty(STDERR_FILENO) != 0, shown_ = false;
    double limit_, next_ = 2, total_ = 0, first_ = -1;
    std::int64_t first_done_ = 0;
};

// What is run: a kernel, or the launches of a program.
struct Chosen {
    const ir::Kernel* kernel = nullptr;
    const ir::Program* program = nullptr;
    ir::Kernel signature;  // a program's, as a kernel
    std::vector<std::int64_t> sizes;
    std::string missing;  // a size without a value
};

std::optional<std::vector<std::int64_t>> sizes_by_name(const std::vector<std::string>& names,
                                                       const std::map<std::string, std::int64_t>& values, std::string& missing) {
    std::vector<std::int64_t> out;
    for (const std::string& name : names) {
        const auto it = values.find(name);
        if (it == values.end()) return missing = name, std::nullopt;
        out.push_back(it->second);
    }
    return out;
}

// The first variant whose assumptions hold, as the launcher does; or a program, by its name.
void choose(Chosen& out, const ir::Module& module, const std::string& wanted, const std::map<std::string, std::int64_t>& values) {
    for (const ir::Kernel& k : module.kernels) {
        if (!wanted.empty() && k.name != wanted) continue;
        const auto sizes = sizes_by_name(k.sizes, values, out.missing);
        if (!sizes) continue;
        const bool holds = std::all_of(k.assumptions.begin(), k.assumptions.end(), [&](const ir::Assumption& a) {
            const auto v = emulate::size_value(a.condition, *sizes);
            return v && *v != 0;
        });
        if (!holds) continue;
        out.kernel = &k;
        out.sizes = *sizes;
        return;
    }
    for (const ir::Program& p : module.programs) {
        if (p.name != wanted) continue;
        const auto sizes = sizes_by_name(p.sizes, values, out.missing);
        if (!sizes) return;
        out.sizes = *sizes;
        out.program = &p;
        out.signature = emulate::signature_of(p);
        out.kernel = &out.signature;
        return;
    }
}

nlohmann::json trial_json(const emulate::Trial& trial, const ir::Kernel& kernel, const emulate::Schedule& schedule) {
    nlohmann::json errors = nlohmann::json::array(), faults = nlohmann::json::array();
    for (const auto& e : trial.outputs)
        errors.push_back({{"output", kernel.tensors[static_cast<std::size_t>(e.tensor)].name},
                          {"relative_error", e.error.relative_frobenius},
                          {"worst", e.error.worst},
                          {"tolerance", e.tolerance},
                          {"wrong", e.wrong}});
    for (const auto& f : trial.outcome.faults)
        faults.push_back({{"kind", emulate::name_of(f.kind)},
                          {"message", f.message},
                          {"line", f.loc.line},
                          {"thread", f.thread},
                          {"element", f.element}}),
            f.loc.file.empty() ? void() : void(faults.back()["file"] = f.loc.file);
    return {{"schedule", schedule.describe()}, {"right", !trial.failed()},          {"outputs", errors},       {"faults", faults},
            {"blocks", trial.outcome.blocks},  {"statements", trial.outcome.steps}, {"seconds", trial.seconds}};
}

void print_trial(const emulate::Trial& trial, const ir::Kernel& kernel, const emulate::Schedule& schedule, const SourceMap& sources) {
    std::string text;
    for (const auto& e : trial.outputs)
        text += fmt::format(" {}: error {:.2e}, worst {:.2e} (allowed {:.1e})", kernel.tensors[static_cast<std::size_t>(e.tensor)].name,
                            e.error.relative_frobenius, e.error.worst, e.tolerance);
    fmt::print("{} {}{} on the emulator, {}: {} blocks, {} statements, {:.2f} s:{}\n", trial.failed() ? "WRONG" : "right", kernel.name,
               kernel.variant.empty() ? "" : " (" + kernel.variant + ")", schedule.describe(), trial.outcome.blocks, trial.outcome.steps,
               trial.seconds, text);
    if (!trial.failed()) return;
    fmt::print("  {}\n", trial.summary(kernel));
    if (!trial.outcome.faults.empty()) fmt::print("{}", excerpt(sources, trial.outcome.faults.front().loc));
}

int run(const Options& o) {
    if (!o.sanitizer.empty()) return run_sanitized(o);
    if (o.target == "gpu") return run_on_gpu(o);
    if (o.target != "cpu")
        return complain(exit_bad_input, fmt::format("there is no target '{}'", o.target), "the targets are cpu (the emulator) and gpu");
    Requested asked = request_from(o.candidate);
    if (asked.exit_code != exit_fine) return asked.exit_code;
    LoadedFile loaded;
    load_kernel_file(loaded, asked.request["file"], asked.request["constants"].get<lower::ConstValues>());
    if (!loaded.module) return rejected(loaded.sink, loaded.sources);
    if (!loaded.sink.empty()) std::cerr << render_text(loaded.sink, loaded.sources);
    Chosen chosen;
    choose(chosen, *loaded.module, o.candidate.kernel, asked.request["sizes"].get<std::map<std::string, std::int64_t>>());
    if (!chosen.kernel && !chosen.missing.empty())
        return complain(exit_bad_input, fmt::format("size {} has no value", chosen.missing),
                        fmt::format("add --set {}=...", chosen.missing));
    if (!chosen.kernel) return complain(exit_bad_input, "no kernel variant accepts these sizes", "look at its tw.assume(...) statements");
    const ir::Kernel& kernel = *chosen.kernel;
    std::vector<emulate::Schedule> schedules = {emulate::Schedule{}};
    if (o.schedules > 0) schedules = emulate::hostile_schedules(kernel, o.schedules, o.candidate.seed);
    nlohmann::json out = {{"kernel", kernel.name}, {"file", asked.request["file"]}, {"runs", nlohmann::json::array()}};
    bool wrong = false;
    for (const emulate::Schedule& schedule : schedules) {
        emulate::TrialOptions t;
        t.seed = o.candidate.seed;
        t.tolerance = o.candidate.tolerance;
        t.scalars = asked.request.value("scalars", t.scalars);
        t.inputs = asked.request.value("inputs", t.inputs);
        t.emulator.schedule = schedule;
        t.emulator.resident_blocks = o.blocks;
        ProgressLine progress(o.candidate.timeout);
        t.emulator.progress = [&](const emulate::Progress& p) { return progress.update(p); };
        const emulate::Trial trial = chosen.program ? emulate::run_program(*loaded.module, *chosen.program, chosen.sizes, t)
                                                    : emulate::run_trial(kernel, chosen.sizes, t);
        progress.clear();
        if (trial.gave_up)
            return complain(exit_not_measured, "the emulator gave up: " + trial.refused + progress.estimate(),
                            "smaller sizes, or a longer --timeout; nothing wrong was found so far");
        if (!trial.refused.empty())
            return complain(exit_bad_input, trial.refused, "look at its tw.assume(...) statements, or take smaller sizes");
        wrong |= trial.failed();
        if (o.json) out["runs"].push_back(trial_json(trial, kernel, schedule));
        else print_trial(trial, kernel, schedule, loaded.sources);
    }
    out["verdict"] = wrong ? "wrong" : "right";
    if (o.json) print_json(out);
    return wrong ? exit_kernel_wrong : exit_fine;
}

}  // namespace run_command

std::function<int()> declare_run(CLI::App& app) {
    using namespace run_command;
    auto options = std::make_shared<Options>();
    declare_candidate(app, options->candidate, true);
    app.add_option("--target", options->target, "cpu: the emulator; gpu: this machine's GPU")->capture_default_str();
    app.add_option("--schedules", options->schedules, "cpu: also run hostile schedules, with this many random ones")
        ->check(CLI::Range(0, 10'000));
    app.add_option("--blocks", options->blocks, "cpu: resident blocks of a persistent kernel")
        ->capture_default_str()
        ->check(CLI::Range(1, 65'536));
    app.add_option("--seeds", options->seeds, "gpu: how many seeds, from --seed on")->capture_default_str()->check(CLI::Range(1, 100'000));
    app.add_option("--sanitizer", options->sanitizer, "gpu: under compute-sanitizer: memcheck, racecheck, synccheck or initcheck");
    app.add_flag("--check", options->check, "compare with the fp64 reference; always done, here for scripts that say so");
    app.add_flag("--json", options->json, "print JSON");
    app.footer(
        "Exit status: 0 right, 1 wrong (or rejected, faulted, timed out), 2 bad usage, 3 no GPU here: the compiler's figures are given "
        "instead, 70 our bug.\n"
        "Examples: tilewright run kernels/softmax.py --set M=5,N=300 --schedules 4\n"
        "          tilewright run kernels/gemm_sm90.py --target gpu --check --set M=512,N=512,K=256 --seeds 3");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
