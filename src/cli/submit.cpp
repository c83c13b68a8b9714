// `tilewright submit TASK FILE`: one candidate through the gates of the loop.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command.h"
#include "cli/task_options.h"
#include "cli/terminal.h"
#include "lang/bundle.h"
#include "plan/feedback.h"
#include "plan/gates.h"
#include "tasks/classify.h"

namespace tw::cli {
namespace submit_command {

struct Options {
    TaskOptions task;
    std::string file, against;
    bool json = false, no_gpu = false;
};

Expected<std::string, std::string> candidate_text(const tasks::Task& task, const std::string& file) {
    return task.language == "cute" ? read_file(file) : lang::kernel_text(file);
}

int run(const Options& o) {
    TaskOptions stated = o.task;
    std::string file = o.file;
    if (!stated.line.computes.empty() && file.empty()) std::swap(stated.file, file);  // the one name given is the candidate's
    if (file.empty())
        return complain(exit_bad_input, "no candidate",
                        "tilewright submit TASK FILE, or tilewright submit FILE --computes \"...\" --set M=512,N=1024");
    const auto task = load_task(stated);
    if (!task) return exit_bad_input;
    auto source = candidate_text(*task, file);
    if (!source) return complain(exit_bad_input, source.error());
    std::string best;
    if (!o.against.empty()) {
        auto text = candidate_text(*task, o.against);
        if (!text) return complain(exit_bad_input, text.error());
        best = *text;
    }
    plan::GateOptions options;
    options.use_gpu = !o.no_gpu;
    plan::Judgement j = plan::judge_static(*task, *source, options);
    if (j.failure == plan::FailureClass::none) {
        plan::GpuGate gpu(options);
        gpu.judge(*task, *source, best, 0, j);
    }
    const bool passed = j.failure == plan::FailureClass::none;
    const tasks::Roofline roof = tasks::roofline(*task, tasks::machine_of(task->target));
    if (o.json) {
        nlohmann::json out = {{"passed", passed},
                              {"failure_class", plan::name_of(j.failure)},
                              {"message", j.message},
                              {"feedback", j.feedback},
                              {"request", plan::request_for(j.failure)},
                              {"findings", j.findings},
                              {"gates", j.gates},
                              {"verdict", j.verdict},
                              {"proved", j.proved},
                              {"obligations", j.obligations},
                              {"used", j.used},
                              {"roofline_microseconds", roof.seconds * 1e6}};
        if (j.resources_known)
            out["resources"] = {
                {"registers", j.registers}, {"spill_bytes", j.spill_bytes}, {"shared_bytes", j.shared_bytes}, {"threads", j.threads}};
        if (j.measured) out["microseconds"] = j.microseconds, out["roofline_share"] = roof.seconds * 1e6 / j.microseconds;
        if (j.speedup > 0) out["speedup"] = j.speedup;
        print_json(out);
    } else {
        for (const auto& g : j.gates) {
            const std::string verdict = g["passed"].is_null() ? "skipped" : g["passed"].get<bool>() ? "passed" : "refused";
            fmt::print("{:<14} {:<8} {:>6.2f} s  {}\n", g.value("gate", ""), verdict, g.value("seconds", 0.0),
                       printable(g.value("detail", "")));
        }
        if (!passed)
            fmt::print("{}: {}\n{}\n{}\n", plan::name_of(j.failure), printable(j.message), printable_lines(j.feedback),
                       plan::request_for(j.failure));
        if (j.measured) fmt::print("{:.2f} us, {:.0f}% of the roofline\n", j.microseconds, 100 * roof.seconds * 1e6 / j.microseconds);
    }
    return passed ? exit_fine : exit_kernel_wrong;
}

}  // namespace submit_command

std::function<int()> declare_submit(CLI::App& app) {
    using namespace submit_command;
    auto o = std::make_shared<Options>();
    app.add_option("task", o->task.file, "a task file; left out where --computes states the task")->required();
    app.add_option("file", o->file, "the candidate: a kernel file");
    declare_task_line(app, o->task);
    app.add_option("--against", o->against, "another kernel file, timed in turn with it");
    app.add_flag("--json", o->json, "print JSON");
    app.add_flag("--no-gpu", o->no_gpu, "do not use a GPU even if there is one");
    app.footer("Exit status: 0 it passed every gate that this machine has, 1 it was refused, 2 bad input.");
    return [o] { return run(*o); };
}

}  // namespace tw::cli
