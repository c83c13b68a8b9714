#include "runtime/cute_candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include "base/diagnostic.h"
#include "base/identifier.h"
#include "base/text.h"
#include "lower/lower.h"
#include "runtime/shared_library.h"
#include "target/dtype.h"
#include "target/swizzle.h"

namespace tw::runtime {
namespace {

// A launch's condition and grid as the body of a kernel; a problem when the grid is none.
Expected<std::string, CuteProblem> launch_body(const CuteLaunch& launch) {
    std::string text;
    if (!launch.when.empty()) text += fmt::format("    tw.assume({})\n", launch.when);
    const auto commas = [&] {
        int depth = 0, count = 0;
        for (const char c : launch.grid) depth += (c == '(') - (c == ')'), count += c == ',' && depth == 0;
        return count;
    }();
    constexpr std::array<const char*, 3> names = {"block_x_", "block_x_, block_y_", "block_x_, block_y_, block_z_"};
    if (commas > 2) return Unexpected{CuteProblem{launch.line, "a grid has at most three dimensions", ""}};
    return text + fmt::format("    {} = tw.grid({})\n", names[static_cast<std::size_t>(commas)], launch.grid);
}

std::optional<CuteProblem> take_launch(ir::Kernel& kernel, const CuteLaunch& launch);

// The task's signature with the launch's grid and condition, resolved by the tile language's own rules.
Expected<ir::Kernel, CuteProblem> launch_kernel(const std::string& signature, const CuteLaunch& launch) {
    std::string text = signature;
    const auto end = text.rfind("    pass\n");
    if (end == std::string::npos) return Unexpected{CuteProblem{launch.line, "the task's signature is not one of ours", ""}};
    text.erase(end);
    const auto body = launch_body(launch);
    if (!body) return Unexpected{body.error()};
    text += *body;
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "launch", text, {}, sink);
    if (!module || module->kernels.size() != 1 || sink.has_errors()) {
        const std::string why = sink.empty() ? "it cannot be read" : sink.in_source_order().front()->message;
        return Unexpected{
            CuteProblem{launch.line, fmt::format("the grid or condition of the launch of {}: {}", launch.kernel, why),
                        "expressions are over the task's sizes, as in the tile language: tw.cdiv(M, 128), K % 8 == 0 and N >= 8"}};
    }
    ir::Kernel kernel = std::move(module->kernels.front());
    if (const auto problem = take_launch(kernel, launch)) return Unexpected{*problem};
    return kernel;
}

// What the launch says beside condition and grid: threads, memory, maps.
std::optional<CuteProblem> take_launch(ir::Kernel& kernel, const CuteLaunch& launch) {
    kernel.warps = launch.threads / 32;
    kernel.shared_bytes = launch.shared_bytes;
    kernel.persistent = launch.blocks_per_multiprocessor > 0;
    kernel.min_blocks_per_sm = std::max(1, launch.blocks_per_multiprocessor);
    std::copy(std::begin(launch.cluster), std::end(launch.cluster), kernel.cluster);
    for (const std::string& name : launch.zeroed) {
        const auto tensor =
            std::find_if(kernel.tensors.begin(), kernel.tensors.end(), [&](const ir::Tensor& t) { return t.name == name && t.is_output; });
        if (tensor == kernel.tensors.end())
            return CuteProblem{launch.line, fmt::format("zero: there is no output {}", printable(name)), ""};
        tensor->zero_initialised = true;
    }
    for (const CuteMap& map : launch.maps) {
        ir::TensorMap made;
        const auto tensor =
            std::find_if(kernel.tensors.begin(), kernel.tensors.end(), [&](const ir::Tensor& t) { return t.name == map.tensor; });
        if (tensor == kernel.tensors.end() || tensor->dims.size() != map.box.size())
            return CuteProblem{launch.line,
                               fmt::format("map {}: there is no tensor {} with {} dimensions", map.name, map.tensor, map.box.size()), ""};
        made.tensor = static_cast<int>(tensor - kernel.tensors.begin());
        for (std::size_t d = map.box.size(); d-- > 0;) {
            if (map.box[d] < 1 || map.box[d] > 256)
                return CuteProblem{launch.line, fmt::format("map {}: an extent of a box is 1 to 256", map.name), ""};
            made.dims.push_back(static_cast<int>(d)), made.box.push_back(map.box[d]);
        }
        made.swizzle = target::swizzle_from_bytes(map.swizzle_bytes).value_or(target::SwizzleMode::None);
        kernel.tensor_maps.push_back(made);
    }
    return std::nullopt;
}

std::optional<codegen::Argument> argument_named(const ir::Kernel& kernel, const CuteLaunch& launch, const std::string& name) {
    using Kind = codegen::Argument::Kind;
    const auto find = [&](const auto& list, auto&& named, Kind kind) -> std::optional<codegen::Argument> {
        for (std::size_t i = 0; i < list.size(); ++i)
            if (named(list[i]) == name) return codegen::Argument{kind, static_cast<int>(i)};
        return std::nullopt;
    };
    const auto own = [](const auto& x) -> const std::string& { return x.name; };
    if (auto a = find(launch.maps, own, Kind::tensor_map)) return a;
    if (auto a = find(kernel.tensors, own, Kind::tensor)) return a;
    if (auto a = find(kernel.scalars, own, Kind::scalar)) return a;
    return find(
        kernel.sizes, [](const std::string& s) -> const std::string& { return s; }, Kind::size);
}

// The entry and its arguments, in the launch's order or the usual one.
Expected<CuteEntry, CuteProblem> entry_of(const ir::Kernel& kernel, const CuteLaunch& launch) {
    CuteEntry entry{launch.kernel, {}};
    std::vector<std::string> names = launch.arguments;
    if (names.empty()) {
        for (const CuteMap& m : launch.maps) names.push_back(m.name);
        for (const ir::Tensor& t : kernel.tensors) names.push_back(t.name);
        for (const std::string& s : kernel.sizes) names.push_back(s);
        for (const ir::ScalarParam& s : kernel.scalars) names.push_back(s.name);
    }
    for (const std::string& name : names) {
        const auto argument = argument_named(kernel, launch, name);
        if (!argument)
            return Unexpected{
                CuteProblem{launch.line,
                            fmt::format("the launch of {} has an argument '{}', which is no map, tensor, size or scalar of {}",
                                        launch.kernel, printable(name), launch.of.empty() ? "the task" : launch.of),
                            ""}};
        entry.arguments.push_back(*argument);
    }
    return entry;
}

std::string declared(const CuteTensor& t) {
    return fmt::format("{}, {}{}", t.dtype, t.dims, t.strides.empty() ? "" : fmt::format(", strides=({})", t.strides));
}

// A kernel of a program as the tile language declares it. Its outputs are set to zero there: what they hold nobody states.
std::string stub(const CuteLaunch& launch, const std::string& function, const std::string& target, const std::string& body) {
    std::string outputs, parameters;
    for (const CuteTensor& t : launch.tensors) {
        parameters += fmt::format("    {}: tw.Tensor({}),\n", t.name, declared(t));
        if (!t.output) continue;
        int depth = 0;
        std::string indices = "i0_";
        for (const char c : t.dims) {
            depth += (c == '(') - (c == ')');
            if (c == ',' && depth == 0) indices += fmt::format(", i{}_", std::count(indices.begin(), indices.end(), '_'));
        }
        outputs += fmt::format("{}{}[{}] = {}(0.0)", outputs.empty() ? "" : "; ", t.name, indices, t.dtype);
    }
    for (const std::string& s : launch.scalars) parameters += "    " + s + ",\n";
    return fmt::format("\n\n@tw.kernel(target=\"{}\", name=\"{}\", computes=\"\"\"{}\"\"\")\ndef {}(\n{}):\n{}", target, launch.of, outputs,
                       function, parameters, body);
}

// Launches of a program, its kernels' variants side by side, and the program itself, as a file of the tile language.
Expected<std::string, CuteProblem> program_text(const std::string& signature, const std::vector<const CuteLaunch*>& launches,
                                                const CuteProgram& program) {
    const auto refuse = [](int line, std::string what) { return Unexpected{CuteProblem{line, std::move(what), ""}}; };
    static const std::regex head(R"re(@tw\.kernel\(target="([a-z0-9_]+)", name="[A-Za-z0-9_]+", computes=)re");
    std::smatch found;
    const auto end = signature.rfind("    pass\n");
    if (end == std::string::npos || !std::regex_search(signature, found, head))
        return refuse(program.line, "the task's signature is not one of ours");
    std::set<std::string> types, known, more;
    const std::string opening = signature.substr(0, static_cast<std::size_t>(found.position(0)));
    const auto names_in = [](const std::string& text, std::set<std::string>& into) {
        std::string word;
        for (const char c : text + " ") {
            if (is_identifier_character(c)) word += c;
            else {
                if (is_identifier(word, word.size())) into.insert(word);
                word.clear();
            }
        }
    };
    names_in(opening, known);
    const auto take = [&](const CuteTensor& t) { types.insert(t.dtype), names_in(t.dims + " " + t.strides, more); };
    std::string kernels;
    std::set<std::string> functions;
    for (const CuteLaunch* l : launches) {
        if (l->of.empty() || l->tensors.empty())
            return refuse(l->line, fmt::format("the launch of {} needs `of` and its tensors: it is one of a program", l->kernel));
        for (const CuteTensor& t : l->tensors) take(t);
        const auto body = launch_body(*l);
        if (!body) return Unexpected{body.error()};
        std::string function = l->of;
        for (int i = 2; !functions.insert(function).second; ++i) function = fmt::format("{}_variant{}", l->of, i);
        kernels += stub(*l, function, found[1], *body);
    }
    for (const CuteTensor& t : program.buffers) take(t);
    std::vector<std::string> imported;
    for (const std::string& t : types)
        if (!known.count(t)) imported.push_back(t);
    std::string text = opening + (imported.empty() ? "" : fmt::format("from tilewright import {}\n", join(imported, ", ")));
    std::string sizes;
    for (const std::string& m : more)
        if (!known.count(m)) sizes += (sizes.empty() ? "" : " ") + m;
    if (!sizes.empty()) text += fmt::format("{} = tw.sizes(\"{}\")\n", std::regex_replace(sizes, std::regex(" "), ", "), sizes);
    text += kernels + "\n\n" + "@tw.program(computes=" +
            signature.substr(static_cast<std::size_t>(found.position(0) + found.length(0)),
                             end - static_cast<std::size_t>(found.position(0) + found.length(0)));
    for (const CuteTensor& b : program.buffers) text += fmt::format("    {} = tw.buffer({})\n", b.name, declared(b));
    for (const CuteCall& c : program.calls) text += fmt::format("    {}({})\n", c.kernel, fmt::join(c.arguments, ", "));
    return text;
}

Expected<CuteModule, CuteProblem> program_module(const std::string& signature, const std::vector<CuteLaunch>& launches,
                                                 const CuteProgram& program) {
    std::vector<const CuteLaunch*> ordered;  // variants of one kernel are neighbours
    for (std::size_t i = 0; i < launches.size(); ++i) {
        const bool taken = std::any_of(ordered.begin(), ordered.end(), [&](const CuteLaunch* l) { return l->of == launches[i].of; });
        for (std::size_t j = i; !taken && j < launches.size(); ++j)
            if (launches[j].of == launches[i].of) ordered.push_back(&launches[j]);
    }
    const auto text = program_text(signature, ordered, program);
    if (!text) return Unexpected{text.error()};
    SourceMap sources;
    DiagnosticSink sink;
    auto module = lower::compile_text(sources, "launches", *text, {}, sink);
    if (!module || module->kernels.size() != ordered.size() || module->programs.size() != 1 || sink.has_errors()) {
        const std::string why = sink.empty() ? "it cannot be read" : sink.in_source_order().front()->message;
        return Unexpected{CuteProblem{program.line, fmt::format("the program and its launches: {}", why),
                                      "tensors, buffers, grids and conditions are over the task's sizes, as in the tile language"}};
    }
    CuteModule out;
    out.module = *std::move(module);
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        ir::Kernel& kernel = out.module.kernels[i];
        if (const auto problem = take_launch(kernel, *ordered[i])) return Unexpected{*problem};
        auto entry = entry_of(kernel, *ordered[i]);
        if (!entry) return Unexpected{entry.error()};
        out.entries.push_back(*std::move(entry));
    }
    return out;
}

}  // namespace

