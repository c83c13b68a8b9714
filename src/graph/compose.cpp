#include "graph/compose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "graph/compose_node.h"
#include "graph/writer.h"

namespace tw::graph {

namespace {

std::string letters_of(const std::string& text) {
    std::string out;
    for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return out.substr(0, 60);
}

}  // namespace

std::string Composed::at(int node, const Shape& shape) const {
    Indices i;
    for (std::size_t d = 0; d < shape.size(); ++d) i.push_back(fmt::format("i{}", d));
    return i.empty() ? name.at(node) : fmt::format("{}[{}]", name.at(node), fmt::join(i, ", "));
}

std::string NodeText::literal(double v) { return real_text(v, false); }

Indices NodeText::own() const {
    Indices i;
    for (std::size_t d = 0; d < n.shape.size(); ++d) i.push_back(n.shape[d] == 1 ? "0" : fmt::format("i{}", d));
    return i;
}

std::string NodeText::raw(std::size_t operand, const Indices& index) const {
    const Operand& o = n.in[operand];
    if (o.node < 0) return literal(o.number);
    const std::string& name = out.name.at(o.node);
    return index.empty() ? name : fmt::format("{}[{}]", name, fmt::join(index, ", "));
}

std::string NodeText::real(std::size_t operand, const Indices& index) const {
    const std::string text = raw(operand, index), type = dtype(operand);
    if (type == "bool") return fmt::format("where({}, 1.0, 0.0)", truth(operand, index));
    return type == "f32" ? text : fmt::format("f32({})", text);
}

std::string NodeText::truth(std::size_t operand, const Indices& index) const {
    return dtype(operand) == "bool" && n.in[operand].node >= 0 ? raw(operand, index) : fmt::format("({} != 0)", raw(operand, index));
}

Indices NodeText::broadcast(std::size_t operand, const Indices& index) const {
    if (n.in[operand].node < 0) return {};
    const Shape& s = shape(operand);
    if (s.size() > index.size()) return Indices(s.size(), "0");  // of another family's operator
    Indices found(index.end() - static_cast<std::ptrdiff_t>(std::min(s.size(), index.size())), index.end());
    for (std::size_t d = 0; d < s.size(); ++d)
        if (s[d] == 1) found[d] = "0";
    return found;
}

const Shape& NodeText::shape(std::size_t operand) const {
    static const Shape none;
    return n.in[operand].node < 0 ? none : graph.nodes[zu(n.in[operand].node)].shape;
}

std::string NodeText::dtype(std::size_t operand) const {
    return n.in[operand].node < 0 ? "f32" : graph.nodes[zu(n.in[operand].node)].dtype;
}

double NodeText::number(const char* key, double otherwise) const { return real_in(n.attributes, key, otherwise); }

bool NodeText::flag(const char* key) const { return flag_in(n.attributes, key); }

Shape NodeText::list(const char* key, std::size_t count, std::int64_t otherwise) const {
    if (!n.attributes.contains(key)) return Shape(count, otherwise);
    const auto& v = n.attributes.at(key);
    Shape found = v.is_array() ? v.get<Shape>() : Shape{v.get<std::int64_t>()};
    if (found.size() == 1) found.resize(count, found[0]);
    return found;
}

std::vector<bool> NodeText::axes(const char* key) const {
    const std::size_t rank = shape(0).size();
    std::vector<bool> found(rank, !n.attributes.contains(key));
    if (!found.empty() && found[0]) return found;
    const auto& v = n.attributes.contains(key) ? n.attributes.at(key) : nlohmann::json::array();
    const Shape named = v.is_array() ? v.get<Shape>() : Shape{v.get<std::int64_t>()};
    if (named.empty()) found.assign(rank, true);
    for (const std::int64_t a : named) found[zu(a < 0 ? a + static_cast<std::int64_t>(rank) : a)] = true;
    return found;
}

std::size_t NodeText::axis() const {
    const auto rank = static_cast<std::int64_t>(shape(0).size());
    const std::int64_t a = integer_in(n.attributes, "dim", -1, -8, 8);
    return zu(a < 0 ? a + rank : a);
}

std::string NodeText::let(const std::string& name, const Shape& extents, const std::string& value) {
    Indices i;
    for (std::size_t d = 0; d < extents.size(); ++d) i.push_back(fmt::format("i{} in 0:{}", d, extents[d]));
    out.lets.push_back(i.empty() ? fmt::format("let {} = {}", name, value)
                                 : fmt::format("let {}[{}] = {}", name, fmt::join(i, ", "), value));
    return name;
}

std::string NodeText::fold(const std::string& fn, const std::vector<std::pair<std::string, std::int64_t>>& over, const std::string& body) {
    Indices r;
    for (const auto& [name, extent] : over)
        if (extent > 1) r.push_back(fmt::format("{} in 0:{}", name, extent));
    if (r.empty()) return body;
    return r.size() == 1 ? fmt::format("{}({}, {})", fn, r[0], body) : fmt::format("{}(({}), {})", fn, fmt::join(r, ", "), body);
}

// Both shapes in the smallest blocks of dimensions that have as many elements: inside one, an index is a part of the block's number.
Indices reshaped(const Shape& from, const Shape& to, const Indices& at) {
    Indices out(from.size(), "0");
    for (std::size_t f = 0, t = 0; f < from.size();) {
        std::size_t f1 = f, t1 = t;
        std::int64_t a = from[f1++], b = 1;
        while (a != b || (t1 < to.size() && to[t1] == 1)) {
            if (b <= a && t1 < to.size()) b *= to[t1++];
            else if (f1 < from.size()) a *= from[f1++];
            else break;
        }
        std::string number;
        std::int64_t step = 1;
        for (std::size_t d = t1; d-- > t; step *= to[d]) {
            if (to[d] == 1) continue;
            const std::string part = step == 1 ? at[d] : fmt::format("({}) * {}", at[d], step);
            number = number.empty() ? part : part + " + " + number;
        }
        if (number.empty()) number = "0";
        step = 1;
        for (std::size_t d = f1; d-- > f; step *= from[d]) {
            if (from[d] == 1) continue;
            const std::string below = step * from[d] == a ? fmt::format("({})", number) : fmt::format("({}) % {}", number, step * from[d]);
            out[d] = step == 1 ? fmt::format("({})", below) : fmt::format("({} // {})", below, step);
        }
        f = f1;
        t = t1;
    }
    return out;
}

std::optional<std::string> NodeText::value() {
    for (const auto of : {&NodeText::pointwise, &NodeText::views, &NodeText::folds, &NodeText::norms, &NodeText::windows,
                          &NodeText::products, &NodeText::losses})
        if (auto text = (this->*of)()) return text;
    return std::nullopt;
}

Result<Composed> compose(const Graph& graph, const Precision& precision) {
    Composed out;
    std::set<std::string> taken;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& n = graph.nodes[i];
        std::string name = (n.role == Role::operation ? "n_" : "a_") + letters_of(n.name);
        while (!taken.insert(name).second) name += "_" + std::to_string(i);
        out.name[static_cast<int>(i)] = name;
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& n = graph.nodes[i];
        if (n.role != Role::operation) continue;
        NodeText text{graph, n, precision, out, out.name[static_cast<int>(i)].substr(2)};
        auto value = text.value();
        if (!value) return Unexpected<Problem>{Problem{n.name, fmt::format("no `computes` is written of '{}'", n.op), ""}};
        static const std::set<std::string> views = {"reshape", "permute", "slice", "expand", "copy", "index_select", "gather", "cat"};
        if ((n.dtype == "f16" || n.dtype == "bf16") && !views.contains(n.op)) value = fmt::format("{}({})", n.dtype, *value);
        text.let(out.name[static_cast<int>(i)], n.shape, *value);
    }
    return out;
}

}  // namespace tw::graph
