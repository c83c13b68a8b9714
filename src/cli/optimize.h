// What `optimize` and `resume` share.
#pragma once

#include <string>

#include "cli/task_options.h"
#include "plan/loop.h"
#include "units/engine.h"

namespace tw::cli {

struct OptimizeOptions {
    TaskOptions task;
    std::string proposer = "builtin", journal, memory, out, without, page, replay, unit_result;
    std::vector<std::string> more;  // further tasks, for an engine
    units::EngineOptions engine;
    plan::LoopOptions loop;
    bool no_gpu = false, serve = false;
    int port = 0;  // of the page that is served
};

// Runs the loop on `task`, or goes on with the run `resume`; prints a line a step; writes kernel and page. An ExitCode.
int optimize_task(const OptimizeOptions& options, const tasks::Task& task, const std::string& resume);

}  // namespace tw::cli
