// What the tests of lower/ share: a kernel text compiled with its diagnostics, and the IR after each step.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lang/bundle.h"
#include "lower/lower.h"

namespace tw::lower {

inline std::filesystem::path repository(const std::string& path) { return std::filesystem::path(TW_SOURCE_DIR) / path; }

inline std::string read_bytes(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream buffer;
    buffer << stream.rdbuf();
    return buffer.str();
}

// With the texts of the kernel files that it imports.
inline std::string kernel_file(const std::filesystem::path& path) { return lang::kernel_text(path).value(); }

inline std::vector<std::filesystem::path> files_in(const std::string& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(repository(folder))) {
        if (entry.path().extension() == ".py") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

struct Compiled {
    SourceMap sources;
    DiagnosticSink sink;
    std::optional<ir::Module> module;
    std::map<std::string, std::string> after;  // step -> printed IR of the first kernel

    std::string report() const { return render_text(sink, sources); }
};

inline Compiled compile(const std::string& text, const ConstValues& constants = {}) {
    Compiled c;
    c.module = compile_text(c.sources, "kernel.py", text, constants, c.sink, [&](std::string_view step, const ir::Kernel& kernel) {
        c.after.emplace(std::string(step), ir::print(kernel));
    });
    return c;
}

// A whole file around the body of one kernel; each line of `body` is indented.
inline std::string kernel_text(const std::string& parameters, const std::string& body, const std::string& decorator = "target=\"sm_90a\"") {
    std::string text =
        "import tilewright as tw\nfrom tilewright import bf16, e4m3, f16, f32, i32\n\nM, N, K = tw.sizes(\"M N K\")\n\n\n@tw.kernel(" +
        decorator + ")\ndef kernel(" + parameters + "):\n";
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) text += "    " + line + "\n";
    return text;
}

inline std::string codes_and_places(const DiagnosticSink& sink, const SourceMap& sources) {
    std::string text;
    for (const Diagnostic* diagnostic : sink.in_source_order()) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", code_info(diagnostic->code).id);
        if (!diagnostic->span.known()) continue;
        const LineColumn at = sources.file(diagnostic->span.file).position(diagnostic->span.begin);
        text += fmt::format(" at {}:{}", at.line, at.column);
    }
    return text;
}

}  // namespace tw::lower
