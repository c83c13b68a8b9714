// Any bytes as a `computes` specification: parser, printer and the expansion of softmax.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "lang/computes.h"

using namespace tw;
using namespace tw::lang;

namespace {

void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

ComputesSpec parse(SourceMap& sources, std::string text, DiagnosticSink& sink) {
    const FileId file = sources.add("spec", std::move(text));
    return parse_computes(computes_text(sources, file), sink);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    SourceMap sources;
    DiagnosticSink sink;
    const ComputesSpec spec = parse(sources, std::string(reinterpret_cast<const char*>(data), size), sink);
    require(!sink.has_internal_errors(), "no internal error");
    render_text(sink, sources);
    to_json(sink, sources).dump();
    for (const TermEntry& term : spec.terms) {
        require(term.span.begin <= term.span.end && term.span.end <= size, "terms lie in the text");
        require(term.depth <= kMaxExprDepth, "depth is bounded");
    }
    if (sink.has_errors()) return 0;

    const auto round_trip = [](const ComputesSpec& from) {
        SourceMap texts;
        DiagnosticSink reports;
        const ComputesSpec again = parse(texts, print(from), reports);
        require(!reports.has_errors(), "what is printed parses");
        require(same_spec(from, again), "what is printed is the same specification");
    };
    round_trip(spec);
    expand_softmax(spec, 2000);
    return 0;
}
