// What the commands that take a kernel file share: settings on the command line, loading, and saying what is wrong.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lower/lower.h"

namespace tw::cli {

// "BM=64,T=bf16" and repeated options alike; nothing (and `problem`) when one is not NAME=INTEGER or NAME=NAME.
std::optional<lower::ConstValues> parse_settings(const std::vector<std::string>& settings, std::string& problem);

// "kernels/gemm.py@BM=64,BN=128": a file and const parameters for it.
struct FileSpec {
    std::string file;
    lower::ConstValues constants;
};
std::optional<FileSpec> parse_file_spec(const std::string& text, std::string& problem);

struct LoadedFile {
    std::string text;  // with those of the kernel files that it imports (lang/bundle.h)
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<ir::Module> module;
    int exit_code = 0;  // of the failure when there is no module
};

// The exit status for a file that was refused: bad input where there is no text to judge or the command line is wrong, else a wrong kernel.
int refusal_status(const DiagnosticSink& sink);

// Says what is wrong with a file, where errors are JSON as such an error with its `diagnostics`. Returns `code`, or refusal_status(sink).
int rejected(const DiagnosticSink& sink, const SourceMap& sources, std::optional<int> code = {});

// Parses and lowers. Diagnostics are left in `sink`; nothing is printed.
void load_kernel_file(LoadedFile& into, const std::string& path, const lower::ConstValues& constants,
                      const lower::StepObserver& observer = {});

// The same where only whole numbers will do: sizes.
std::optional<std::map<std::string, std::int64_t>> parse_sizes(const std::vector<std::string>& settings, std::string& problem);

// Which of the settings are sizes of a kernel or program of the file; the others are const parameters.
struct SplitSettings {
    std::map<std::string, std::int64_t> sizes;
    lower::ConstValues constants;
};
std::optional<SplitSettings> split_settings(const ir::Module& module, const lower::ConstValues& settings, std::string& problem);

// Kernels and programs that can be named, each once.
std::vector<std::string> names_in(const ir::Module& module);
// Says that the file has no kernel of this name, and what was meant; the exit status.
int no_such_kernel(const ir::Module& module, const std::string& name, const std::string& file);

// The source line with a caret under the column, indented; empty when the place is unknown.
std::string excerpt(const SourceMap& sources, const ir::Loc& loc);
// The line alone, without the spaces around it; empty where there is none.
std::string source_line(const SourceMap& sources, const ir::Loc& loc);

}  // namespace tw::cli
