// Task files (TOML): a task or diagnostics, never a crash, a hang or an internal error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tasks/load.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace tw;
    SourceMap sources;
    DiagnosticSink sink;
    const auto task = tasks::load_task_text(sources, "input.toml", std::string(reinterpret_cast<const char*>(data), size), sink);
    const std::string text = render_text(sink, sources);  // rendering must not fail either
    if (task.has_value() == sink.has_errors() || sink.has_internal_errors()) {
        std::fprintf(stderr, "%s\n", text.c_str());
        std::abort();
    }
    return 0;
}
