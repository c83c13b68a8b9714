// What the commands that take a kernel file share: settings on the command line, loading, and saying what is wrong.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tw::cli {

// "BM=64,BN=128" and repeated options alike; nothing (and `problem`) when one is not NAME=INTEGER.
std::optional<std::map<std::string, std::int64_t>> parse_settings(const std::vector<std::string>& settings, std::string& problem);

struct LoadedFile {
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<ir::Module> module;
    int exit_code = 0;        // of the failure when there is no module
};

// Parses and lowers. Diagnostics are left in `sink`; nothing is printed.
void load_kernel_file(LoadedFile& into, const std::string& path, const lower::ConstValues& constants, const lower::StepObserver& observer = {});

// The source line with a caret under the column, indented; empty when the place is unknown.
std::string excerpt(const SourceMap& sources, const ir::Loc& loc);

}  // namespace tw::cli
