// `tilewright replay CERTIFICATE`: does what a certificate claims hold here and now?
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/input.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "cli/terminal.h"
#include "plan/gates.h"
#include "report/evidence.h"
#include "tasks/load.h"

namespace tw::cli {
namespace replay_command {

struct Options {
    std::string file;
    bool json = false;
};

int run(const Options& o) {
    auto text = read_file(o.file);
    if (!text) return complain(exit_bad_input, text.error());
    const auto kernel = report::certified_kernel(parse_json(*text));
    if (!kernel) return complain(exit_bad_input, o.file + ": " + kernel.error().message, kernel.error().fix);
    SourceMap sources;
    DiagnosticSink sink;
    const auto task = tasks::load_task_text(sources, "task.toml", kernel->task_text, sink);
    if (!task) return rejected(sink, sources, exit_bad_input);
    const plan::GateOptions options;
    plan::Judgement judged = plan::judge_static(*task, kernel->source, options);
    if (judged.failure == plan::FailureClass::none) {
        plan::GpuGate gpu(options);
        gpu.judge(*task, kernel->source, {}, 0, judged);
    }
    const bool holds = judged.failure == plan::FailureClass::none && judged.verdict == "proved";
    if (o.json) {
        const nlohmann::json out = {
            {"holds", holds},
            {"verdict", judged.verdict},
            {"gates", judged.gates},
            {"microseconds", judged.measured ? nlohmann::json(judged.microseconds) : nlohmann::json(nullptr)},
            {"certified_microseconds", kernel->microseconds ? nlohmann::json(*kernel->microseconds) : nlohmann::json(nullptr)},
            {"message", judged.message}};
        print_json(out);
        return holds ? exit_fine : exit_kernel_wrong;
    }
    for (const auto& gate : judged.gates) {
        const auto& passed = gate["passed"];
        fmt::print("{:<14} {:<8} {}\n", gate.value("gate", ""),
                   !passed.is_boolean() ? "skipped"
                   : passed.get<bool>() ? "passed"
                                        : "REFUSED",
                   printable(gate.value("detail", "")));
    }
    fmt::print("{}: {} of {} assertions proved", holds ? "holds" : "DOES NOT HOLD", judged.proved, judged.obligations);
    if (judged.measured)
        fmt::print(", {:.1f} us here{}", judged.microseconds,
                   kernel->microseconds ? fmt::format(", {:.1f} us certified", *kernel->microseconds) : "");
    fmt::print("\n");
    if (!holds) fmt::print("{}\n", printable(judged.message));
    return holds ? exit_fine : exit_kernel_wrong;
}

}  // namespace replay_command

std::function<int()> declare_replay(CLI::App& app) {
    using namespace replay_command;
    auto options = std::make_shared<Options>();
    app.add_option("certificate", options->file, "a file that `tilewright show RUN --evidence` made")->required();
    app.add_flag("--json", options->json, "print JSON");
    app.footer("Exit status: 0 it holds as far as this machine can tell, 1 it does not, 2 bad input.");
    return [options] { return run(*options); };
}

}  // namespace tw::cli
