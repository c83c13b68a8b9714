// From kernel text to syntax tree.
#pragma once

#include "base/diagnostic.h"
#include "base/source.h"
#include "lang/ast.h"

namespace tw::lang {

// A larger file is refused (TW0002). A kernel file of a thousand lines is about 50 KiB.
inline constexpr std::size_t kMaxFileBytes = 4u << 20;

// Parses one file of `sources`. Always returns; time is linear in the text. The module is complete when `sink` got no
// error from this call, and otherwise holds whatever could be read.
// Nodes are added to those of `before`; file, body and docstring are this file's.
Module parse_module(const SourceMap& sources, FileId file, DiagnosticSink& sink, Module before = {});

}  // namespace tw::lang
