#include "graph/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace tw::graph {

using nlohmann::json;

namespace {

std::string identifier(const std::string& text) {
    std::string out;
    for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "g_" + out;
    return out.substr(0, 60);
}

json plan_of(const Graph& graph, const Primitives& p, const std::vector<KernelText>& kernels) {
    json buffers = json::object();
    std::map<int, std::string> name;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        if (p.leaves[n] >= 0) name[p.leaves[n]] = graph.nodes[n].name;
    for (const KernelText& k : kernels) {
        for (const Argument& a : k.arguments)
            if (!a.scratch.empty()) buffers[a.scratch] = {{"shape", a.whole}, {"dtype", a.dtype}};
        const Argument& out = k.arguments.back();
        if (!out.scratch.empty()) continue;
        const Primitive& v = p.list[static_cast<std::size_t>(out.primitive)];
        name[out.primitive] = "%" + std::to_string(out.primitive);
        buffers[name[out.primitive]] = {{"shape", v.shape}, {"dtype", v.dtype}};
    }
    const auto buffer_of = [&](const Argument& a) { return a.scratch.empty() ? name.at(a.primitive) : a.scratch; };
    json launches = json::array();
    for (const KernelText& k : kernels) {
        json arguments = json::array();
        for (const Argument& a : k.arguments)
            arguments.push_back({{"buffer", buffer_of(a)}, {"shape", a.dims}, {"strides", a.strides}, {"output", a.output}});
        launches.push_back({{"kernel", k.name}, {"arguments", arguments}, {"family", k.family}, {"nodes", k.nodes}});
    }
    json outputs = json::array(), inputs = json::array(), parameters = json::array();
    for (std::size_t o = 0; o < graph.outputs.size(); ++o)
        outputs.push_back({{"buffer", name.at(p.outputs[o])},
                           {"shape", graph.nodes[static_cast<std::size_t>(graph.outputs[o])].shape},
                           {"dtype", graph.nodes[static_cast<std::size_t>(graph.outputs[o])].dtype}});
    for (const Node& n : graph.nodes) {
        if (n.role == Role::operation) continue;
        (n.role == Role::input ? inputs : parameters).push_back({{"name", n.name}, {"shape", n.shape}, {"dtype", n.dtype}});
    }
    return {{"format", "tilewright-plan"}, {"version", 1},       {"name", graph.name},   {"inputs", inputs},
            {"parameters", parameters},    {"buffers", buffers}, {"launches", launches}, {"outputs", outputs}};
}

}  // namespace

Result<Generated> generate(const Graph& graph, const Precision& precision) {
    auto primitives = to_primitives(graph, precision);
    if (!primitives) return Unexpected<Problem>{primitives.error()};
    primitives->large = precision.large;
    std::set<int> stored;
    for (std::size_t round = 0; round <= primitives->list.size(); ++round) {
        auto groups = cut(*primitives, stored);
        if (!groups) return Unexpected<Problem>{groups.error()};
        Generated out;
        bool again = false;
        for (std::size_t i = 0; i < groups->size() && !again; ++i) {
            const Group& g = (*groups)[i];
            const std::string& from = primitives->list[static_cast<std::size_t>(g.root)].from;
            auto kernel = write_kernel(*primitives, g, identifier(fmt::format("k{}_{}", i, from)));
            if (!kernel) {
                const int store = kernel.error().store;
                if (store < 0 || !stored.insert(store).second) return Unexpected<Problem>{kernel.error()};
                again = true;
            } else {
                for (KernelText& before : kernel->before) out.kernels.push_back(std::move(before));
                kernel->before.clear();
                out.kernels.push_back(std::move(*kernel));
            }
        }
        if (again) continue;
        out.source = fmt::format(
            "\"\"\"Generated from the graph {}: {} kernels, in the order of their launches.\"\"\"\nimport tilewright as tw\nfrom "
            "tilewright import bf16, f16, f32, i32, i64, tf32\n",
            graph.name, out.kernels.size());
        std::set<std::string> sizes;
        for (const KernelText& k : out.kernels)
            for (const auto& [name, value] : k.sizes) sizes.insert(name);
        if (!sizes.empty()) out.source += fmt::format("\n{} = tw.sizes(\"{}\")\n", fmt::join(sizes, ", "), fmt::join(sizes, " "));
        for (const KernelText& k : out.kernels) out.source += "\n\n" + k.text;
        out.plan = plan_of(graph, *primitives, out.kernels);
        return out;
    }
    return Unexpected<Problem>{Problem{graph.name, "cannot be cut into kernels", "this is a limit of the generator"}};
}

}  // namespace tw::graph
