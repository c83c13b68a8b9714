// Any bytes as a kernel file, through every stage down to the last IR: a module or diagnostics, never a crash, a hang or an
// internal error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "ir/legality.h"
#include "lower/lower.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, "input.py", std::string(reinterpret_cast<const char*>(data), size), {}, sink);
    const bool consistent = module.has_value() != sink.has_errors() && !sink.has_internal_errors();
    if (!consistent) {
        std::fprintf(stderr, "%s\n", render_text(sink, sources).c_str());
        std::abort();
    }
    to_json(sink, sources).dump();
    if (!module) return 0;
    for (const ir::Kernel& kernel : module->kernels) {
        if (!ir::legal_last_form(kernel).empty()) std::abort();
        if (ir::print(kernel).empty()) std::abort();
    }
    return 0;
}
