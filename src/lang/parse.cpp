#include "lang/parse.h"

#include "lang/parser.h"

namespace tw::lang {

Module parse_module(const SourceMap& sources, FileId file, DiagnosticSink& sink, Module before) {
    const TokenStream stream = tokenize(sources, file, sink);
    if (!stream.usable) {
        before.file = file;
        before.body.clear();
        before.docstring = {};
        return before;
    }
    return Parser(sources, file, stream, sink, std::move(before)).run();
}

}  // namespace tw::lang
