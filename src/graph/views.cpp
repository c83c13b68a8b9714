#include "graph/views.h"

namespace tw::graph {

std::vector<Dim> contiguous(const Shape& shape) {
    std::vector<Dim> dims(shape.size());
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        dims[d] = {shape[d], stride, 0, shape[d]};
        stride *= shape[d];
    }
    return dims;
}

std::optional<std::vector<Dim>> reshaped(const std::vector<Dim>& from, const Shape& to) {
    std::vector<Dim> runs;  // dimensions of more than one element, neighbours joined where they lie side by side
    for (const Dim& d : from) {
        if (d.size == 1 && d.whole()) continue;
        if (!runs.empty() && runs.back().whole() && d.whole() && runs.back().stride == d.stride * d.size) {
            runs.back().size *= d.size;
            runs.back().extent = runs.back().size;
            runs.back().stride = d.stride;
        } else {
            runs.push_back(d);
        }
    }
    std::vector<Dim> out(to.size());
    std::size_t r = runs.size();
    std::int64_t left = 1, stride = 0;
    for (std::size_t d = to.size(); d-- > 0;) {
        if (to[d] == 1) continue;
        if (left == 1) {
            if (r == 0) return std::nullopt;
            --r;
            left = runs[r].size;
            stride = runs[r].stride;
            if (!runs[r].whole()) {
                if (to[d] != left) return std::nullopt;
                out[d] = runs[r];
                left = 1;
                continue;
            }
        }
        if (left % to[d] != 0) return std::nullopt;
        out[d] = {to[d], stride, 0, to[d]};
        stride *= to[d];
        left /= to[d];
    }
    if (left != 1 || r != 0) return std::nullopt;
    return out;
}

View resolve(const Primitives& p, int id, const std::set<int>& stored) {
    const Primitive& v = p.list[static_cast<std::size_t>(id)];
    const bool view = v.kind == Kind::reshape || v.kind == Kind::permute || v.kind == Kind::slice;
    if (!view || stored.contains(id)) return {id, contiguous(v.shape)};
    View inner = resolve(p, v.in[0], stored);
    if (v.kind == Kind::permute) {
        std::vector<Dim> dims;
        for (const std::int64_t a : v.axes) dims.push_back(inner.dims[static_cast<std::size_t>(a)]);
        return {inner.base, dims};
    }
    if (v.kind == Kind::slice) {
        for (std::size_t d = 0; d < v.shape.size(); ++d) {
            if (inner.dims[d].size == v.shape[d]) continue;
            inner.dims[d].start += v.axes[d];
            inner.dims[d].size = v.shape[d];
        }
        return inner;
    }
    if (auto dims = reshaped(inner.dims, v.shape)) return {inner.base, *dims};
    return {id, contiguous(v.shape)};
}

View seen(const Primitives& p, int id, const std::set<int>& stored) {
    const Primitive& v = p.list[static_cast<std::size_t>(id)];
    const View own = {id, contiguous(v.shape)};
    if (stored.contains(id) || v.in.empty()) return own;
    const bool spread = v.kind == Kind::pointwise && v.fn == "copy" && p.list[static_cast<std::size_t>(v.in[0])].kind != Kind::number;
    if (v.kind != Kind::reshape && v.kind != Kind::permute && v.kind != Kind::slice && !spread) return own;
    View inner = seen(p, v.in[0], stored);
    if (v.kind == Kind::reshape) {
        auto dims = reshaped(inner.dims, v.shape);
        if (!dims) return own;
        inner.dims = std::move(*dims);
    } else if (v.kind == Kind::permute) {
        std::vector<Dim> dims;
        for (const std::int64_t a : v.axes) dims.push_back(inner.dims[static_cast<std::size_t>(a)]);
        inner.dims = std::move(dims);
    } else {
        for (std::size_t d = 0; d < v.shape.size(); ++d) {
            Dim& dim = inner.dims[d];
            if (v.kind == Kind::slice) inner.offset += v.axes[d] * dim.stride;
            else if (dim.size != v.shape[d]) dim.stride = 0;
            dim.size = dim.extent = v.shape[d];
        }
    }
    return inner;
}

}  // namespace tw::graph