Expected<CuteModule, CuteProblem> cute_module(const std::string& signature, const std::vector<CuteLaunch>& launches,
                                              const std::optional<CuteProgram>& program) {
    if (program) return program_module(signature, launches, *program);
    CuteModule out;
    for (const CuteLaunch& launch : launches) {
        if (!launch.of.empty() || !launch.tensors.empty() || !launch.scalars.empty())
            return Unexpected{CuteProblem{launch.line, "`of`, `tensor` and `scalar` belong to the kernels of a program, and there is none",
                                          "write `// program` and its calls (docs/cute.md)"}};
        auto kernel = launch_kernel(signature, launch);
        if (!kernel) return Unexpected{kernel.error()};
        auto entry = entry_of(*kernel, launch);
        if (!entry) return Unexpected{entry.error()};
        out.module.kernels.push_back(*std::move(kernel));
        out.entries.push_back(*std::move(entry));
    }
    return out;
}

Result<CompileRequest> request_for_cute(const std::string& text, const std::string& name, const std::string& arch) {
    const auto folder = find_cutlass_include_folder();
    if (folder.empty())
        return fail(FailureKind::missing_library, "CuTe's headers (cute/tensor.hpp) were not found",
                    "pip install nvidia-cutlass (scripts/setup.sh does), or set CUTLASS_INCLUDE to the folder that holds cute/tensor.hpp");
    if (find_cuda_include_folder().empty())
        return fail(FailureKind::missing_library, "CUDA's headers (cuda_bf16.h), which CuTe's include, were not found",
                    "set CUDA_HOME to the toolkit's folder, or put its nvcc on the PATH");
    CompileRequest request;
    request.source = text;
    request.name = name;
    request.arch = arch;
    request.system_folders.push_back(folder);
    // Text of headers and candidates has functions without a space; warnings of the headers are not ours to mend.
    request.options = {"--device-as-default-execution-space", "--disable-warnings"};
    return request;
}

