// `tilewright run FILE --target cpu`: execute a kernel on the emulator with random data and compare with `computes` in fp64.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/kernel_file.h"
#include "emulate/trial.h"

namespace tw::cli {
namespace {

struct Options {
    std::string file, kernel, target = "cpu";
    std::vector<std::string> settings;
    std::uint64_t seed = 1;
    int schedules = 0;
    int blocks = 4;
    bool json = false;
};

int run(const Options& o) {
    if (o.target != "cpu") {
        return complain(exit_bad_input, fmt::format("target '{}' is not available in this command", o.target), "use --target cpu; on a machine with a GPU use the Python package");
    }
    std::string problem;
    auto values = parse_settings(o.settings, problem);
    if (!values) return complain(exit_bad_input, problem, "write --set M=64,N=128,BM=64");
    // A setting is a size where the kernel has one of that name, otherwise a const parameter: load once to learn the names.
    lower::ConstValues constants;
    {
        LoadedFile names;
        load_kernel_file(names, o.file, {});
        if (!names.module) {
            std::cerr << render_text(names.sink, names.sources);
            return names.exit_code;
        }
        for (const auto& [name, value] : *values) {
            bool size = false;
            for (const ir::Kernel& k : names.module->kernels) size |= std::find(k.sizes.begin(), k.sizes.end(), name) != k.sizes.end();
            if (!size) constants[name] = value;
        }
    }
    LoadedFile loaded;
    load_kernel_file(loaded, o.file, constants);
    if (!loaded.sink.empty()) std::cerr << render_text(loaded.sink, loaded.sources);
    if (!loaded.module) return loaded.exit_code;
    // The first variant whose assumptions hold, as the launcher does.
    const ir::Kernel* chosen = nullptr;
    std::vector<std::int64_t> sizes;
    std::string missing;
    for (const ir::Kernel& k : loaded.module->kernels) {
        if (!o.kernel.empty() && k.name != o.kernel) continue;
        std::vector<std::int64_t> mine;
        bool complete = true;
        for (const std::string& name : k.sizes) {
            auto it = values->find(name);
            if (it == values->end()) {
                missing = name;
                complete = false;
                break;
            }
            mine.push_back(it->second);
        }
        if (!complete) continue;
        bool holds = true;
        for (const ir::Assumption& a : k.assumptions) {
            auto v = emulate::size_value(a.condition, mine);
            holds &= v && *v != 0;
        }
        if (!holds) continue;
        chosen = &k;
        sizes = mine;
        break;
    }
    if (!chosen) {
        if (!missing.empty()) return complain(exit_bad_input, fmt::format("size {} has no value", missing), fmt::format("add --set {}=...", missing));
        return complain(exit_bad_input, "no kernel variant accepts these sizes", "look at its tw.assume(...) statements");
    }
    std::vector<emulate::Schedule> schedules = {emulate::Schedule{}};
    if (o.schedules > 0) schedules = emulate::hostile_schedules(*chosen, o.schedules, o.seed);
    nlohmann::json out = {{"kernel", chosen->name}, {"file", o.file}, {"runs", nlohmann::json::array()}};
    bool wrong = false;
    for (const emulate::Schedule& schedule : schedules) {
        emulate::TrialOptions t;
        t.seed = o.seed;
        t.emulator.schedule = schedule;
        t.emulator.resident_blocks = o.blocks;
        const emulate::Trial trial = emulate::run_trial(*chosen, sizes, t);
        if (!trial.refused.empty()) return complain(exit_bad_input, trial.refused);
        wrong |= trial.failed();
        nlohmann::json errors = nlohmann::json::array();
        std::string text;
        for (const auto& e : trial.outputs) {
            const std::string& name = chosen->tensors[static_cast<std::size_t>(e.tensor)].name;
            errors.push_back({{"output", name}, {"relative_error", e.error.relative_frobenius}, {"worst", e.error.worst}, {"tolerance", e.tolerance}, {"wrong", e.wrong}});
            text += fmt::format(" {}: error {:.2e}, worst {:.2e} (allowed {:.1e})", name, e.error.relative_frobenius, e.error.worst, e.tolerance);
        }
        if (o.json) {
            nlohmann::json faults = nlohmann::json::array();
            for (const auto& f : trial.outcome.faults) faults.push_back({{"kind", emulate::name_of(f.kind)}, {"message", f.message}, {"line", f.loc.line}, {"thread", f.thread}, {"element", f.element}});
            out["runs"].push_back({{"schedule", schedule.describe()}, {"right", !trial.failed()}, {"outputs", errors}, {"faults", faults}, {"blocks", trial.outcome.blocks}, {"statements", trial.outcome.steps}, {"seconds", trial.seconds}});
            continue;
        }
        fmt::print("{} {} on the emulator, {}: {} blocks, {} statements, {:.2f} s:{}\n", trial.failed() ? "WRONG" : "right", chosen->name, schedule.describe(), trial.outcome.blocks, trial.outcome.steps,
                   trial.seconds, text);
        if (trial.failed()) {
            fmt::print("  {}\n", trial.summary(*chosen));
            if (!trial.outcome.faults.empty()) fmt::print("{}", excerpt(loaded.sources, trial.outcome.faults.front().loc));
        }
    }
    if (o.json) std::cout << out.dump(2) << "\n";
    return wrong ? exit_kernel_wrong : exit_fine;
}

}  // namespace

std::function<int()> declare_run(CLI::App& app) {
    auto options = std::make_shared<Options>();
    app.add_option("file", options->file, "a kernel file")->required();
    app.add_option("--kernel", options->kernel, "kernel (or variant family) to run");
    app.add_option("--target", options->target, "cpu: the emulator")->capture_default_str();
    app.add_option("--set", options->settings, "sizes and const parameters, NAME=VALUE[,NAME=VALUE...]");
    app.add_option("--seed", options->seed, "seed of the random inputs")->capture_default_str();
    app.add_option("--schedules", options->schedules, "also run hostile schedules, with this many random ones");
    app.add_option("--blocks", options->blocks, "resident blocks of a persistent kernel")->capture_default_str();
    app.add_flag("--json", options->json, "print JSON");
    app.footer("Example: tilewright run kernels/softmax.py --set M=5,N=300 --schedules 4");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
