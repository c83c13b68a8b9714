#include "graph/program_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tw::graph {

namespace {

std::string type_text(const std::string& dtype) { return dtype == "bool" ? "tw.bool" : dtype; }

std::string dims_text(const Shape& shape) {
    std::string out;
    for (const std::int64_t d : shape) out += ", " + std::to_string(d);
    return out;
}

struct Memory {
    std::string name;
    Shape shape;
};

// The tensors of the program: which memory a launch's argument lies in.
class Memories {
public:
    Memories(const Graph& graph, const Primitives& p, const Composed& composed) : graph_(graph), p_(p), composed_(composed) {
        for (std::size_t n = 0; n < graph.nodes.size(); ++n)
            if (p.leaves[n] >= 0) by_primitive_[p.leaves[n]] = {composed.name.at(static_cast<int>(n)), graph.nodes[n].shape};
        for (std::size_t o = 0; o < p.outputs.size(); ++o)
            if (!by_primitive_.contains(p.outputs[o]))
                by_primitive_[p.outputs[o]] = {fmt::format("y{}", o), graph.nodes[static_cast<std::size_t>(graph.outputs[o])].shape};
    }

    // Of an argument; a buffer is declared where it is met first.
    const Memory& of(const Argument& a, std::string& declarations) {
        auto& known = a.scratch.empty() ? by_primitive_[a.primitive] : by_scratch_[a.scratch];
        if (!known.name.empty()) return known;
        if (!a.scratch.empty()) {
            known = {fmt::format("s{}", by_scratch_.size()), a.whole};
        } else {
            const Primitive& v = p_.list[static_cast<std::size_t>(a.primitive)];
            known = {fmt::format("b{}", a.primitive), v.shape};
            // What holds a node's value has the node's name and shape: the proof goes by it.
            for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
                int of = p_.nodes[n];
                while (of >= 0 && of != a.primitive && p_.list[static_cast<std::size_t>(of)].kind == Kind::reshape)
                    of = p_.list[static_cast<std::size_t>(of)].in[0];
                const bool typed = graph_.nodes[n].dtype == v.dtype || (v.dtype == "f64" && graph_.nodes[n].dtype == "f32");
                if (of != a.primitive || graph_.nodes[n].role != Role::operation || !typed || v.dtype == "bool") continue;
                known = {composed_.name.at(static_cast<int>(n)), graph_.nodes[n].shape};
                break;
            }
        }
        declarations += fmt::format("    {} = tw.buffer({}{})\n", known.name, type_text(a.dtype), dims_text(known.shape));
        return known;
    }

private:
    const Graph& graph_;
    const Primitives& p_;
    const Composed& composed_;
    std::map<int, Memory> by_primitive_;
    std::map<std::string, Memory> by_scratch_;
};

bool has_contiguous_rows(const Argument& a) {
    std::int64_t next = 1;
    for (std::size_t d = a.dims.size(); d-- > 0; next *= a.dims[d])
        if (a.dims[d] != 1 && a.strides[d] != next) return false;
    return true;
}

// Which node's memory an output is: copies and reshapes of it have the same elements in the same order.
int held_by(const Graph& graph, int id) {
    for (;;) {
        const Node& n = graph.nodes[static_cast<std::size_t>(id)];
        const bool same = (n.op == "copy" || n.op == "reshape") && n.in.size() == 1 && n.in[0].node >= 0;
        if (!same || graph.nodes[static_cast<std::size_t>(n.in[0].node)].dtype != n.dtype) return id;
        id = n.in[0].node;
    }
}

}  // namespace

Result<std::string> program_text(const Graph& graph, const Primitives& p, const std::vector<KernelText>& kernels,
                                 const Precision& precision) {
    auto composed = compose(graph, precision);
    if (!composed) return Unexpected<Problem>{composed.error()};
    Memories memories(graph, p, *composed);
    std::string parameters, equations, body;
    for (const std::string& let : composed->lets) equations += "\n    " + let;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const Node& node = graph.nodes[n];
        if (node.role == Role::operation) continue;
        const auto range = composed->range.find(static_cast<int>(n));
        parameters += fmt::format("{}{}: tw.Tensor({}{}{})", parameters.empty() ? "" : ", ", composed->name.at(static_cast<int>(n)),
                                  type_text(node.dtype), dims_text(node.shape),
                                  range == composed->range.end() ? "" : fmt::format(", range={}", range->second));
    }
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
        const Node& node = graph.nodes[static_cast<std::size_t>(graph.outputs[o])];
        const int held = held_by(graph, graph.outputs[o]);
        if (p.list[static_cast<std::size_t>(p.outputs[o])].kind == Kind::leaf) {
            if (graph.nodes[static_cast<std::size_t>(held)].role != Role::operation) continue;  // no launch has a part in it
            return Unexpected<Problem>{Problem{node.name, "an output that is an input", ""}};
        }
        const auto before = p.outputs.begin() + static_cast<std::ptrdiff_t>(o);
        if (const auto same = std::find(p.outputs.begin(), before, p.outputs[o]); same != before) {
            if (held_by(graph, graph.outputs[static_cast<std::size_t>(same - p.outputs.begin())]) == held) continue;
            return Unexpected<Problem>{Problem{graph.name, "two outputs are one tensor", ""}};
        }
        const std::string value = composed->at(graph.outputs[o], node.shape), name = fmt::format("y{}", o);
        std::string left;
        for (std::size_t d = 0; d < node.shape.size(); ++d) left += fmt::format("{}i{} in 0:{}", d ? ", " : "", d, node.shape[d]);
        left = left.empty() ? name : fmt::format("{}[{}]", name, left);
        equations += fmt::format("\n    {} = {}", left, value);
        parameters +=
            fmt::format("{}{}: tw.Tensor({}{})", parameters.empty() ? "" : ", ", name, type_text(node.dtype), dims_text(node.shape));
    }
    if (kernels.empty()) return Unexpected<Problem>{Problem{graph.name, "nothing is launched: every output is an input", ""}};
    std::map<std::string, std::string> views;
    for (const KernelText& k : kernels) {
        std::string arguments;
        for (const Argument& a : k.arguments) {
            const Memory& memory = memories.of(a, body);
            std::string name = memory.name;
            if (a.dims != memory.shape || a.offset != 0 || !has_contiguous_rows(a)) {
                const std::string view = fmt::format("tw.view({}{}, strides=({}{}), offset={})", name, dims_text(a.dims),
                                                     fmt::join(a.strides, ", "), a.strides.size() == 1 ? "," : "", a.offset);
                const auto [it, fresh] = views.emplace(view, fmt::format("v{}", views.size()));
                if (fresh) body += fmt::format("    {} = {}\n", it->second, view);
                name = it->second;
            }
            arguments += (arguments.empty() ? "" : ", ") + name;
        }
        body += fmt::format("    {}({})\n", k.name, arguments);
    }
    return fmt::format("@tw.program(computes=\"\"\"{}\"\"\")\ndef {}({}):\n{}", equations, kProgramName, parameters, body);
}

}  // namespace tw::graph
