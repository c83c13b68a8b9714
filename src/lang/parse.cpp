#include "lang/parse.h"

#include <fmt/format.h>

#include "base/text.h"
#include "lang/parser.h"

namespace tw::lang {

std::optional<FileId> load_source(SourceMap& sources, const std::string& path, DiagnosticSink& sink) {
    const auto refuse = [&](Code code, std::string message) -> std::optional<FileId> {
        sink.error(code, {}, std::move(message));
        return std::nullopt;
    };
    auto text = read_input(path, kMaxFileBytes);
    if (!text && text.error().too_large) {
        return refuse(Code::file_too_large, fmt::format("'{}' is larger than the {} bytes a kernel file may have", path, kMaxFileBytes));
    }
    if (!text) return refuse(Code::cannot_read_file, text.error().text);
    return sources.add(path, std::move(*text));
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
