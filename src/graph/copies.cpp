#include "graph/copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/writer.h"

namespace tw::graph {

std::optional<double> constant_of(const Primitives& p, int id) {
    const Primitive& v = p.list[static_cast<std::size_t>(id)];
    if (v.kind == Kind::number) return v.value;
    const bool same = v.kind == Kind::reshape || (v.kind == Kind::pointwise && v.fn == "copy");
    return same ? constant_of(p, v.in[0]) : std::nullopt;
}

namespace {

// A group of the root alone, an atom for each dimension of `shape`, which is a part of the root's from `start` of dimension `axis` on. A
// view of a part begins at an address that vectors may have; where it does not, the kernel sees the whole.
Group moved(const Primitives& p, int root, const Shape& shape, std::size_t axis, std::int64_t start) {
    Group g;
    g.root = root;
    g.members = {root};
    g.output.source = root;
    const Shape& whole = p.list[static_cast<std::size_t>(root)].shape;
    std::int64_t offset = start;
    for (std::size_t d = axis + 1; d < shape.size(); ++d) offset *= whole[d];
    const bool view = offset % 16 == 0 || start == 0;  // of any type
    g.output.offset = view ? offset : 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0; stride *= whole[d]) {
        auto& axes = g.axes[root];
        axes.resize(shape.size());
        const bool inside = !view && d == axis;
        if (shape[d] == 1) {
            if (inside) g.output.places.insert(g.output.places.begin(), {-1, stride, start, whole[d]});
            continue;
        }
        const int atom = static_cast<int>(d);
        axes[d] = {atom};
        g.size[atom] = shape[d];
        g.order.insert(g.order.begin(), atom);
        g.output.places.insert(g.output.places.begin(), {atom, stride, inside ? start : 0, inside ? whole[d] : shape[d]});
    }
    g.axes[root].resize(shape.size());
    return g;
}

Place place_of(const Dim& dim, int atom) { return {atom, dim.stride, dim.start, dim.extent}; }

Result<KernelText> finished(Writer& w) {
    if (w.failed) return Unexpected<Problem>{w.problem};
    return w.finish();
}

}  // namespace

Result<std::vector<KernelText>> write_cat(const Primitives& p, const Group& group, const std::string& name) {
    const Primitive& v = p.list[static_cast<std::size_t>(group.root)];
    const auto axis = static_cast<std::size_t>(v.axes[0]);
    std::int64_t start = 0;
    std::vector<KernelText> out;
    for (std::size_t k = 0; k < v.in.size(); ++k) {
        const int from = v.in[k];
        const Shape& shape = p.list[static_cast<std::size_t>(from)].shape;
        Group g = moved(p, group.root, shape, axis, start);
        start += shape[axis];
        const bool constant = constant_of(p, from).has_value();
        if (!constant) {
            const View& view = group.operands[k];
            g.axes[from] = g.axes[group.root];
            Read& read = g.reads[from];
            read.source = view.base;
            for (std::size_t d = 0; d < shape.size(); ++d)
                if (shape[d] > 1 || !view.dims[d].whole())
                    read.places.push_back(place_of(view.dims[d], shape[d] > 1 ? static_cast<int>(d) : -1));
        }
        Writer w(p, g, fmt::format("{}_{}", name, k));
        w.raw = !constant;
        w.part = k;
        w.ranges = true;
        write_tiles(w);
        w.family = "copy";
        auto kernel = finished(w);
        if (!kernel) return Unexpected<Problem>{kernel.error()};
        out.push_back(std::move(*kernel));
    }
    return out;
}

