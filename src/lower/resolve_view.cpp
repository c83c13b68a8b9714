// Views: parts of tensors and of shared buffers.
#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/resolver.h"

namespace tw::lower {

using K = Value::Kind;

// One index; `dim_extent` is the extent of the dimension it indexes (for `:` and open slices), if known.
std::optional<Index> Resolver::index_of(lang::ExprId id, std::optional<ir::Expr> dim_extent) {
    Index out;
    out.span = ast[id].span;
    if (const auto* slice = ast.get_if<lang::Slice>(id)) {
        out.kind = Index::Kind::range;
        if (slice->step) {
            error(Code::unsupported_expression, ast[slice->step].span, "slices have no step");
            return std::nullopt;
        }
        std::optional<ir::Expr> lo = ir::Expr(0), hi = dim_extent;
        if (slice->lower) lo = as_expr(evaluate(slice->lower), ast[slice->lower].span, "the start of a slice");
        if (slice->upper) hi = as_expr(evaluate(slice->upper), ast[slice->upper].span, "the end of a slice");
        if (!lo || !hi) return std::nullopt;
        auto extent = constant_difference(*lo, *hi);
        if (!extent) {
            error(Code::slice_extent, out.span, "the extent of the slice is not a constant",
                  "write X[i : i + BM] with a constant BM; elements outside the tensor are masked");
            return std::nullopt;
        }
        if (*extent < 1 || *extent > (1 << 24)) {
            error(Code::slice_extent, out.span, fmt::format("the slice has extent {}", *extent));
            return std::nullopt;
        }
        out.lo = *lo;
        out.extent = static_cast<int>(*extent);
        return out;
    }
    Value v = evaluate(id);
    if (!v) return std::nullopt;
    if (v.is(K::tile) && !v.tile->shape.empty()) {
        if (v.tile->shape.size() != 1 || target::info(v.tile->dtype).is_float || v.tile->dtype == DType::Bool) {
            error(Code::type_mismatch, out.span,
                  fmt::format("an index is an integer, a slice, or a one-dimensional integer tile (a gather), not {}", describe(v)));
            return std::nullopt;
        }
        out.kind = Index::Kind::gather;
        const std::string name = assigning_;
        assigning_.clear();
        out.fragment = materialize(*v.tile, "rows", out.span);
        assigning_ = name;
        if (out.fragment < 0) return std::nullopt;
        out.extent = v.tile->shape[0];
        return out;
    }
    auto e = as_expr(v, out.span, "an index");
    if (!e) return std::nullopt;
    out.lo = *e;
    return out;
}

namespace {
std::vector<lang::ExprId> index_list(const lang::Module& ast, const lang::Subscript& s) {
    if (s.indices.size() == 1) {
        if (const auto* tuple = ast.get_if<lang::Tuple>(s.indices[0])) return tuple->elements;
    }
    return s.indices;
}
}  // namespace

Value Resolver::tensor_index(int tensor, const lang::Subscript& s, Span span) {
    const ir::Tensor& t = d.kernel.tensors[static_cast<std::size_t>(tensor)];
    const auto ids = index_list(ast, s);
    if (ids.size() != t.dims.size()) {
        return error(Code::bad_index_count, span,
                     fmt::format("{} has {} dimension{}, here are {} ind{}", t.name, t.dims.size(), t.dims.size() == 1 ? "" : "s",
                                 ids.size(), ids.size() == 1 ? "ex" : "ices"));
    }
    auto ref = std::make_shared<GlobalRef>();
    ref->tensor = tensor;
    int gathers = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        auto index = index_of(ids[i], t.dims[i]);
        if (!index) return {};
        gathers += index->kind == Index::Kind::gather;
        if (gathers > 1) return error(Code::unsupported_expression, index->span, "only one dimension of a view can be gathered");
        ref->indices.push_back(*index);
    }
    Value v;
    v.kind = K::global;
    v.global = std::move(ref);
    return v;
}