std::optional<std::vector<int>> parameter_bytes(const std::string& cubin, const std::string& entry) {
    const auto number = [&](std::size_t at, std::size_t bytes) -> std::uint64_t {
        std::uint64_t v = 0;
        if (at > cubin.size() || cubin.size() - at < bytes) return 0;
        for (std::size_t i = 0; i < bytes; ++i) v |= static_cast<std::uint64_t>(static_cast<unsigned char>(cubin[at + i])) << (8 * i);
        return v;
    };
    if (cubin.size() < 64 || cubin.compare(0, 4,
                                           "\x7f"
                                           "ELF") != 0)
        return std::nullopt;
    const std::size_t table = number(40, 8), sections = number(60, 2), names_at = number(table + 64 * number(62, 2) + 24, 8);
    const std::string wanted = ".nv.info." + entry;
    for (std::size_t s = 0; s < sections; ++s) {
        const std::size_t head = table + 64 * s, name_at = names_at + number(head, 4);
        if (name_at >= cubin.size() || cubin.compare(name_at, wanted.size() + 1, wanted.c_str(), wanted.size() + 1) != 0) continue;
        const std::size_t begin = number(head + 24, 8), end = std::min(cubin.size(), begin + number(head + 32, 8));
        std::vector<int> sizes;
        for (std::size_t at = begin; at + 4 <= end;) {
            const auto form = number(at, 1), attribute = number(at + 1, 1), length = number(at + 2, 2);
            at += 4;
            if (form != 4) continue;
            if (attribute == 0x17 && length == 12) {  // a parameter: ordinal, offset, flags with the size above bit 18
                const auto ordinal = number(at + 4, 2);
                if (ordinal < 4096 && sizes.size() <= ordinal) sizes.resize(ordinal + 1);
                if (ordinal < sizes.size()) sizes[ordinal] = static_cast<int>(number(at + 8, 4) >> 18);
            }
            at += length;
        }
        return sizes;
    }
    return std::nullopt;
}

