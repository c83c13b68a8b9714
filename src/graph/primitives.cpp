#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/input.h"
#include "graph/attention.h"
#include "graph/operators.h"

namespace tw::graph {

int Call::fail(std::string what, std::string help) {
    if (!failed) problem = Problem{node.name, std::move(what), std::move(help)};
    failed = true;
    return 0;
}

int Call::in(std::size_t i) {
    if (has(i)) return in_[i];
    fail(fmt::format("'{}' has {} inputs; number {} is missing", node.op, in_.size(), i));
    return b.number(0);
}

int Call::real(std::size_t i) {
    const int id = in(i);
    return b.at(id).kind == Kind::number ? id : b.cast(id, "f32");
}

double Call::number(const char* key, double otherwise) {
    const double value = real_in(node.attributes, key, otherwise);
    if (std::isnan(value)) fail(fmt::format("attribute `{}` is no number", key));
    return value;
}

std::int64_t Call::integer(const char* key, std::int64_t otherwise) {
    return integer_in(node.attributes, key, otherwise, -(std::int64_t{1} << 31), std::int64_t{1} << 31);
}

bool Call::flag(const char* key, bool otherwise) const { return flag_in(node.attributes, key, otherwise); }

Shape Call::integers(const char* key, std::size_t count, std::int64_t otherwise) {
    if (!node.attributes.contains(key)) return Shape(count, otherwise);
    const auto& value = node.attributes.at(key);
    Shape out;
    const auto take = [&](const nlohmann::json& v) {
        const bool fine = v.is_number_integer() && std::abs(v.get<double>()) <= 1e12;
        if (!fine) fail(fmt::format("attribute `{}` holds what is no whole number", key));
        out.push_back(fine ? v.get<std::int64_t>() : 1);
    };
    if (value.is_array()) {
        for (const auto& v : value) take(v);
    } else {
        take(value);
    }
    if (out.size() == 1) out.resize(count, out[0]);
    if (out.size() != count) {
        fail(fmt::format("attribute `{}` has {} numbers; {} are needed", key, out.size(), count));
        out.assign(count, 1);
    }
    return out;
}

std::int64_t Call::axis(const char* key, std::size_t rank, std::int64_t otherwise) {
    const auto r = static_cast<std::int64_t>(rank);
    std::int64_t a = integer(key, otherwise);
    if (a < 0) a += r;
    if (a < 0 || a >= r) {
        fail(fmt::format("`{}` is no axis of a tensor of {} dimensions", key, rank));
        return 0;
    }
    return a;
}

Shape Call::axes(const char* key, std::size_t rank) {
    Shape all;
    for (std::size_t d = 0; d < rank; ++d) all.push_back(static_cast<std::int64_t>(d));
    if (!node.attributes.contains(key)) return all;
    const auto& value = node.attributes.at(key);
    Shape out = integers(key, value.is_array() ? value.size() : 1, 0);
    if (out.empty()) return all;
    for (std::int64_t& a : out) {
        if (a < 0) a += static_cast<std::int64_t>(rank);
        if (a < 0 || a >= static_cast<std::int64_t>(rank)) {
            fail(fmt::format("`{}` names an axis that a tensor of {} dimensions does not have", key, rank));
            return all;
        }
    }
    std::sort(out.begin(), out.end());
    if (std::adjacent_find(out.begin(), out.end()) != out.end()) fail(fmt::format("`{}` names an axis twice", key));
    return out;
}

namespace {

const Operators& operators() {
    static const Operators table = [] {
        Operators t;
        add_pointwise(t);
        add_folds(t);
        add_products(t);
        add_views(t);
        add_places(t);
        return t;
    }();
    return table;
}

}  // namespace

Result<Primitives> to_primitives(const Graph& graph, const Precision& precision) {
    Builder b;
    b.out.large = graph.sizes.empty() ? precision.large : std::int64_t{1} << 62;
    b.out.sizes = graph.sizes;
    std::vector<int> value(graph.nodes.size(), -1);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        const Node& node = graph.nodes[n];
        b.from = node.name;
        if (node.role != Role::operation) {
            Primitive p;
            p.shape = node.shape;
            p.dtype = node.dtype;
            value[n] = b.add(std::move(p));
            continue;
        }
        const auto found = operators().find(node.op);
        if (found == operators().end())
            return Unexpected<Problem>{Problem{node.name, fmt::format("the operator '{}' is not supported", node.op),
                                               "docs/graph.md lists the operators; the rest stays with the framework"}};
        std::vector<int> in;
        for (const Operand& o : node.in) in.push_back(o.node < 0 ? b.number(o.number) : value[static_cast<std::size_t>(o.node)]);
        Call call(b, node, in, precision);
        int id = found->second(call);
        if (call.failed) return Unexpected<Problem>{call.problem};
        if (!b.broken.empty())
            return Unexpected<Problem>{Problem{node.name, b.broken, "the shapes of a graph are those of its example inputs"}};
        const bool whole =
            std::any_of(in.begin(), in.end(), [&](int i) { return b.at(i).kind != Kind::number && b.at(i).dtype[0] == 'i'; });
        if (whole && node.dtype[0] == 'i' && b.at(id).dtype == "f32" && node.op != "cast")
            return Unexpected<Problem>{
                Problem{node.name, fmt::format("'{}' of integers is made in f32, which does not hold them all", node.op),
                        "write it by add, sub, mul, minimum, maximum, where, or `cast` to f32 where they are below 2^24"}};
        if (b.at(id).kind == Kind::number) id = b.broadcast(id, node.shape);
        if (b.shape(id) != node.shape)
            return Unexpected<Problem>{Problem{
                node.name, fmt::format("is said to have the shape {}; '{}' gives {}", text_of(node.shape), node.op, text_of(b.shape(id))),
                "the shapes of a graph are those of its example inputs"}};
        const bool narrow = node.dtype == "f16" || node.dtype == "bf16";
        if (narrow && b.at(id).dtype == "f32") id = b.cast(id, node.dtype);
        if (b.at(id).dtype != node.dtype) {
            if (node.dtype != "f32" && b.at(id).dtype != "f32")
                return Unexpected<Problem>{Problem{
                    node.name, fmt::format("is said to be {}; '{}' gives {}", node.dtype, node.op, b.at(id).dtype), "use a `cast`"}};
            id = b.cast(id, node.dtype);
        }
        value[n] = id;
    }
    for (const int o : graph.outputs) b.out.outputs.push_back(value[static_cast<std::size_t>(o)]);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) b.out.leaves.push_back(graph.nodes[n].role == Role::operation ? -1 : value[n]);
    b.out.nodes = std::move(value);
    fuse_attention(b.out, precision);
    widen_centred_sums(b.out);
    return std::move(b.out);
}

}  // namespace tw::graph
