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

// "kernels/gemm.py@BM=64,BN=128": a file and const parameters for it.
struct FileSpec {
    std::string file;
    std::map<std::string, std::int64_t> constants;
};
std::optional<FileSpec> parse_file_spec(const std::string& text, std::string& problem);

struct LoadedFile {
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<ir::Module> module;
    int exit_code = 0;        // of the failure when there is no module
};

// Parses and lowers. Diagnostics are left in `sink`; nothing is printed.
void load_kernel_file(LoadedFile& into, const std::string& path, const lower::ConstValues& constants, const lower::StepObserver& observer = {});

// Which of the settings are sizes of a kernel or program of the file; the others are const parameters.
struct SplitSettings {
    std::map<std::string, std::int64_t> sizes, constants;
};
SplitSettings split_settings(const ir::Module& module, const std::map<std::string, std::int64_t>& settings);

// The source line with a caret under the column, indented; empty when the place is unknown.
std::string excerpt(const SourceMap& sources, const ir::Loc& loc);

}  // namespace tw::cli