std::optional<std::string> parameter_problem(const ir::Kernel& kernel, const CuteEntry& entry, const std::string& cubin) {
    const auto declared = parameter_bytes(cubin, entry.entry);
    if (!declared) return fmt::format("there is no kernel `extern \"C\" __global__ void {}(...)` in the text", entry.entry);
    if (declared->size() != entry.arguments.size())
        return fmt::format("{} takes {} parameters, its launch gives {} arguments", entry.entry, declared->size(), entry.arguments.size());
    for (std::size_t i = 0; i < declared->size(); ++i) {
        using Kind = codegen::Argument::Kind;
        const codegen::Argument& a = entry.arguments[i];
        const auto id = static_cast<std::size_t>(a.id);
        int most = 8;
        std::string what = "a pointer";
        if (a.kind == Kind::size) most = 4, what = "an int";
        if (a.kind == Kind::scalar)
            most = target::bytes(kernel.scalars[id].dtype), what = fmt::format("a scalar of {}", target::name(kernel.scalars[id].dtype));
        // A TiledCopy holds its descriptor first; what follows it in CuTe's types is empty, and padded to the alignment.
        const bool map = a.kind == Kind::tensor_map;
        if (map ? (*declared)[i] == 128 || (*declared)[i] == 192 : (*declared)[i] == most) continue;
        return fmt::format(
            "parameter {} of {} has {} bytes; its argument is {}", i + 1, entry.entry, (*declared)[i],
            map ? "a TMA descriptor: CUtensorMap, or a TiledCopy of make_tma_copy" : what + fmt::format(" of {} bytes", most));
    }
    return std::nullopt;
}

}  // namespace tw::runtime
