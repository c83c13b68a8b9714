// A kernel as a candidate of the loop: device code that NVRTC takes as it is, and its launch in comments.
#include <algorithm>

#include "base/text.h"
#include "codegen/cute/helpers.h"
#include "codegen/cute/printer.h"
#include "codegen/user_text.h"
#include "target/swizzle.h"

namespace tw::codegen {

namespace {

// "f16 (M, K), strides ((K + 7) // 8 * 8, 1)"; strides are said where rows do not follow one another.
std::string tensor_text(const ir::Tensor& t, const ir::ExprNames& names) {
    std::vector<std::string> dims, strides;
    ir::Expr next = 1;
    bool dense = true;
    for (std::size_t d = t.dims.size(); d-- > 0;) {
        dense = dense && ir::same(t.strides[d], next);
        next = next * t.dims[d];
    }
    for (std::size_t d = 0; d < t.dims.size(); ++d)
        dims.push_back(ir::to_string(t.dims[d], names)), strides.push_back(ir::to_string(t.strides[d], names));
    return fmt::format("{} ({}){}", target::name(t.dtype), join(dims, ", "),
                       dense ? "" : fmt::format(", strides ({})", join(strides, ", ")));
}

std::string program_lines(const ir::Module& module, const ir::Program& p) {
    std::string text = "// program\n";
    ir::ExprNames names;
    names.size = [&](int i) { return p.sizes[static_cast<std::size_t>(i)]; };
    for (std::size_t i = static_cast<std::size_t>(p.parameter_count); i < p.tensors.size(); ++i)
        text += fmt::format("//   buffer {} {}\n", p.tensors[i].name, tensor_text(p.tensors[i], names));
    for (const ir::Launch& l : p.launches) {
        const ir::Kernel& k = module.kernels[static_cast<std::size_t>(l.kernel)];
        std::vector<std::string> arguments;
        for (const char kind : {'t', 's'})  // as the launches list them
            for (std::size_t i = 0; i < k.parameters.size(); ++i) {
                const auto from = static_cast<std::size_t>(l.arguments[i]);
                if (k.parameters[i].first == kind) arguments.push_back(kind == 't' ? p.tensors[from].name : p.scalars[from].name);
            }
        text += fmt::format("//   call {} {}\n", k.name, join(arguments, ", "));
    }
    return text + "\n";
}

std::string candidate_text(const std::string& name, const std::string& computes, const std::string& arch,
                           const std::set<std::string>& helpers, const std::string& functions) {
    std::string head = fmt::format("// {}\n", comment_text(fmt::format("{} in CuTe, made by tilewright.", name)));
    if (!computes.empty()) head += "// " + comment_text("computes " + computes) + "\n";
    head += cute::include_text(arch, helpers);
    for (const char* constant : {"INFINITY", "NAN"}) {  // the host's headers have them, NVRTC's have not
        if (functions.find(constant) == std::string::npos) continue;
        head += fmt::format("#ifndef {0}\n#define {0} __int_as_float({1})\n#endif\n", constant,
                            constant[0] == 'I' ? "0x7f800000" : "0x7fffffff");
    }
    return head + "\nusing namespace cute;\n\n" + cute::helper_text(helpers) + functions;
}

}  // namespace

Expected<std::string, EmitFailure> emit_cute_candidate(const std::vector<const ir::Kernel*>& kernels, const std::string& file) {
    std::set<std::string> helpers;
    std::string functions, arch;
    int number = 0;
    for (const ir::Kernel* k : kernels) {
        auto text = cute::Printer(*k, file, kernels.size() > 1 ? ++number : 0).run_as_candidate(helpers);
        if (!text) return Unexpected<EmitFailure>{text.error()};
        functions += "\n" + *text;
        arch = std::max(arch, k->arch);
    }
    if (kernels.empty()) return Unexpected<EmitFailure>{EmitFailure{"there is no kernel", {}}};
    return candidate_text(kernels.front()->name, kernels.front()->computes.text, arch, helpers, functions.substr(1));
}

Expected<std::string, EmitFailure> emit_cute_candidate(const ir::Module& module, const ir::Program& program, const std::string& file) {
    std::set<std::string> helpers, launched;
    for (const ir::Launch& l : program.launches) launched.insert(module.kernels[static_cast<std::size_t>(l.kernel)].name);
    std::string functions = program_lines(module, program), arch;
    std::map<std::string, int> alike, number;  // functions of one name: variants, and names that are cut to the same
    for (const ir::Kernel& k : module.kernels) alike[entry_name(k.name)] += launched.count(k.name) > 0;
    for (const ir::Kernel& k : module.kernels) {
        if (!launched.count(k.name)) continue;
        const std::string entry = entry_name(k.name);
        std::string parameters = fmt::format("//   of {}\n", k.name);
        for (const ir::Tensor& t : k.tensors)
            parameters += fmt::format("//   tensor {} {}{}\n", t.name, t.is_output ? "out " : "", tensor_text(t, ir::names_of(k)));
        for (const ir::ScalarParam& s : k.scalars) parameters += fmt::format("//   scalar {} {}\n", s.name, target::name(s.dtype));
        auto text = cute::Printer(k, file, alike[entry] > 1 ? ++number[entry] : 0).run_as_candidate(helpers, parameters);
        if (!text) return Unexpected<EmitFailure>{text.error()};
        functions += *text + "\n";
        arch = std::max(arch, k.arch);
    }
    functions.pop_back();
    return candidate_text(program.name, program.computes.text, arch, helpers, functions);
}

}  // namespace tw::codegen