Value Resolver::shared_index(const ir::SharedView& view, const lang::Subscript& s, Span span) {
    const auto ids = index_list(ast, s);
    if (ids.size() > view.dims.size()) {
        return error(Code::bad_index_count, span,
                     fmt::format("the view has {} dimensions, here are {} indices", view.dims.size(), ids.size()));
    }
    auto out = std::make_shared<ir::SharedView>(view);
    out->dims.clear();
    out->extents.clear();
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const int dim = view.dims[i], extent = view.extents[i];
        if (i >= ids.size()) {
            out->dims.push_back(dim);
            out->extents.push_back(extent);
            continue;
        }
        auto index = index_of(ids[i], ir::Expr(extent));
        if (!index) return {};
        if (index->kind == Index::Kind::gather) return error(Code::unsupported_expression, index->span, "shared memory cannot be gathered");
        if (auto lo = index->lo.as_constant(); lo && (*lo < 0 || *lo + index->extent > extent)) {
            return error(Code::value_out_of_range, index->span,
                         index->kind == Index::Kind::scalar
                             ? fmt::format("index {} of a dimension of extent {}", *lo, extent)
                             : fmt::format("{}:{} of a dimension of extent {}", *lo, *lo + index->extent, extent));
        }
        if (index->extent > extent)
            return error(Code::value_out_of_range, index->span,
                         fmt::format("{} elements of a dimension of extent {}", index->extent, extent));
        ir::Expr& origin = out->origin[static_cast<std::size_t>(dim)];
        origin = origin + index->lo;
        if (index->kind == Index::Kind::range) {
            out->dims.push_back(dim);
            out->extents.push_back(index->extent);
        }
    }
    Value v;
    v.kind = K::shared;
    v.shared = std::move(out);
    return v;
}

Value Resolver::subscript(const lang::Subscript& s, Span span) {
    Value base = evaluate(s.base);
    if (!base) return {};
    switch (base.kind) {
        case K::tensor: return tensor_index(static_cast<int>(base.integer), s, span);
        case K::shared: return shared_index(*base.shared, s, span);
        case K::tile: return tile_index(*base.tile, s, span);
        case K::barriers: {
            if (s.indices.size() != 1) return error(Code::bad_index_count, span, "an array of mbarriers has one index");
            auto slot = as_expr(evaluate(s.indices[0]), ast[s.indices[0]].span, "the slot");
            if (!slot) return {};
            const int slots = d.kernel.barriers[static_cast<std::size_t>(base.integer)].slots;
            if (auto c = slot->as_constant(); c && (*c < 0 || *c >= slots)) {
                return error(Code::value_out_of_range, ast[s.indices[0]].span, fmt::format("slot {} of {} mbarriers", *c, slots));
            }
            Value v;
            v.kind = K::barrier;
            v.barrier = std::make_shared<ir::BarrierRef>(ir::BarrierRef{static_cast<int>(base.integer), *slot, std::nullopt});
            return v;
        }
        case K::sequence: return part(base, s, span);
        case K::table: return entry(base, s, span);
        default: return error(Code::type_mismatch, span, fmt::format("{} cannot be indexed", describe(base)));
    }
}

