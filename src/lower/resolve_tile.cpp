// Register tiles: elementwise expressions, broadcasting, dtypes, materialisation, reductions.
#include <cstdlib>

#include <fmt/format.h>

#include "ir/element_math.h"
#include "lower/resolver.h"

namespace tw::lower {

using ir::ElementOp;
using K = Value::Kind;

namespace {

ir::Element number(double v, DType dtype) {
    auto n = std::make_shared<ir::ElementNode>();
    n->op = ElementOp::number;
    n->dtype = dtype;
    n->number = v;
    return n;
}

// The same element with result dimensions renamed: new dimension of old dimension i is to[i].
ir::Element remap(const ir::Element& e, const std::vector<int>& to) {
    if (e->op == ElementOp::fragment || e->op == ElementOp::coordinate || !e->args.empty()) {
        auto n = std::make_shared<ir::ElementNode>(*e);
        for (int& dim : n->dims) dim = to[static_cast<std::size_t>(dim)];
        if (e->op == ElementOp::coordinate) n->id = to[static_cast<std::size_t>(n->id)];
        for (ir::Element& a : n->args) a = remap(a, to);
        return n;
    }
    return e;
}

// A literal takes the type of the tile it meets and stays as written: how it is rounded is part of its type. A constant that has a type
// already has the value of that type.
ir::Element cast_node(const ir::Element& e, DType to, bool literal = true) {
    if (e->dtype == to) return e;
    if (e->op == ElementOp::number) {
        if (literal && is_float(to)) return number(e->number, to);
        return number(ir::converted(literal ? e->number : ir::converted(e->number, e->dtype, e->dtype), e->dtype, to), to);
    }
    auto n = std::make_shared<ir::ElementNode>();
    n->op = ElementOp::cast;
    n->dtype = to;
    n->args = {e};
    return n;
}

}  // namespace

bool Resolver::can_hold_tiles(Span span, const char* what) {
    if (module_level || !out_) {
        error(Code::unsupported_expression, span, fmt::format("{} stands outside a kernel", what));
        return false;
    }
    if (group().elected) {
        error(Code::tile_in_elected, span, fmt::format("{} stands in code that a single thread executes", what),
              "move it out of `with tw.elected():`; TMA and mbarrier statements are elected by the compiler");
        return false;
    }
    return true;
}

int Resolver::new_fragment(const std::string& name, DType dtype, std::vector<int> shape, Span span) {
    return d.add_fragment(assigning_.empty() ? name : assigning_, dtype, std::move(shape), group_, loc(span));
}

Value Resolver::fragment_value(int fragment, bool fresh) const {
    const ir::Fragment& f = d.kernel.fragments[static_cast<std::size_t>(fragment)];
    auto n = std::make_shared<ir::ElementNode>();
    n->op = ElementOp::fragment;
    n->dtype = f.dtype;
    n->id = fragment;
    for (std::size_t i = 0; i < f.dist.shape.size(); ++i) n->dims.push_back(static_cast<int>(i));
    Tile t;
    t.element = n;
    t.shape = f.dist.shape;
    t.spread.assign(t.shape.size(), 0);
    t.dtype = f.dtype;
    t.fresh = fresh;
    return Value::of_tile(std::move(t));
}

std::optional<Tile> Resolver::as_tile(const Value& v, Span span, const char* what) {
    Tile t;
    switch (v.kind) {
        case K::error: return std::nullopt;
        case K::tile: return *v.tile;
        case K::boolean:
            t.element = number(v.integer != 0, DType::Bool);
            t.dtype = DType::Bool;
            t.weak = true;
            return t;
        case K::integer:
            if (std::abs(v.integer) > (std::int64_t{1} << 53)) {  // constants of tiles are doubles until they are printed
                error(Code::value_out_of_range, span, fmt::format("{} is beyond 2^53", v.integer), "add or shift two smaller constants");
                return std::nullopt;
            }
            t.element = number(static_cast<double>(v.integer), DType::I32);
            t.dtype = DType::I32;
            t.weak = true;
            return t;
        case K::real:
            t.element = number(v.real, DType::F32);
            t.dtype = DType::F32;
            t.weak = true;
            return t;
        case K::expr:
        case K::size:
        case K::global: {
            if (v.is(K::global)) {
                const ir::Tensor& tensor = d.kernel.tensors[static_cast<std::size_t>(v.global->tensor)];
                if (is_float(tensor.dtype)) {
                    error(Code::type_mismatch, span,
                          fmt::format("{} must be a tile, but this is a part of the tensor {}", what, tensor.name),
                          "load it first: tw.load(" + tensor.name + "[...])");
                    return std::nullopt;
                }
            }
            auto e = as_expr(v, span, what);
            if (!e) return std::nullopt;
            auto n = std::make_shared<ir::ElementNode>();
            n->op = ElementOp::index;
            n->dtype = DType::I32;
            n->index = *e;
            t.element = n;
            t.dtype = DType::I32;
            t.weak = true;
            return t;
        }
        case K::shared:
            error(Code::type_mismatch, span, fmt::format("{} must be a register tile, but this lies in shared memory", what),
                  "load it first: tw.load(view)");
            return std::nullopt;
        case K::tensor:
            error(Code::type_mismatch, span, fmt::format("{} must be a tile, but this is a tensor", what),
                  "load a part of it: tw.load(X[i:i+B])");
            return std::nullopt;
        default: error(Code::type_mismatch, span, fmt::format("{} must be a tile, not {}", what, describe(v))); return std::nullopt;
    }
}

Tile Resolver::cast(const Tile& t, DType to) const {
    Tile out = t;
    out.element = cast_node(t.element, to, t.weak);
    out.dtype = to;
    out.weak = false;
    out.fresh = t.fresh && t.dtype == to;
    return out;
}

// Brings operands to one shape (in place: elements are remapped) and, when asked, one dtype. Returns a tile with the common
// shape, spread flags and dtype, without an element.
std::optional<Tile> Resolver::join(const std::vector<Tile*>& operands, Span span, bool same_dtype, const char* what) {
    Tile out;
    const Tile* model = nullptr;
    for (Tile* t : operands) {
        if (t->shape.empty()) continue;
        if (!model) {
            model = t;
            out.shape = t->shape;
            out.spread = t->spread;
            continue;
        }
        if (t->shape.size() != out.shape.size()) {
            error(Code::shape_mismatch, span,
                  fmt::format("'{}' of tiles with shapes {} and {}", what, shape_text(out.shape), shape_text(t->shape)),
                  "say along which dimension the smaller one spreads: v[:, None] or v[None, :]");
            return std::nullopt;
        }
        for (std::size_t i = 0; i < out.shape.size(); ++i) {
            if (t->spread[i]) continue;
            if (out.spread[i]) {
                out.shape[i] = t->shape[i];
                out.spread[i] = 0;
            } else if (out.shape[i] != t->shape[i]) {
                error(Code::shape_mismatch, span,
                      fmt::format("'{}' of tiles with shapes {} and {}", what, shape_text(out.shape), shape_text(t->shape)),
                      t->shape[i] == 1 || out.shape[i] == 1 ? "an extent of 1 does not spread by itself: index it away and use None" : "");
                return std::nullopt;
            }
        }
    }
    if (!same_dtype) return out;
    std::optional<DType> dtype;
    bool weak_float = false, weak_int = false;
    for (Tile* t : operands) {
        if (t->weak) {
            (is_float(t->dtype) ? weak_float : weak_int) = true;
            continue;
        }
        if (!dtype) dtype = t->dtype;
        else if (*dtype != t->dtype) {
            error(Code::mixed_dtypes, span, fmt::format("'{}' of {} and {}", what, target::name(*dtype), target::name(t->dtype)),
                  "convert one side: x.to(f32)");
            return std::nullopt;
        }
    }
    out.weak = !dtype;
    if (!dtype) dtype = weak_float ? DType::F32 : DType::I32;
    if (weak_float && !is_float(*dtype)) {
        error(Code::mixed_dtypes, span, fmt::format("'{}' of a float and a tile of {}", what, target::name(*dtype)),
              "convert the tile: x.to(f32)");
        return std::nullopt;
    }
    (void)weak_int;
    for (Tile* t : operands) {
        t->element = cast_node(t->element, *dtype);
        if (!t->weak || t->element->op != ElementOp::number || !is_float(*dtype)) continue;
        const double written = t->element->number, held = ir::converted(written, DType::F64, *dtype);
        if (written != 0 && std::isfinite(written) && (held == 0 || !std::isfinite(held))) {
            error(Code::constant_overflow, span, fmt::format("{} is {} in {}", written, held, target::name(*dtype)),
                  "scale the values, or compute in f64");
            return std::nullopt;
        }
    }
    out.dtype = *dtype;
    return out;
}

Value Resolver::elementwise(ElementOp op, std::vector<Value> operands, Span span, const char* what, bool approximate) {
    std::vector<Tile> tiles;
    for (const Value& v : operands) {
        auto t = as_tile(v, span, "the operand");
        if (!t) return {};
        tiles.push_back(std::move(*t));
    }
    std::vector<Tile*> joined;
    for (Tile& t : tiles) joined.push_back(&t);
    const bool logical = op == ElementOp::logic_and || op == ElementOp::logic_or || op == ElementOp::logic_not;
    std::optional<Tile> result;
    if (op == ElementOp::select) {
        if (tiles[0].dtype != DType::Bool)
            return error(Code::bad_dtype, span, fmt::format("the condition of tw.where is {}, not bool", target::name(tiles[0].dtype)));
        auto values = join({joined[1], joined[2]}, span, true, what);
        if (!values) return {};
        result = join(joined, span, false, what);
        if (!result) return {};
        result->dtype = values->dtype;
        result->weak = values->weak;
    } else {
        result = join(joined, span, true, what);
        if (!result) return {};
    }
    if (logical && result->dtype != DType::Bool) {
        return error(Code::bad_dtype, span, fmt::format("'{}' takes boolean tiles, not {}", what, target::name(result->dtype)));
    }
    switch (op) {
        case ElementOp::exp:
        case ElementOp::exp2:
        case ElementOp::log:
        case ElementOp::log2:
        case ElementOp::sqrt:
        case ElementOp::rsqrt:
        case ElementOp::rcp:
        case ElementOp::sin:
        case ElementOp::cos:
        case ElementOp::tanh:
        case ElementOp::erf:
        case ElementOp::sigmoid:
        case ElementOp::floor:
        case ElementOp::ceil:
        case ElementOp::pow:
        case ElementOp::fma:
            if (result->weak && result->dtype == DType::I32) {
                for (Tile& t : tiles) t.element = cast_node(t.element, DType::F32);
                result->dtype = DType::F32;
            }
            if (result->dtype != DType::F32 && result->dtype != DType::F64) {
                return error(Code::bad_dtype, span,
                             fmt::format("tw.{} is computed in f32, but the operand is {}", what, target::name(result->dtype)),
                             "convert it: x.to(f32)");
            }
            break;
        case ElementOp::add:
        case ElementOp::sub:
        case ElementOp::mul:
        case ElementOp::neg:
        case ElementOp::div:
        case ElementOp::mod:
            if (result->dtype == DType::Bool)
                return error(Code::bad_dtype, span, fmt::format("'{}' of boolean tiles", what), "use tw.where(c, 1.0, 0.0)");
            if (std::string_view(what) == "/" && !is_float(result->dtype)) {
                return error(Code::bad_dtype, span, "'/' of integer tiles", "write // for integers, or convert: x.to(f32)");
            }
            if ((std::string_view(what) == "//" || op == ElementOp::mod) && is_float(result->dtype)) {
                return error(Code::bad_dtype, span, fmt::format("'{}' of float tiles", what), "use tw.floor(x / y)");
            }
            if (result->dtype == DType::E4M3 || result->dtype == DType::E5M2 || result->dtype == DType::TF32) {
                return error(Code::bad_dtype, span, fmt::format("'{}' is not computed in {}", what, target::name(result->dtype)),
                             "convert it: x.to(f32)");
            }
            break;
        default: break;
    }
    auto n = std::make_shared<ir::ElementNode>();
    n->op = op;
    n->dtype = result->dtype;
    n->approximate = approximate;
    switch (op) {
        case ElementOp::lt:
        case ElementOp::le:
        case ElementOp::gt:
        case ElementOp::ge:
        case ElementOp::eq:
        case ElementOp::ne: n->dtype = DType::Bool; break;
        default: break;
    }
    for (Tile& t : tiles) n->args.push_back(t.element);
    result->element = n;
    result->dtype = n->dtype;
    // Two literals stay a literal; two integer scalars do not meet here (they are integers).
    result->fresh = false;
    result->layout = {};
    return Value::of_tile(std::move(*result));
}

int Resolver::materialize(const Tile& t, const std::string& name, Span span) {
    if (!can_hold_tiles(span, "a register tile")) return -1;
    bool identity = t.element->op == ElementOp::fragment && t.element->offset.empty() && t.layout.kind == LayoutKind::none;
    for (std::size_t i = 0; i < t.shape.size() && identity; ++i) {
        identity &= !t.spread[i] && i < t.element->dims.size() && t.element->dims[i] == static_cast<int>(i);
    }
    if (identity && t.element->dims.size() == t.shape.size()) return t.element->id;
    std::vector<int> shape, to(t.shape.size(), 0);
    long long elements = 1;
    for (std::size_t i = 0; i < t.shape.size(); ++i) {
        to[i] = static_cast<int>(shape.size());
        if (!t.spread[i]) {
            shape.push_back(t.shape[i]);
            elements *= t.shape[i];
        }
    }
    if (elements > (1 << 20)) {
        error(Code::value_out_of_range, span, fmt::format("a register tile of {} elements", elements),
              "no block has registers for more than 2^16 values of 32 bits");
        return -1;
    }
    const int f = new_fragment(name, t.dtype, shape, span);
    d.notes[static_cast<std::size_t>(f)].layout = t.layout;
    emit(ir::Compute{f, remap(t.element, to)}, span);
    return f;
}

Value Resolver::settled(const Value& v, const std::string& name, Span span) {
    if (v.has_parts()) {
        Value parts = v;
        for (std::size_t i = 0; i < v.items.size(); ++i) {
            parts.items[i] = settled(v.items[i], v.is(K::record) ? name + "_" + v.names[i] : name + std::to_string(i), span);
            if (!parts.items[i]) return {};
        }
        return parts;
    }
    if (!v.is(K::tile) || v.tile->weak) return v;
    const Tile& t = *v.tile;
    if ((t.element->op == ElementOp::fragment && t.element->offset.empty()) || t.element->op == ElementOp::scalar) return v;
    const int f = materialize(t, name, span);
    if (f < 0) return {};
    Tile again = *fragment_value(f, true).tile;
    auto node = std::make_shared<ir::ElementNode>(*again.element);
    node->dims.clear();
    for (std::size_t k = 0; k < t.shape.size(); ++k) {
        if (!t.spread[k]) node->dims.push_back(static_cast<int>(k));
    }
    again.element = node;
    again.shape = t.shape;
    again.spread = t.spread;
    return Value::of_tile(again);
}

// v[:, None]: full slices keep a dimension, None inserts one that spreads. acc[:, 64:128]: a window with constant bounds.
Value Resolver::tile_index(const Tile& whole, const lang::Subscript& s, Span span) {
    Tile t = whole;
    std::vector<int> to, shape;
    std::vector<char> spread;
    std::vector<lang::ExprId> indices = s.indices;
    if (indices.size() == 1) {
        if (const auto* tuple = ast.get_if<lang::Tuple>(indices[0])) indices = tuple->elements;
    }
    for (lang::ExprId id : indices) {
        if (const auto* slice = ast.get_if<lang::Slice>(id); slice && !slice->lower && !slice->upper && !slice->step) {
            const std::size_t from = to.size();
            if (from >= t.shape.size())
                return error(Code::bad_index_count, span, fmt::format("too many indices for a tile of shape {}", shape_text(t.shape)));
            to.push_back(static_cast<int>(shape.size()));
            shape.push_back(t.shape[from]);
            spread.push_back(t.spread[from]);
        } else if (ast.get_if<lang::NoneLiteral>(id)) {
            shape.push_back(1);
            spread.push_back(1);
        } else if (ast.get_if<lang::Slice>(id)) {
            const std::size_t from = to.size();
            if (from >= t.shape.size())
                return error(Code::bad_index_count, span, fmt::format("too many indices for a tile of shape {}", shape_text(t.shape)));
            auto index = index_of(id, ir::Expr(t.shape[from]));
            if (!index) return {};
            auto lo = index->lo.as_constant();
            if (!lo)
                return error(Code::not_constant, index->span, "a window of a register tile has constant bounds",
                             "use tw.unroll for the loop around it");
            if (*lo < 0 || *lo + index->extent > t.shape[from])
                return error(Code::value_out_of_range, index->span,
                             fmt::format("{}:{} of a dimension of extent {}", *lo, *lo + index->extent, t.shape[from]));
            if (*lo % index->extent || t.shape[from] % index->extent)
                return error(Code::value_out_of_range, index->span,
                             fmt::format("a window of {} elements starts at a multiple of {}", index->extent, index->extent));
            if (index->extent != t.shape[from]) {
                for (char made : t.spread)
                    if (made)
                        return error(Code::unsupported_expression, index->span, "a tile with a None dimension has no windows",
                                     "take the window first");
                const int f = materialize(t, "whole", span);
                if (f < 0) return {};
                if (t.element->op != ElementOp::fragment || t.element->id != f) t = *fragment_value(f, false).tile;
                auto leaf = std::make_shared<ir::ElementNode>(*t.element);
                leaf->offset.resize(leaf->dims.size(), 0);
                leaf->offset[from] += static_cast<int>(*lo);
                t.element = leaf;
                t.shape[from] = index->extent;
            }
            to.push_back(static_cast<int>(shape.size()));
            shape.push_back(t.shape[from]);
            spread.push_back(0);
        } else {
            return error(Code::unsupported_expression, ast[id].span, "a register tile is indexed with slices and None only",
                         "its elements live in different threads; store it to shared memory to pick parts");
        }
    }
    if (to.size() != t.shape.size()) {
        return error(Code::bad_index_count, span, fmt::format("{} of {} dimensions are indexed", to.size(), t.shape.size()),
                     "write ':' for each dimension that stays");
    }
    if (shape.size() > 8) return error(Code::bad_index_count, span, "a tile has at most 8 dimensions");
    Tile out = t;
    out.element = remap(t.element, to);
    out.shape = shape;
    out.spread = spread;
    out.fresh = false;
    return Value::of_tile(std::move(out));
}

Value Resolver::reduce(ir::FoldKind kind, const Value& v, const Value* axis, Span span, Span axis_span) {
    const std::string op = ir::name_of(kind);
    auto t = as_tile(v, span, "the value to reduce");
    if (!t) return {};
    if (t->shape.empty()) return error(Code::bad_axis, span, fmt::format("tw.{} of a scalar", op));
    switch (t->dtype) {
        case DType::F32:
        case DType::F64:
        case DType::I32:
        case DType::U32:
        case DType::I64: break;
        case DType::BF16:
        case DType::F16:
            if (kind == ir::FoldKind::max || kind == ir::FoldKind::min) break;  // exact
            [[fallthrough]];
        default:
            return error(Code::bad_dtype, span, fmt::format("tw.{} of {} values", op, target::name(t->dtype)),
                         "reduce in f32: tw." + op + "(x.to(f32), ...)");
    }
    for (char s : t->spread) {
        if (s) return error(Code::bad_axis, span, "a tile with a None dimension cannot be reduced", "reduce first, then index with None");
    }
    std::vector<int> axes;
    if (!axis || axis->is(K::none)) {
        for (int i = static_cast<int>(t->shape.size()) - 1; i >= 0; --i) axes.push_back(i);
    } else {
        auto a = constant_int(*axis, axis_span, "the axis");
        if (!a) return {};
        const int rank = static_cast<int>(t->shape.size());
        if (*a < -rank || *a >= rank)
            return error(Code::bad_axis, axis_span, fmt::format("axis {} of a tile of shape {}", *a, shape_text(t->shape)));
        axes.push_back(static_cast<int>(*a < 0 ? *a + rank : *a));
    }
    // The operand is a fragment of its own; the name on the left belongs to the result.
    const std::string name = assigning_;
    assigning_.clear();
    int src = materialize(*t, op + "_of", span);
    assigning_ = name;
    if (src < 0) return {};
    for (int dim : axes) {
        std::vector<int> shape = d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape;
        shape.erase(shape.begin() + dim);
        const int dst = new_fragment(op, t->dtype, shape, span);
        emit(ir::Reduce{dst, src, dim, kind, 1}, span);
        src = dst;
    }
    return fragment_value(src, true);
}

}  // namespace tw::lower
