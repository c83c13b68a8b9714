// Any bytes as CuTe text, and as a compiler's log: diagnostics and a report, never a crash, and never without places.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "cute/check.h"
#include "cute/compile_errors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    tw::SourceMap sources;
    tw::DiagnosticSink sink;
    const tw::FileId file = sources.add("fuzzed.cu", text);
    const tw::cute::Report report = tw::cute::check(sources, file, sink);
    for (const tw::Diagnostic& d : sink.diagnostics()) {
        if (!d.span.known() || d.message.empty()) std::abort();
    }
    for (const auto& n : report.not_analysed) {
        if (n.why.empty()) std::abort();
    }
    (void)tw::cute::compile_errors(text);
    return 0;
}
