// Reading tasks: a TOML file, or one line of `computes` with shapes on the command line.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "tasks/task.h"

namespace tw::tasks {

// The task, or nothing and errors in `sink`. The text is untrusted. `sources` gets the text and whatever diagnostics point into.
std::optional<Task> load_task_text(SourceMap& sources, const std::string& name, const std::string& text, DiagnosticSink& sink);
std::optional<Task> load_task_file(SourceMap& sources, const std::string& path, DiagnosticSink& sink);

// Resolves `computes` against the signature and sets `spec` and, unless the task names one, the workload class. False: errors in `sink`.
bool resolve_task(SourceMap& sources, Task& task, bool class_given, DiagnosticSink& sink);

}  // namespace tw::tasks
