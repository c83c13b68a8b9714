// tw. functions on register tiles.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "lower/builtins.h"
#include "target/warp.h"

namespace tw::lower {

using ir::ElementOp;
using K = Value::Kind;

Value Resolver::builtin(const std::string& name, const CallArgs& args) {
    Builtins b{*this};
    if (auto v = b.scalars(name, args)) return *v;
    if (auto v = b.tiles(name, args)) return *v;
    if (module_level || !out_) return error(Code::unsupported_expression, args.span, fmt::format("tw.{} stands outside a kernel", name));
    if (auto v = b.memory(name, args)) return *v;
    if (auto v = b.sync(name, args)) return *v;
    return error(Code::unsupported_expression, args.callee, fmt::format("tw.{} cannot be called here", name),
                 name == "tiles" || name == "persistent" || name == "unroll"                             ? "it is the range of a `for` loop"
                 : name == "warpgroups" || name == "warps" || name == "elected" || name == "wgmma_batch" ? "it opens a `with` block"
                                                                                                         : "");
}

Value Resolver::method(const Value& receiver, const std::string& name, const CallArgs& args) {
    Builtins b{*this};
    if (receiver.is(K::table)) return entry_or(receiver, args);
    if (auto v = b.method(receiver, name, args)) return *v;
    return error(Code::unknown_attribute, args.callee, fmt::format("{} has no '{}'", describe(receiver), name));
}

std::optional<LayoutRequest> Builtins::layout_of(const Bound& b, const char* key) {
    if (!b.has(key)) return LayoutRequest{};
    const Value& v = b.at(key);
    if (v.is(K::layout)) return v.layout;
    r.error(Code::type_mismatch, b.where(key), fmt::format("a layout is needed, such as tw.blocked(vector=8), not {}", describe(v)));
    return std::nullopt;
}

// Does every element of the tile at or beyond `limit` along the axis hold the fold's identity already? A load that fills with it from there
// on leaves it so.
bool Builtins::filled_from(const Value& limit, const Value& tile, std::size_t axis, double identity) {
    const auto& e = tile.tile->element;
    if (e->op != ElementOp::fragment || !e->offset.empty() || e->dims.size() != tile.tile->shape.size()) return false;
    for (std::size_t i = 0; i < e->dims.size(); ++i) {
        if (e->dims[i] != static_cast<int>(i)) return false;
    }
    if (!limit.is(K::integer) && !limit.is(K::expr) && !limit.is(K::size)) return false;
    const auto end = r.as_expr(limit, {}, "the limit");
    if (!end) return false;
    const ir::LoadGlobal* load = nullptr;
    int definitions = 0;
    for (const ir::Stmt& s : *r.out_) {
        const auto* l = std::get_if<ir::LoadGlobal>(&s.op);
        const auto* c = std::get_if<ir::Compute>(&s.op);
        if (l && l->dst == e->id) load = l, ++definitions;
        if (c && c->dst == e->id) ++definitions;
    }
    if (!load || definitions != 1 || !load->has_fill || load->fill != identity || load->src.gather_dim >= 0) return false;
    const auto dim = static_cast<std::size_t>(load->src.dims[axis]);
    if (!load->src.origin[dim].is_constant(0)) return false;
    const bool own = axis < load->src.limit.size() && load->src.limit[axis] && ir::same(*load->src.limit[axis], *end);
    return own || ir::same(r.d.kernel.tensors[static_cast<std::size_t>(load->src.tensor)].dims[dim], *end);
}

// The first coordinate along the axis at which the extreme value stands, as i32. Coordinates are folded in f32, which holds every
// coordinate of a tile exactly (a tile has at most 2^20 elements), because there the fold has an identity. Where `limit` is given,
// elements at or beyond it take no part: they count as the fold's identity in both of the two reductions that the result is made of, the
// extreme value, and the least coordinate that has it.
Value Builtins::extreme_index(ir::FoldKind fold, const Bound& b, Span span) {
    auto t = r.as_tile(b.at("x"), b.where("x"), "the tile");
    if (!t) return {};
    if (t->dtype != DType::F32 && t->dtype != DType::BF16 && t->dtype != DType::F16)
        return r.error(Code::bad_dtype, b.where("x"),
                       fmt::format("the position of an extreme value among {} values", target::name(t->dtype)), "convert first: x.to(f32)");
    const auto rank = static_cast<std::int64_t>(t->shape.size());
    std::int64_t axis = rank - 1;
    if (b.has("axis")) {
        auto a = r.constant_int(b.at("axis"), b.where("axis"), "the axis");
        if (!a) return {};
        axis = *a < 0 ? *a + rank : *a;
    }
    if (axis < 0 || axis >= rank)
        return r.error(Code::bad_axis, b.has("axis") ? b.where("axis") : span,
                       fmt::format("axis {} of a tile of shape {}", axis, shape_text(t->shape)));
    Value x = r.settled(b.at("x"), "searched", b.where("x")), along = Value::of(axis);
    if (!x) return {};
    Tile place;
    auto n = std::make_shared<ir::ElementNode>();
    n->op = ElementOp::coordinate;
    n->dtype = DType::I32;
    n->id = static_cast<int>(axis);
    place.element = n;
    place.dtype = DType::I32;
    place.shape = t->shape;
    place.spread.assign(t->shape.size(), 0);
    const double identity = (fold == ir::FoldKind::max ? -1 : 1) * std::numeric_limits<double>::infinity();
    const bool filled = !b.has("limit") || filled_from(b.at("limit"), x, static_cast<std::size_t>(axis), identity);
    if (!filled) {
        const Value before = r.elementwise(ElementOp::lt, {Value::of_tile(place), b.at("limit")}, span, "<");
        const Value cut = before ? r.elementwise(ElementOp::select, {before, x, Value::of_real(identity)}, span, "argmax") : Value{};
        x = cut ? r.settled(cut, "searched", span) : Value{};
        if (!x) return {};
    }
    const Value best = x ? r.reduce(fold, x, &along, span, span) : Value{};
    if (!best) return {};
    // Back to the tile's rank: the axis is a dimension along which the result spreads.
    Tile spread = *best.tile;
    auto leaf = std::make_shared<ir::ElementNode>(*spread.element);
    for (int& dim : leaf->dims) dim += dim >= axis;
    spread.element = leaf;
    spread.shape.insert(spread.shape.begin() + axis, 1);
    spread.spread.insert(spread.spread.begin() + axis, 1);
    const Value nowhere = Value::of_real(std::numeric_limits<double>::infinity());
    Value found = r.elementwise(
        ElementOp::select,
        {r.elementwise(ElementOp::eq, {x, Value::of_tile(spread)}, span, "=="), Value::of_tile(r.cast(place, DType::F32)), nowhere}, span,
        "argmax");
    if (found && b.has("limit")) {
        found = r.elementwise(ElementOp::select,
                              {r.elementwise(ElementOp::lt, {Value::of_tile(place), b.at("limit")}, span, "<"), found, nowhere}, span,
                              "argmax");
    }
    const Value first = found ? r.reduce(ir::FoldKind::min, found, &along, span, span) : Value{};
    return first ? Value::of_tile(r.cast(*first.tile, DType::I32)) : Value{};
}

// One shfl per register: the tile keeps its layout, and what that means for its elements follows from it (ir/shuffle.h).
Value Builtins::shuffle(const Bound& b, Span span) {
    static const std::pair<const char*, target::ShuffleMode> modes[] = {{"xor", target::ShuffleMode::Bfly},
                                                                        {"up", target::ShuffleMode::Up},
                                                                        {"down", target::ShuffleMode::Down},
                                                                        {"lane", target::ShuffleMode::Idx}};
    std::optional<target::ShuffleMode> mode;
    int lane = 0;
    for (const auto& [key, means] : modes) {
        if (!b.has(key)) continue;
        if (mode) return r.error(Code::argument_count, span, "tw.shuffle moves in one way: xor=, up=, down= or lane=");
        const auto n = r.small_int(b.at(key), b.where(key), key == std::string("lane") ? "the lane" : "the distance", 0, 31);
        if (!n) return {};
        mode = means, lane = *n;
    }
    if (!mode)
        return r.error(Code::argument_count, span, "tw.shuffle needs to know from which lane",
                       "xor=1: the neighbour; up=1: the lane before; down=1: the lane after; lane=0: one lane for all");
    auto t = r.as_tile(b.at("x"), b.where("x"), "the tile");
    if (!t) return {};
    const std::string left = r.assigning_;
    r.assigning_.clear();
    const int src = r.materialize(*t, "held", span);
    r.assigning_ = left;
    if (src < 0) return {};
    const int dst = r.new_fragment("shuffled", t->dtype, r.d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape, span);
    r.emit(ir::Shuffle{dst, src, *mode, lane}, span);
    return r.fragment_value(dst, true);
}

namespace {

// The value of a function of a constant, where it is one.
std::optional<Value> folded_unary(ElementOp op, const Value& x) {
    const double v = x.is(K::real) ? x.real : static_cast<double>(x.integer);
    switch (op) {
        case ElementOp::exp: return Value::of_real(std::exp(v));
        case ElementOp::exp2: return Value::of_real(std::exp2(v));
        case ElementOp::log:
            if (v > 0) return Value::of_real(std::log(v));
            break;
        case ElementOp::log2:
            if (v > 0) return Value::of_real(std::log2(v));
            break;
        case ElementOp::sqrt:
            if (v >= 0) return Value::of_real(std::sqrt(v));
            break;
        case ElementOp::rsqrt:
            if (v > 0) return Value::of_real(1 / std::sqrt(v));
            break;
        case ElementOp::abs: return x.is(K::integer) ? Value::of(std::abs(x.integer)) : Value::of_real(std::abs(v));
        default: break;
    }
    return std::nullopt;
}

}  // namespace

Value Builtins::unary(ElementOp op, const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw." + name, "x approx=");
    if (!b) return {};
    const bool approximate = b->has("approx") && b->at("approx").integer != 0;
    const Value& x = b->at("x");
    if (x.is(K::real) || x.is(K::integer)) {
        if (auto known = folded_unary(op, x)) return *known;
        if (r.module_level)
            return r.error(Code::constant_overflow, span,
                           fmt::format("tw.{} of {} is not a constant", name, x.is(K::real) ? x.real : static_cast<double>(x.integer)));
    }
    return r.elementwise(op, {x}, span, name.c_str(), approximate);
}

Value Builtins::where(const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw.where", "condition a b");
    if (!b) return {};
    if (auto c = r.constant_bool(b->at("condition"))) return *c ? b->at("a") : b->at("b");
    if (!b->at("condition").is(K::tile)) {
        auto e = r.as_expr(b->at("condition"), b->where("condition"), "the condition");
        if (!e) return {};
        auto x = r.as_tile(Value::of_expr(*e), span, "the condition");
        return r.elementwise(ElementOp::select,
                             {r.elementwise(ElementOp::ne, {Value::of_tile(*x), Value::of(0)}, span, "!="), b->at("a"), b->at("b")}, span,
                             "where");
    }
    return r.elementwise(ElementOp::select, {b->at("condition"), b->at("a"), b->at("b")}, span, "where");
}

// The upper half of a product, and numbers made of a counter: ir/element_math.h.
std::optional<Value> Builtins::random(const std::string& name, const CallArgs& args) {
    const auto words = [&](const Bound& b, const std::vector<const char*>& names) -> std::optional<std::vector<Value>> {
        std::vector<Value> out;
        for (const char* each : names) {
            auto t = r.as_tile(b.at(each), b.where(each), "a word");
            if (!t) return std::nullopt;
            if (is_float(t->dtype) || t->dtype == DType::Bool) {
                r.error(Code::bad_dtype, b.where(each), fmt::format("tw.{} takes words of integers, not {}", name, target::name(t->dtype)),
                        "convert it: x.to(u32)");
                return std::nullopt;
            }
            out.push_back(Value::of_tile(r.cast(*t, DType::U32)));
        }
        return out;
    };
    const auto made = [&](ElementOp op, const char* parameters, const std::vector<const char*>& names) -> Value {
        auto b = r.bind(args, "tw." + name, parameters);
        const auto operands = b ? words(*b, names) : std::nullopt;
        return operands ? r.elementwise(op, *operands, args.span, name.c_str()) : Value{};
    };
    if (name == "mulhi") return made(ElementOp::mulhi, "a b", {"a", "b"});
    if (name == "philox")
        return made(ElementOp::philox, "key0 key1 counter0 counter1 counter2 counter3 word",
                    {"key0", "key1", "counter0", "counter1", "counter2", "counter3", "word"});
    if (name != "uniform") return std::nullopt;
    auto b = r.bind(args, "tw.uniform", "x");
    const auto word = b ? words(*b, {"x"}) : std::nullopt;
    if (!word) return Value{};
    const Value top = r.elementwise(ElementOp::div, {word->front(), Value::of(256)}, args.span, "//");
    if (!top) return Value{};
    return r.elementwise(ElementOp::mul, {Value::of_tile(r.cast(*top.tile, DType::F32)), Value::of_real(0x1p-24)}, args.span, "uniform");
}

Value Builtins::folded(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    if ((name == "min" || name == "max") && args.positional.size() == 2) {
        auto b = r.bind(args, "tw." + name, "a b");
        return b ? r.elementwise(name == "min" ? ElementOp::min : ElementOp::max, {b->at("a"), b->at("b")}, span, name.c_str()) : Value{};
    }
    auto b = r.bind(args, "tw." + name, "x axis=");
    if (!b) return {};
    const ir::FoldKind kind = name == "min"   ? ir::FoldKind::min
                              : name == "max" ? ir::FoldKind::max
                              : name == "sum" ? ir::FoldKind::sum
                                              : ir::FoldKind::prod;
    return r.reduce(kind, b->at("x"), b->has("axis") ? &b->at("axis") : nullptr, span, b->where("axis"));
}

// tw.any: the condition of a branch that each warp takes for itself.
Value Builtins::vote(const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw.any", "x");
    auto t = b ? r.as_tile(b->at("x"), b->where("x"), "the tile") : std::nullopt;
    if (!t) return {};
    if (t->dtype != DType::Bool)
        return r.error(Code::bad_dtype, span, fmt::format("tw.any of {} values", target::name(t->dtype)),
                       "compare first: tw.any(x > limit)");
    const std::string left = r.assigning_;
    r.assigning_.clear();
    const int src = r.materialize(*t, "any", span);
    r.assigning_ = left;
    return src < 0 ? Value{} : Value::entity(K::vote, src);
}

Value Builtins::scanned(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw." + name, "x axis= reverse=");
    if (!b) return {};
    auto t = r.as_tile(b->at("x"), b->where("x"), "the value to scan");
    if (!t) return {};
    if (t->dtype != DType::F32 && t->dtype != DType::I32 && t->dtype != DType::F64 && t->dtype != DType::I64) {
        return r.error(Code::bad_dtype, span, fmt::format("tw.{} of {} values", name, target::name(t->dtype)), "scan in f32: x.to(f32)");
    }
    std::int64_t axis = -1;
    if (b->has("axis")) {
        auto a = r.constant_int(b->at("axis"), b->where("axis"), "the axis");
        if (!a) return {};
        axis = *a;
    }
    const auto rank = static_cast<std::int64_t>(t->shape.size());
    if (axis < -rank || axis >= rank)
        return r.error(Code::bad_axis, b->where("axis"), fmt::format("axis {} of a tile of shape {}", axis, shape_text(t->shape)));
    if (axis < 0) axis += rank;
    const std::string left = r.assigning_;
    r.assigning_.clear();
    const int src = r.materialize(*t, "scanned", span);
    r.assigning_ = left;
    if (src < 0) return {};
    const int dst = r.new_fragment(name, t->dtype, r.d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape, span);
    r.emit(ir::Scan{dst, src, static_cast<int>(axis), name == "cumsum" ? ir::FoldKind::sum : ir::FoldKind::prod,
                    b->has("reverse") && b->at("reverse").integer != 0},
           span);
    return r.fragment_value(dst, true);
}

Value Builtins::filled(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw." + name, name == "zeros" ? "dtype shape layout=" : "dtype shape value layout=");
    if (!b) return {};
    if (!b->at("dtype").is(K::dtype))
        return r.error(Code::type_mismatch, b->where("dtype"),
                       fmt::format("a dtype is needed, such as f32, not {}", describe(b->at("dtype"))));
    auto shape = r.shape_of(b->at("shape"), b->where("shape"), 1 << 20);
    auto layout = layout_of(*b, "layout");
    if (!shape || !layout) return {};
    Tile t;
    t.weak = false;
    auto value = r.as_tile(name == "zeros" ? Value::of(0) : b->at("value"), name == "zeros" ? span : b->where("value"), "the value");
    if (!value) return {};
    if (!value->shape.empty()) return r.error(Code::shape_mismatch, b->where("value"), "tw.full takes a scalar value");
    t = r.cast(*value, b->at("dtype").dtype);
    t.shape = *shape;
    t.spread.assign(shape->size(), 0);
    t.layout = *layout;
    return Value::of_tile(std::move(t));
}

Value Builtins::coordinates(const std::string& name, const CallArgs& args) {
    Tile t;
    auto n = std::make_shared<ir::ElementNode>();
    n->op = ElementOp::coordinate;
    n->dtype = DType::I32;
    t.dtype = DType::I32;
    t.element = n;
    if (name == "arange") {
        auto b = r.bind(args, "tw.arange", "n layout=");
        if (!b) return {};
        auto count = r.small_int(b->at("n"), b->where("n"), "the extent", 1, 1 << 20);
        auto layout = layout_of(*b, "layout");
        if (!count || !layout) return {};
        t.shape = {*count};
        t.layout = *layout;
    } else {
        auto b = r.bind(args, "tw.coord", "x axis");
        if (!b) return {};
        auto x = r.as_tile(b->at("x"), b->where("x"), "the tile");
        if (!x) return {};
        auto axis = r.small_int(b->at("axis"), b->where("axis"), "the axis", 0, static_cast<std::int64_t>(x->shape.size()) - 1);
        if (!axis) return {};
        t.shape = x->shape;
        n->id = *axis;
    }
    t.spread.assign(t.shape.size(), 0);
    return Value::of_tile(std::move(t));
}

Value Builtins::relayout(const CallArgs& args) {
    const Span span = args.span;
    auto b = r.bind(args, "tw.relayout", "x layout");
    if (!b) return {};
    auto t = r.as_tile(b->at("x"), b->where("x"), "the tile");
    auto layout = layout_of(*b, "layout");
    if (!t || !layout) return {};
    const std::string left = r.assigning_;
    r.assigning_.clear();
    const int src = r.materialize(*t, "moved", span);
    r.assigning_ = left;
    if (src < 0) return {};
    const int dst = r.new_fragment("moved", t->dtype, r.d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape, span);
    r.d.notes[static_cast<std::size_t>(dst)].layout = *layout;
    emit_sugar(Relayout{dst, src}, fmt::format("{} = relayout {}", fragment_name(dst), fragment_name(src)), span);
    return r.fragment_value(dst, true);
}

Value Builtins::layout(LayoutKind kind, const std::string& name, const CallArgs& args) {
    Value v;
    v.kind = K::layout;
    v.layout.kind = kind;
    const bool mma = kind == LayoutKind::mma_a || kind == LayoutKind::mma_b || kind == LayoutKind::mma_c;
    auto b = r.bind(args, "tw." + name,
                    kind == LayoutKind::blocked || kind == LayoutKind::warp_rows ? "vector="
                    : mma                                                        ? "warps="
                    : kind == LayoutKind::like                                   ? "x"
                                                                                 : "");
    if (!b) return {};
    if (b->has("vector")) {
        auto n = r.small_int(b->at("vector"), b->where("vector"), "the vector", 1, 64);
        if (!n) return {};
        v.layout.vector = *n;
    }
    if (b->has("warps")) {
        const Value& w = b->at("warps");
        if (!w.is(K::sequence) || w.items.size() != 2)
            return r.error(Code::type_mismatch, b->where("warps"), "warps is a pair, such as (2, 2)");
        auto m = r.small_int(w.items[0], b->where("warps"), "warps along M", 1, 32),
             n = r.small_int(w.items[1], b->where("warps"), "warps along N", 1, 32);
        if (!m || !n) return {};
        v.layout.warps_m = *m;
        v.layout.warps_n = *n;
    }
    if (kind == LayoutKind::like) {
        const Value& x = b->at("x");
        if (!x.is(K::tile) || x.tile->element->op != ElementOp::fragment || !x.tile->element->offset.empty() ||
            x.tile->element->dims.size() != x.tile->shape.size()) {
            return r.error(Code::type_mismatch, b->where("x"), "tw.like takes the name of a register tile");
        }
        v.layout.like = x.tile->element->id;
    }
    return v;
}

std::optional<Value> Builtins::tiles(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    static const std::map<std::string, ElementOp> unary_functions = {
        {"exp", ElementOp::exp},   {"exp2", ElementOp::exp2},   {"log", ElementOp::log},  {"log2", ElementOp::log2},
        {"sqrt", ElementOp::sqrt}, {"rsqrt", ElementOp::rsqrt}, {"rcp", ElementOp::rcp},  {"sin", ElementOp::sin},
        {"cos", ElementOp::cos},   {"tanh", ElementOp::tanh},   {"erf", ElementOp::erf},  {"sigmoid", ElementOp::sigmoid},
        {"abs", ElementOp::abs},   {"floor", ElementOp::floor}, {"ceil", ElementOp::ceil}};
    if (auto it = unary_functions.find(name); it != unary_functions.end()) return unary(it->second, name, args);
    if (r.module_level) return std::nullopt;
    if (name == "where") return where(args);
    if (auto v = random(name, args)) return *v;
    if (name == "fma") {
        auto b = r.bind(args, "tw.fma", "a b c");
        return b ? r.elementwise(ElementOp::fma, {b->at("a"), b->at("b"), b->at("c")}, span, "fma") : Value{};
    }
    if (name == "pow" || name == "minimum" || name == "maximum") {
        auto b = r.bind(args, "tw." + name, "a b");
        if (!b) return Value{};
        const ElementOp op = name == "pow" ? ElementOp::pow : name == "minimum" ? ElementOp::min : ElementOp::max;
        return r.elementwise(op, {b->at("a"), b->at("b")}, span, name.c_str());
    }
    if (name == "min" || name == "max" || name == "sum" || name == "prod") return folded(name, args);
    if (name == "argmax" || name == "argmin") {
        auto b = r.bind(args, "tw." + name, "x axis= limit=");
        if (!b) return Value{};
        return extreme_index(name == "argmax" ? ir::FoldKind::max : ir::FoldKind::min, *b, span);
    }
    if (name == "any") return vote(args);
    if (name == "cumsum" || name == "cumprod") return scanned(name, args);
    if (name == "shuffle") {
        auto b = r.bind(args, "tw.shuffle", "x xor= up= down= lane=");
        return b ? shuffle(*b, span) : Value{};
    }
    if (name == "zeros" || name == "full") return filled(name, args);
    if (name == "arange" || name == "coord") return coordinates(name, args);
    if (name == "relayout") return relayout(args);
    static const std::map<std::string, LayoutKind> layouts = {
        {"blocked", LayoutKind::blocked}, {"rows", LayoutKind::rows},   {"warp_rows", LayoutKind::warp_rows}, {"mma_a", LayoutKind::mma_a},
        {"mma_b", LayoutKind::mma_b},     {"mma_c", LayoutKind::mma_c}, {"wgmma_c", LayoutKind::wgmma_c},     {"like", LayoutKind::like}};
    if (auto it = layouts.find(name); it != layouts.end()) return layout(it->second, name, args);
    return std::nullopt;
}

}  // namespace tw::lower
