#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "emulate/emulator.h"
#include "emulate/poison.h"
#include "graph/evaluate.h"
#include "lower/lower.h"

namespace tw::graph {

namespace {

Problem of(const std::string& where, const std::string& what) { return {where, what, "please report this graph"}; }

// Element by element between a row-major buffer and a view of it.
void copy_view(const Argument& a, std::vector<double>& buffer, emulate::TensorData& view, bool back) {
    Shape index(a.dims.size(), 0);
    const std::int64_t n = count_of(a.dims);
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t at = a.offset;
        for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * a.strides[d];
        if (back) buffer[static_cast<std::size_t>(at)] = view.get(index);
        else view.set(index, buffer[static_cast<std::size_t>(at)]);
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < a.dims[d]) break;
            index[d] = 0;
        }
    }
}

}  // namespace

Result<std::vector<std::vector<double>>> emulate(const Graph& graph, const Generated& generated, const Values& values) {
    SourceMap sources;
    DiagnosticSink sink;
    const auto module = lower::compile_text(sources, graph.name + ".py", generated.source, {}, sink);
    if (!module) return Unexpected<Problem>{of(graph.name, "the generated kernels do not compile:\n" + render_text(sink, sources))};
    std::map<std::string, std::vector<double>> buffers(values.begin(), values.end());
    for (const auto& [name, about] : generated.plan.at("buffers").items())
        buffers[name].assign(static_cast<std::size_t>(count_of(about.at("shape").get<Shape>())), std::nan(""));
    std::size_t launch = 0;
    for (const KernelText& k : generated.kernels) {
        const auto& names = generated.plan.at("launches").at(launch++).at("arguments");
        const auto found =
            std::find_if(module->kernels.begin(), module->kernels.end(), [&](const ir::Kernel& x) { return x.name == k.name; });
        if (found == module->kernels.end()) return Unexpected<Problem>{of(k.name, "is missing in what was compiled")};
        std::vector<emulate::TensorData> tensors;
        for (std::size_t i = 0; i < k.arguments.size(); ++i) {
            const Argument& a = k.arguments[i];
            const auto dtype = target::dtype_from_name(a.dtype);
            if (!dtype) return Unexpected<Problem>{of(k.name, "has an argument of an unknown type")};
            tensors.push_back(emulate::make_tensor(*dtype, a.dims, a.strides));
            std::vector<double>& buffer = buffers[names.at(i).at("buffer").get<std::string>()];
            if (!a.output || a.part) copy_view(a, buffer, tensors.back(), false);
            else if (a.zeroed) std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), std::uint8_t{0});
            else std::fill(tensors.back().bytes.begin(), tensors.back().bytes.end(), emulate::poison_of(*dtype));
        }
        std::vector<std::int64_t> sizes;
        for (const std::string& size : found->sizes)
            for (const auto& [name, value] : k.sizes)
                if (name == size) sizes.push_back(value);
        const auto outcome = emulate::run(*found, sizes, {}, tensors, emulate::Options{});
        if (!outcome.clean()) return Unexpected<Problem>{of(k.name, "fails on the emulator: " + outcome.faults[0].message)};
        for (std::size_t i = 0; i < k.arguments.size(); ++i)
            if (k.arguments[i].output) copy_view(k.arguments[i], buffers[names.at(i).at("buffer").get<std::string>()], tensors[i], true);
    }
    std::vector<std::vector<double>> out;
    for (const auto& o : generated.plan.at("outputs")) out.push_back(buffers.at(o.at("buffer").get<std::string>()));
    return out;
}

}  // namespace tw::graph
