// What the tests of lang/ share: files of this folder, and a text parsed with its diagnostics.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "lang/computes.h"
#include "lang/parse.h"

namespace tw::lang {

inline std::string read_bytes(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::stringstream buffer;
    buffer << stream.rdbuf();
    return buffer.str();
}

inline std::filesystem::path test_folder(std::string_view name) { return std::filesystem::path(TW_SOURCE_DIR) / "tests" / "lang" / name; }

inline std::vector<std::filesystem::path> files_with(std::string_view folder, std::string_view extension) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(test_folder(folder))) {
        if (entry.path().extension() == extension) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

struct Parsed {
    SourceMap sources;
    DiagnosticSink sink;
    Module module;

    std::string report() const { return render_text(sink, sources); }
};

inline Parsed parse_text(std::string text, std::string name = "kernel.py") {
    Parsed parsed;
    const FileId file = parsed.sources.add(std::move(name), std::move(text));
    parsed.module = parse_module(parsed.sources, file, parsed.sink);
    return parsed;
}

struct ParsedSpec {
    SourceMap sources;
    DiagnosticSink sink;
    ComputesSpec spec;

    std::string report() const { return render_text(sink, sources); }
};

inline ParsedSpec parse_spec(std::string text) {
    ParsedSpec parsed;
    const FileId file = parsed.sources.add("spec", std::move(text));
    parsed.spec = parse_computes(computes_text(parsed.sources, file), parsed.sink);
    return parsed;
}

// "TW0012 at 3:5, TW0030 at 4:1", in source order: the form of the `# expect:` line of a rejected program.
inline std::string codes_and_places(const DiagnosticSink& sink, const SourceMap& sources) {
    std::string text;
    for (const Diagnostic* diagnostic : sink.in_source_order()) {
        const LineColumn at = sources.file(diagnostic->span.file).position(diagnostic->span.begin);
        text += fmt::format("{}{} at {}:{}", text.empty() ? "" : ", ", code_info(diagnostic->code).id, at.line, at.column);
    }
    return text;
}

}  // namespace tw::lang
