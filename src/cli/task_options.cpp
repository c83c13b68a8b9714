#include "cli/task_options.h"

#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/kernel_file.h"
#include "tasks/load.h"

namespace tw::cli {

void declare_task_line(CLI::App& app, TaskOptions& o) {
    app.add_option("--computes", o.line.computes, "the task in one line instead: its equations");
    app.add_option("--set", o.line.sets, "sizes of the one-line task: M=4096,N=4096 (a dimension indexed by m has size M)")
        ->allow_extra_args(false);
    app.add_option("--dtype", o.line.dtypes, "types that the equations do not tell: A=bf16,B=bf16")->allow_extra_args(false);
    app.add_option("--scalar", o.line.scalars, "numbers passed to the kernel: eps=1e-5")->allow_extra_args(false);
    app.add_option("--shape", o.line.shapes, "a tensor's shape where no plain variable tells it: X=M,K")->allow_extra_args(false);
    app.add_option("--name", o.line.name, "name of the one-line task")->capture_default_str();
    app.add_option("--target", o.line.target, "target of the one-line task: sm_90a or sm_80")->capture_default_str();
    app.add_option("--save-task", o.save, "write the one-line task as a task file here");
}

std::optional<tasks::Task> load_task(const TaskOptions& o) {
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<tasks::Task> task;
    if (o.line.computes.empty()) {
        if (o.file.empty()) {
            complain(exit_bad_input, "no task",
                     "name a task file, or state one: --computes \"Y[m, n] = relu(X[m, n])\" --set M=512,N=1024");
            return std::nullopt;
        }
        task = tasks::load_task_file(sources, o.file, sink);
    } else {
        if (!o.file.empty()) {
            complain(exit_bad_input, "a task file and --computes are two tasks", "give one of them");
            return std::nullopt;
        }
        if (const auto text = tasks::task_text(o.line, sources, sink)) {
            task = tasks::load_task_text(sources, o.line.name + ".toml", *text, sink);
            if (task && !o.save.empty()) {
                if (auto ok = write_file_atomically(o.save, *text); !ok) {
                    complain(exit_bad_input, ok.error());
                    return std::nullopt;
                }
            }
        }
    }
    if (!task) rejected(sink, sources, exit_bad_input);
    return task;
}

}  // namespace tw::cli