Result<std::vector<KernelText>> write_gather(const Primitives& p, const Group& group, const std::string& name) {
    const Primitive& v = p.list[static_cast<std::size_t>(group.root)];
    const Primitive &source = p.list[static_cast<std::size_t>(v.in[0])], &index = p.list[static_cast<std::size_t>(v.in[1])];
    Group g = moved(p, group.root, v.shape, 0, 0);
    Writer w(p, g, name);
    w.raw = w.ranges = true;
    w.family = "gather";
    // By dimension of the result: whether the index, and the source itself, go along it.
    std::vector<bool> of_index, of_source(v.shape.size(), false);
    Read which, from;
    which.source = group.operands[1].base;
    from.source = group.operands[0].base;
    for (std::size_t d = 0; d < v.shape.size(); ++d) {
        of_index.push_back(index.shape[d] > 1);
        const Dim& dim = group.operands[1].dims[d];
        if (index.shape[d] > 1 || !dim.whole()) which.places.push_back(place_of(dim, index.shape[d] > 1 ? static_cast<int>(d) : -1));
    }
    if (which.places.empty()) which.places.push_back({-1, 1, 0, 1});
    std::size_t chosen = 0;
    for (std::size_t d = 0; d < source.shape.size(); ++d) {
        const Dim& dim = group.operands[0].dims[d];
        const int to = static_cast<int>(v.axes[d]);
        if (to < 0) {
            chosen = from.places.size();
            if (!dim.whole()) w.fail("an index into a part of a tensor", v.in[0]);
        } else if (source.shape[d] == 1 || v.shape[static_cast<std::size_t>(to)] == 1) {
            if (dim.extent == 1) continue;
        } else {
            of_source[static_cast<std::size_t>(to)] = true;
        }
        const bool one = to < 0 || v.shape[static_cast<std::size_t>(to)] == 1 || source.shape[d] == 1;
        from.places.push_back(place_of(dim, one ? -1 : to));
    }
    // The tile lies along the last dimension that has the index or the source, not both.
    int tiled = -1;
    for (std::size_t d = 0; d < v.shape.size(); ++d)
        if (v.shape[d] > 1 && !(of_index[d] && of_source[d])) tiled = static_cast<int>(d);
    std::vector<GridAxis> grid;
    if (tiled >= 0) {
        const std::int64_t extent = g.size.at(tiled), wide = std::clamp<std::int64_t>(power_of_two(extent), 32, 512);
        const std::int64_t blocks = (extent + wide - 1) / wide;
        if (blocks > 1) grid.push_back({"j", blocks});
        w.tile.push_back({tiled, blocks > 1 ? fmt::format("j * {}", wide) : "0", wide});
        w.threads = static_cast<int>(std::clamp<std::int64_t>(wide / 4, 32, 128));
    } else {
        w.threads = 32;
    }
    for (std::size_t i = g.order.size(); i-- > 0;) {
        if (g.order[i] == tiled) continue;
        w.at[g.order[i]] = fmt::format("b{}", i);
        grid.push_back({w.at[g.order[i]], g.size.at(g.order[i])});
    }
    w.grid(grid);
    const std::int64_t range = source.shape[static_cast<std::size_t>(std::find(v.axes.begin(), v.axes.end(), -1) - v.axes.begin())];
    const std::string places = w.parameter(which, index.dtype, range);
    std::string number = fmt::format("{}[{}]", places, w.subscript(which));
    if (tiled >= 0 && of_index[static_cast<std::size_t>(tiled)]) {
        w.line(fmt::format("place = {}", w.load(which, places, index.dtype)));
        number = "place";
    }
    std::string at, of;
    const std::string name_of = w.parameter(from, source.dtype);
    for (std::size_t i = 0; i < from.places.size(); ++i) {
        Read one;
        one.places = {from.places[i]};
        at += (i ? ", " : "") + (i == chosen ? number : w.subscript(one));
        of += (i ? ", " : "") + (i == chosen ? fmt::format("{}[{}]", places, w.equation_index(which)) : w.equation_index(one));
    }
    const std::string fill = source.dtype == "bool" ? "False" : source.dtype[0] == 'i' ? "0" : "0.0";
    Value x;
    x.axes = tiled >= 0 ? 1U : 0U;
    x.raw = true;
    x.logical = source.dtype == "bool";
    x.text = w.fresh("x");
    const bool whole = tiled < 0 || g.size.at(tiled) % w.tile[0].extent == 0;
    w.line(fmt::format("{} = tw.load({}[{}]{})", x.text, name_of, at, whole ? "" : ", fill=" + fill));
    w.store(x);
    w.set_equation(group.root, fmt::format("{}[{}]", name_of, of));
    auto kernel = finished(w);
    if (!kernel) return Unexpected<Problem>{kernel.error()};
    return std::vector<KernelText>{std::move(*kernel)};
}

}  // namespace tw::graph
