// From kernel text to syntax tree.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "base/source.h"
#include "lang/ast.h"

namespace tw::lang {

// A larger file is refused (TW0002). A kernel file of a thousand lines is about 50 KiB.
inline constexpr std::size_t kMaxFileBytes = 4u << 20;

// Reads a file from disk into `sources`; reports TW0001 (cannot be read) or TW0002 (too large) and gives nothing back.
std::optional<FileId> load_source(SourceMap& sources, const std::string& path, DiagnosticSink& sink);

// Parses one file of `sources`. Always returns; time is linear in the text. The module is complete when `sink` got no
// error from this call, and otherwise holds whatever could be read.
Module parse_module(const SourceMap& sources, FileId file, DiagnosticSink& sink);

}  // namespace tw::lang
