#include "graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace tw::graph {

int Builder::add(Primitive p) {
    p.from = from;
    out.list.push_back(std::move(p));
    return static_cast<int>(out.list.size()) - 1;
}

int Builder::number(double value) {
    Primitive p;
    p.kind = Kind::number;
    p.value = value;
    return add(std::move(p));
}

std::optional<Shape> Builder::broadcast_shape(const std::vector<int>& in) const {
    std::size_t rank = 0;
    for (const int i : in) rank = std::max(rank, shape(i).size());
    Shape result(rank, 1);
    for (const int i : in) {
        const Shape& s = shape(i);
        for (std::size_t d = 0; d < s.size(); ++d) {
            std::int64_t& to = result[rank - s.size() + d];
            if (to == 1) to = s[d];
            else if (s[d] != 1 && s[d] != to) return std::nullopt;
        }
    }
    return result;
}

int Builder::call(const std::string& fn, std::vector<int> in) {
    const auto result = broadcast_shape(in);
    if (!result) {
        broken = fmt::format("'{}' takes operands whose shapes do not fit", fn);
        return in[0];
    }
    Primitive p;
    p.kind = Kind::pointwise;
    p.fn = fn;
    p.shape = *result;
    static const std::vector<std::string> logical = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"};
    if (std::find(logical.begin(), logical.end(), fn) != logical.end()) p.dtype = "bool";
    for (int& i : in) {
        if (at(i).kind != Kind::number && shape(i).size() < result->size()) {
            Shape longer(result->size() - shape(i).size(), 1);
            longer.insert(longer.end(), shape(i).begin(), shape(i).end());
            i = reshape(i, longer);
        }
    }
    p.in = std::move(in);
    return add(std::move(p));
}

int Builder::call_as(const std::string& fn, std::vector<int> in, const std::string& dtype) {
    const int id = call(fn, std::move(in));
    out.list[static_cast<std::size_t>(id)].dtype = dtype;
    return id;
}

int Builder::cast(int a, const std::string& dtype) {
    if (at(a).dtype == dtype) return a;
    const int id = call("cast", a);
    out.list[static_cast<std::size_t>(id)].dtype = dtype;
    return id;
}

namespace {

// Whether the dimensions of both shapes are runs of the same extents: a kernel then goes over these. Else what lies between them is a line.
bool refine(const Shape& one, const Shape& other) {
    std::size_t i = 0, j = 0;
    std::int64_t left = 1, right = 1;
    for (;;) {
        while (left == 1 && i < one.size()) left = one[i++];
        while (right == 1 && j < other.size()) right = other[j++];
        if (left == 1 || right == 1) return true;
        if (left % right != 0 && right % left != 0) return false;
        const std::int64_t taken = std::min(left, right);
        left /= taken;
        right /= taken;
    }
}

}  // namespace

int Builder::reshape(int a, Shape to) {
    if (shape(a) == to) return a;
    if (count_of(shape(a)) != count_of(to)) {
        broken = fmt::format("a reshape of {} to {}", text_of(shape(a)), text_of(to));
        return a;
    }
    const Shape flat = {count_of(to)};
    if (shape(a) != flat && to != flat && !refine(shape(a), to)) a = reshape(a, flat);
    Primitive p;
    p.kind = Kind::reshape;
    p.in = {a};
    p.shape = std::move(to);
    p.dtype = at(a).dtype;
    return add(std::move(p));
}

int Builder::permute(int a, Shape order) {
    Primitive p;
    p.kind = Kind::permute;
    p.in = {a};
    p.dtype = at(a).dtype;
    // Where only dimensions of one element move, nothing does: that is another shape.
    bool same = true;
    std::int64_t last = -1;
    for (const std::int64_t d : order) {
        p.shape.push_back(shape(a)[static_cast<std::size_t>(d)]);
        if (p.shape.back() == 1) continue;
        same = same && d > last;
        last = d;
    }
    if (same) return reshape(a, p.shape);
    p.axes = std::move(order);
    return add(std::move(p));
}

int Builder::slice(int a, Shape starts, Shape to) {
    if (to == shape(a)) return a;
    Primitive p;
    p.kind = Kind::slice;
    p.in = {a};
    p.dtype = at(a).dtype;
    p.axes = std::move(starts);
    p.shape = std::move(to);
    return add(std::move(p));
}

int Builder::broadcast(int a, const Shape& to) {
    if (shape(a) == to) return a;
    if (at(a).kind != Kind::number && shape(a).size() < to.size()) {
        Shape longer(to.size() - shape(a).size(), 1);
        longer.insert(longer.end(), shape(a).begin(), shape(a).end());
        a = reshape(a, longer);
    }
    Primitive p;
    p.kind = Kind::pointwise;
    p.fn = "copy";
    p.in = {a};
    p.shape = to;
    p.dtype = at(a).dtype;
    return add(std::move(p));
}

int Builder::reduce(const std::string& fn, int a, Shape axes) {
    std::sort(axes.begin(), axes.end());
    Primitive p;
    p.kind = Kind::reduce;
    p.fn = fn;
    p.in = {a};
    p.shape = shape(a);
    bool empty = true;
    for (const std::int64_t d : axes) {
        empty = empty && p.shape[static_cast<std::size_t>(d)] == 1;
        p.shape[static_cast<std::size_t>(d)] = 1;
    }
    if (empty) return a;
    p.axes = std::move(axes);
    return add(std::move(p));
}

int Builder::drop(int a, const Shape& axes) {
    Shape to;
    for (std::size_t d = 0; d < shape(a).size(); ++d)
        if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) == axes.end()) to.push_back(shape(a)[d]);
    return reshape(a, to);
}

}  // namespace tw::graph
