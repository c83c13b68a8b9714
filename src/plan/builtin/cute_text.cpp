// Kernels of the tile language as CuTe candidates: the built-in proposer thinks in sketches and answers in the task's language.
#include <fmt/format.h>

#include "codegen/cute/emit_cute.h"
#include "lower/lower.h"
#include "plan/builtin/skeleton.h"

namespace tw::plan::builtin {

Expected<std::string, std::string> cute_text(const tasks::Task& task, const Sketch& sketch, const std::string& kernel_file) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, task.name + ".py", kernel_file, {}, sink);
    if (!module || sink.has_errors()) return Unexpected{std::string("the tile kernel does not compile")};
    std::vector<const ir::Kernel*> kernels;
    for (const ir::Kernel& k : module->kernels)
        if (k.name == task.name) kernels.push_back(&k);
    auto text = module->programs.empty() ? codegen::emit_cute_candidate(kernels, task.name + ".py")
                                         : codegen::emit_cute_candidate(*module, module->programs.front(), task.name + ".py");
    if (!text) return Unexpected{text.error().message};
    return "// sketch: " + to_line(sketch).substr(std::string_view("# sketch: ").size()) + *text;
}

}  // namespace tw::plan::builtin
