// A task on the command line: a file, or one line of `computes` and what it does not tell.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tasks/line.h"
#include "tasks/task.h"

namespace tw::cli {

struct TaskOptions {
    std::string file, save;  // `save`: where the one-line task is written as a file
    tasks::OneLine line;     // instead of `file`, when its `computes` is given
};

// The options that state a task in one line; the positional of the file is the command's own.
void declare_task_line(CLI::App& app, TaskOptions& options);

// The task, or nothing when an error was printed (the exit status is then exit_bad_input).
std::optional<tasks::Task> load_task(const TaskOptions& options);

}  // namespace tw::cli
