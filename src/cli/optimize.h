// What `optimize` and `resume` share.
#pragma once

#include <string>

#include "plan/loop.h"
#include "tasks/line.h"

namespace tw::cli {

struct OptimizeOptions {
    std::string task, proposer = "builtin", journal, memory, out, without, page, save_task, replay;
    tasks::OneLine line;          // instead of `task`, when its `computes` is given
    plan::LoopOptions loop;
    bool no_gpu = false;
};

// Runs the loop on `task`, or goes on with the run `resume`; prints a line a step; writes kernel and page. An ExitCode.
int optimize_task(const OptimizeOptions& options, const tasks::Task& task, const std::string& resume);

}  // namespace tw::cli