// `tile_shape`: the origin form C[i, j] stands for a tile of this shape along the last dimensions.
std::optional<ir::GlobalView> Resolver::global_view(const Value& v, const std::vector<int>* tile_shape, Span span, const char* what) {
    if (!v) return std::nullopt;
    if (!v.is(K::global)) {
        error(Code::type_mismatch, span, fmt::format("{} must be a part of a tensor, X[...], not {}", what, describe(v)));
        return std::nullopt;
    }
    const GlobalRef& ref = *v.global;
    ir::GlobalView view;
    view.tensor = ref.tensor;
    bool all_scalar = true;
    for (std::size_t i = 0; i < ref.indices.size(); ++i) {
        const Index& index = ref.indices[i];
        view.origin.push_back(index.lo);
        if (index.kind == Index::Kind::scalar) continue;
        all_scalar = false;
        view.dims.push_back(static_cast<int>(i));
        view.extents.push_back(index.extent);
        if (index.kind == Index::Kind::gather) {
            view.gather_dim = static_cast<int>(i);
            view.gather_fragment = index.fragment;
        }
    }
    const ir::Tensor& t = d.kernel.tensors[static_cast<std::size_t>(ref.tensor)];
    if (tile_shape && all_scalar && !tile_shape->empty()) {
        if (tile_shape->size() > t.dims.size()) {
            error(Code::shape_mismatch, span,
                  fmt::format("a tile of shape {} does not fit the {} dimensions of {}", shape_text(*tile_shape), t.dims.size(), t.name));
            return std::nullopt;
        }
        const std::size_t first = t.dims.size() - tile_shape->size();
        for (std::size_t i = 0; i < tile_shape->size(); ++i) {
            view.dims.push_back(static_cast<int>(first + i));
            view.extents.push_back((*tile_shape)[i]);
        }
    }
    if (tile_shape && view.extents != *tile_shape) {
        error(Code::shape_mismatch, span,
              fmt::format("the part of {} has shape {}, the tile {}", t.name, shape_text(view.extents), shape_text(*tile_shape)));
        return std::nullopt;
    }
    view.limit.assign(view.dims.size(), std::nullopt);
    view.in_bounds.assign(view.dims.size(), false);
    // Only what is trivially true: constant origin inside a constant extent.
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        const auto dim = static_cast<std::size_t>(view.dims[i]);
        auto lo = view.origin[dim].as_constant(), extent = t.dims[dim].as_constant();
        if (lo && extent && view.gather_dim != view.dims[i]) view.in_bounds[i] = *lo >= 0 && *lo + view.extents[i] <= *extent;
    }
    return view;
}

std::optional<ir::SharedView> Resolver::shared_view(const Value& v, Span span, const char* what) {
    if (!v) return std::nullopt;
    if (!v.is(K::shared)) {
        error(Code::type_mismatch, span, fmt::format("{} must be a shared-memory view, not {}", what, describe(v)));
        return std::nullopt;
    }
    return *v.shared;
}

std::optional<ir::BarrierRef> Resolver::barrier_ref(const Value& v, Span span) {
    if (!v) return std::nullopt;
    if (v.is(K::barrier)) return *v.barrier;
    if (v.is(K::barriers) && d.kernel.barriers[static_cast<std::size_t>(v.integer)].slots == 1)
        return ir::BarrierRef{static_cast<int>(v.integer), 0, std::nullopt};
    error(Code::type_mismatch, span, fmt::format("an mbarrier is needed here, bars[i] or ring.full(slot), not {}", describe(v)));
    return std::nullopt;
}

std::optional<std::vector<int>> Resolver::shape_of(const Value& v, Span span, std::int64_t limit) {
    if (!v) return std::nullopt;
    std::vector<int> shape;
    auto add = [&](const Value& item) {
        auto e = small_int(item, span, "an extent", 1, 1 << 24);
        if (e) shape.push_back(*e);
        return e.has_value();
    };
    if (v.is(K::sequence)) {
        for (const Value& item : v.items) {
            if (!add(item)) return std::nullopt;
        }
        if (shape.size() > 8) {
            error(Code::bad_index_count, span, "a tile has at most 8 dimensions");
            return std::nullopt;
        }
    } else if (!add(v)) {
        return std::nullopt;
    }
    std::int64_t elements = 1;
    for (int e : shape) {
        if (__builtin_mul_overflow(elements, std::int64_t{e}, &elements) || elements > limit) {
            error(Code::value_out_of_range, span, fmt::format("a tile of shape {} has more than {} elements", shape_text(shape), limit));
            return std::nullopt;
        }
    }
    return shape;
}

}  // namespace tw::lower
