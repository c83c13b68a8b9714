// Any bytes as a kernel file: lexer, parser, printer and renderer. Every string of an accepted file is tried as `computes` too.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "lang/computes.h"
#include "lang/parse.h"

using namespace tw;
using namespace tw::lang;

namespace {

void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

void check_diagnostics(const DiagnosticSink& sink, const SourceMap& sources) {
    require(!sink.has_internal_errors(), "no internal error");
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
        require(diagnostic.span.begin <= diagnostic.span.end, "spans are ordered");
        require(diagnostic.span.end <= sources.file(diagnostic.span.file).text().size(), "spans lie in the text");
    }
    render_text(sink, sources);
    to_json(sink, sources).dump();  // throws on invalid UTF-8
}

void check_computes(const Module& module, ExprId literal, const SourceMap& sources) {
    DiagnosticSink sink;
    const ComputesSpec spec = parse_computes(computes_text(module, literal), sink);
    check_diagnostics(sink, sources);
    if (!sink.has_errors()) expand_softmax(spec, 2000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    SourceMap sources;
    DiagnosticSink sink;
    const FileId file = sources.add("input.py", std::string(reinterpret_cast<const char*>(data), size));
    const Module module = parse_module(sources, file, sink);
    check_diagnostics(sink, sources);
    for (const Expr& expr : module.exprs) {
        require(expr.span.begin <= expr.span.end && expr.span.end <= size, "expressions lie in the text");
        require(expr.depth <= kMaxExprDepth, "depth is bounded");
    }
    for (std::uint32_t i = 0; i < module.exprs.size(); ++i) {
        if (module.get_if<StringLiteral>(ExprId{i}) != nullptr) check_computes(module, ExprId{i}, sources);
    }
    if (sink.has_errors()) return 0;

    DiagnosticSink second_sink;
    const FileId printed = sources.add("printed.py", print(module));
    if (sources.file(printed).text().size() > kMaxFileBytes) return 0;
    const Module again = parse_module(sources, printed, second_sink);
    require(!second_sink.has_errors(), "what is printed parses");
    require(same_tree(module, again), "what is printed is the same tree");
    return 0;
}