namespace tw::codegen::cute {

// The copy's type: a tensor of the map's shape stands for the one that only the host has.
std::string Printer::map_type(std::size_t map) {
    const ir::Tensor& t = k_.tensors[static_cast<std::size_t>(k_.tensor_maps[map].tensor)];
    std::vector<std::string> dims, strides;
    for (std::size_t d = 0; d < t.dims.size(); ++d) {
        const auto stride = t.strides[d].as_constant();
        dims.push_back("0");
        strides.push_back(stride ? fmt::format("Int<{}>{{}}", *stride) : "int64_t(0)");
    }
    const std::string tensor = fmt::format("make_tensor(make_gmem_ptr(static_cast<{}{}*>(nullptr)), make_shape({}), make_stride({}))",
                                           element_type(t.dtype), t.is_output ? "" : " const", join(dims, ", "), join(strides, ", "));
    return fmt::format("using {}_Tma{} = decltype({});\n", entry_, map, map_tensor(map, tensor));
}

// Names as the task has them: what a launch says is about its parameters, not about the text's identifiers.
std::string Printer::launch_lines(const std::string& parameters) const {
    std::string text = "// launch " + entry_ + "\n" + parameters;
    const auto add = [&](const char* key, const std::string& value) { text += fmt::format("//   {} {}\n", key, value); };
    const ir::ExprNames names = ir::names_of(k_);
    std::vector<std::string> conditions, grid, arguments, zeroed;
    for (const ir::Assumption& a : k_.assumptions) conditions.push_back(ir::to_string(a.condition, names));
    if (!conditions.empty()) add("when", join(conditions, " and "));
    std::size_t last = 3;
    while (last > 1 && k_.grid[last - 1].is_constant(1)) --last;
    for (std::size_t i = 0; i < last; ++i) grid.push_back(ir::to_string(k_.grid[i], names));
    add("grid", join(grid, ", "));
    add("threads", std::to_string(32 * k_.warps));
    if (k_.shared_bytes > 0) add("shared", std::to_string(k_.shared_bytes));
    if (k_.persistent) add("persistent", std::to_string(std::max(1, k_.min_blocks_per_sm)));
    if (k_.cluster[0] * k_.cluster[1] * k_.cluster[2] > 1)
        add("cluster", fmt::format("{}, {}, {}", k_.cluster[0], k_.cluster[1], k_.cluster[2]));
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) {
        const ir::TensorMap& m = k_.tensor_maps[i];
        std::vector<std::string> box;
        for (std::size_t d = m.box.size(); d-- > 0;) box.push_back(std::to_string(m.box[d]));
        add("map", fmt::format("tma{} = {}, box ({}), swizzle {}", i, k_.tensors[static_cast<std::size_t>(m.tensor)].name, join(box, ", "),
                               m.swizzle == target::SwizzleMode::None ? 0 : target::span_bytes(m.swizzle)));
        arguments.push_back(fmt::format("tma{}", i));
    }
    for (const ir::Tensor& t : k_.tensors) {
        arguments.push_back(t.name);
        if (t.zero_initialised) zeroed.push_back(t.name);
    }
    for (const std::string& s : k_.sizes) arguments.push_back(s);
    for (const ir::ScalarParam& s : k_.scalars) arguments.push_back(s.name);
    if (!zeroed.empty()) add("zero", join(zeroed, ", "));
    add("arguments", join(arguments, ", "));
    return text;
}

Expected<std::string, EmitFailure> Printer::run_as_candidate(std::set<std::string>& helpers, const std::string& parameters) {
    as_candidate_ = true;
    print_body();
    if (failed()) return Unexpected<EmitFailure>{*problem_};
    helpers.insert(helpers_.begin(), helpers_.end());
    std::string text;
    for (std::size_t i = 0; i < k_.tensor_maps.size(); ++i) text += map_type(i);
    text += launch_lines(parameters);
    text += fmt::format("extern \"C\" __global__ void __launch_bounds__({}, {}) {}({}) {{\n", 32 * k_.warps,
                        std::max(1, k_.min_blocks_per_sm), entry_, body_list_);
    for (const auto& [product, type] : products_) text += fmt::format("  using {} = {};\n", product, type);
    return text + body_tensors_ + out_ + "}\n";
}

}  // namespace tw::codegen::cute
