#include "lang/parse.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "lang/parser.h"

namespace tw::lang {

std::optional<FileId> load_source(SourceMap& sources, const std::string& path, DiagnosticSink& sink) {
    const auto refuse = [&](Code code, std::string message) -> std::optional<FileId> {
        sink.error(code, {}, std::move(message));
        return std::nullopt;
    };
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
        return refuse(Code::cannot_read_file, fmt::format("cannot read '{}': it is a folder", path));
    }
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return refuse(Code::cannot_read_file, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    // Read one byte more than is accepted, so that a pipe or a growing file cannot exhaust memory.
    std::string text(kMaxFileBytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad()) return refuse(Code::cannot_read_file, fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kMaxFileBytes) {
        return refuse(Code::file_too_large,
                      fmt::format("'{}' is larger than the {} bytes a kernel file may have", path, kMaxFileBytes));
    }
    text.shrink_to_fit();
    return sources.add(path, std::move(text));
}

Module parse_module(const SourceMap& sources, FileId file, DiagnosticSink& sink) {
    const TokenStream stream = tokenize(sources, file, sink);
    if (!stream.usable) {
        Module nothing;
        nothing.file = file;
        return nothing;
    }
    return Parser(sources, file, stream, sink).run();
}

}  // namespace tw::lang
