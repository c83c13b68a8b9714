// Concatenation, and elements that are chosen by indices.
#include <fmt/format.h>

#include "graph/operators.h"

namespace tw::graph {

namespace {

int cat(Call& c) {
    Builder& b = c.b;
    if (c.count() == 0) return c.fail("takes at least one tensor");
    Primitive p;
    p.kind = Kind::cat;
    p.dtype = c.node.dtype;
    const auto rank = b.shape(c.in(0)).size();
    const std::int64_t axis = c.axis("dim", rank, 0);
    if (c.failed) return 0;
    p.axes = {axis};
    for (std::size_t i = 0; i < c.count(); ++i) {
        const int x = b.cast(c.in(i), p.dtype);
        const Shape& s = b.shape(x);
        if (b.at(x).kind == Kind::number || s.size() != rank) return c.fail("takes tensors of one rank");
        if (i == 0) {
            p.shape = s;
        } else {
            for (std::size_t d = 0; d < rank; ++d)
                if (s[d] != p.shape[d] && static_cast<std::int64_t>(d) != axis)
                    return c.fail(fmt::format("input {} is {}, which differs from the first in dimension {}", i, text_of(s), d));
            p.shape[static_cast<std::size_t>(axis)] += s[static_cast<std::size_t>(axis)];
        }
        p.in.push_back(x);
    }
    return p.in.size() == 1 ? p.in[0] : b.add(std::move(p));
}

// The index has the result's rank, and 1 where it does not depend on a dimension.
int chosen(Call& c, int x, int index, Shape from, Shape shape) {
    const std::string& type = c.b.at(index).dtype;
    if (type != "i64" && type != "i32") return c.fail("indices are i32 or i64");
    if (shape.size() > 8) return c.fail("too many dimensions");
    Primitive p;
    p.kind = Kind::gather;
    p.dtype = c.b.at(x).dtype;
    p.in = {x, index};
    p.axes = std::move(from);
    p.shape = std::move(shape);
    return c.b.add(std::move(p));
}

// Along `dim` the elements that the index names, whose dimensions take its place.
int index_select(Call& c) {
    Builder& b = c.b;
    const int x = c.in(0), index = c.in(1);
    const Shape s = b.shape(x), i = b.shape(index);
    const auto axis = static_cast<std::size_t>(c.axis("dim", s.size(), 0));
    if (c.failed) return 0;
    Shape from, shape, wide;
    for (std::size_t d = 0; d < s.size(); ++d) {
        from.push_back(d == axis ? -1 : static_cast<std::int64_t>(shape.size()));
        const Shape own = d == axis ? i : Shape{s[d]};
        shape.insert(shape.end(), own.begin(), own.end());
        if (d == axis) wide.insert(wide.end(), i.begin(), i.end());
        else wide.push_back(1);
    }
    return chosen(c, x, b.reshape(index, wide), from, shape);
}

// The index has the input's rank; each of its elements takes one of its own line.
int gather(Call& c) {
    Builder& b = c.b;
    const int x = c.in(0), index = c.in(1);
    const Shape s = b.shape(x), i = b.shape(index);
    const auto axis = static_cast<std::size_t>(c.axis("dim", s.size(), 0));
    if (c.failed) return 0;
    Shape from;
    for (std::size_t d = 0; d < s.size(); ++d) {
        from.push_back(d == axis ? -1 : static_cast<std::int64_t>(d));
        if (i.size() != s.size() || (d != axis && i[d] > s[d])) return c.fail("the index is no larger than the input, but along `dim`");
    }
    return chosen(c, x, index, from, i);
}

}  // namespace

void add_places(Operators& t) {
    t["cat"] = cat;
    t["index_select"] = index_select;
    t["gather"] = gather;
}

}  // namespace tw::graph
