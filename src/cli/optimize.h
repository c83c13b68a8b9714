// What `optimize` and `resume` share.
#pragma once

#include <string>

#include "cli/task_options.h"
#include "plan/loop.h"

namespace tw::cli {

struct OptimizeOptions {
    TaskOptions task;
    std::string proposer = "builtin", journal, memory, out, without, page, replay;
    plan::LoopOptions loop;
    bool no_gpu = false;
};

// Runs the loop on `task`, or goes on with the run `resume`; prints a line a step; writes kernel and page. An ExitCode.
int optimize_task(const OptimizeOptions& options, const tasks::Task& task, const std::string& resume);

}  // namespace tw::cli
