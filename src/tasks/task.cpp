#include "tasks/task.h"

#include <array>

#include <fmt/format.h>

#include "base/text.h"

namespace tw::tasks {
namespace {
constexpr std::array<std::string_view, 7> kClasses = {"elementwise", "reduction", "scan",       "contraction",
                                                      "attention",   "grouped",   "convolution"};
}

std::string_view name_of(WorkloadClass c) { return kClasses[static_cast<std::size_t>(c)]; }

std::optional<WorkloadClass> parse_workload_class(std::string_view text) {
    for (std::size_t i = 0; i < kClasses.size(); ++i) {
        if (kClasses[i] == text) return static_cast<WorkloadClass>(i);
    }
    return std::nullopt;
}

std::int64_t Task::size(const std::string& of) const {
    for (const auto& [n, v] : sizes)
        if (n == of) return v;
    return 0;
}

const TensorSpec* Task::tensor(const std::string& called) const {
    for (const TensorSpec& t : tensors)
        if (t.name == called) return &t;
    return nullptr;
}

std::string file_head(const Task& task) {
    std::string out = "import tilewright as tw\nfrom tilewright import ";
    std::vector<std::string> types = {"f32"};
    const auto add = [&](std::string_view name) {
        for (const std::string& t : types)
            if (t == name) return;
        types.emplace_back(name);
    };
    for (const TensorSpec& t : task.tensors) add(target::name(t.dtype));
    for (const ScalarSpec& s : task.scalars) add(target::name(s.dtype));
    if (task.precision == "tf32") add("tf32");
    out += join(types, ", ") + "\n\n";
    std::vector<std::string> names;
    for (const auto& [name, value] : task.sizes) names.push_back(name);
    if (!names.empty()) out += fmt::format("{} = tw.sizes(\"{}\")\n", join(names, ", "), join(names, " "));
    return out;
}

std::string kernel_head(const Task& task, const std::string& function, const std::string& decorator_extra,
                        const std::string& extra_parameters) {
    std::string out = fmt::format("\n\n@tw.kernel(target=\"{}\", name=\"{}\", computes=\"\"\"{}\"\"\"{})\ndef {}(\n", task.target,
                                  task.name, task.computes, decorator_extra, function);
    for (const TensorSpec& t : task.tensors) {
        out += fmt::format("    {}: tw.Tensor({}", t.name, target::name(t.dtype));
        for (const std::string& d : t.dims) out += ", " + d;
        out += t.extra + "),\n";
    }
    for (const ScalarSpec& s : task.scalars) out += fmt::format("    {}: tw.scalar({}),\n", s.name, target::name(s.dtype));
    out += extra_parameters + "):\n";
    return out;
}

std::string signature_source(const Task& task) { return file_head(task) + kernel_head(task, task.name, "", "") + "    pass\n"; }

}  // namespace tw::tasks
