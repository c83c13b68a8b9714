// tw. functions on integers and register tiles.
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

std::optional<Value> Builtins::scalars(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    auto two_ints = [&](auto&& f, const char* what) -> Value {
        auto b = r.bind(args, what, "a b");
        if (!b) return {};
        auto x = r.as_expr(b->at("a"), b->where("a"), "the argument"), y = r.as_expr(b->at("b"), b->where("b"), "the argument");
        if (!x || !y) return {};
        return f(*x, *y);
    };
    if (name == "cdiv") {
        return two_ints(
            [&](const ir::Expr& x, const ir::Expr& y) -> Value {
                if (auto c = y.as_constant(); c && *c <= 0) return r.error(Code::constant_overflow, span, fmt::format("tw.cdiv by {}", *c));
                return Value::of_expr(ir::ceil_div(x, y));
            },
            "tw.cdiv");
    }
    if (name == "min" || name == "max") {
        bool ints = args.positional.size() >= 2 && args.keyword.empty(), numbers = ints;
        for (const Value& v : args.positional) {
            if (!v) return Value{};
            ints &= v.is(K::integer) || v.is(K::boolean) || v.is(K::expr) || v.is(K::size) || v.is(K::global);
            numbers &= v.is(K::integer) || v.is(K::real);
        }
        if (ints) {
            std::vector<ir::Expr> best;
            for (std::size_t i = 0; i < args.positional.size(); ++i) {
                auto e = r.as_expr(args.positional[i], args.positional_spans[i], "the argument");
                if (!e) return Value{};
                best.push_back(*e);
            }
            // In pairs: a tree as deep as the list is long would be too deep for those who walk it.
            while (best.size() > 1) {
                std::vector<ir::Expr> half;
                for (std::size_t i = 0; i + 1 < best.size(); i += 2)
                    half.push_back(name == "min" ? ir::min(best[i], best[i + 1]) : ir::max(best[i], best[i + 1]));
                if (best.size() % 2 == 1) half.push_back(best.back());
                best = std::move(half);
            }
            return Value::of_expr(best.front());
        }
        if (numbers) {
            auto real = [](const Value& v) { return v.is(K::real) ? v.real : static_cast<double>(v.integer); };
            double best = real(args.positional[0]);
            for (const Value& v : args.positional) best = name == "min" ? std::min(best, real(v)) : std::max(best, real(v));
            return Value::of_real(best);
        }
        return std::nullopt;
    }
    if (name == "float") {
        auto b = r.bind(args, "float", "value");
        if (!b) return Value{};
        const Value& v = b->at("value");
        if (v.is(K::string) && (v.text == "inf" || v.text == "-inf" || v.text == "+inf")) {
            const double inf = std::numeric_limits<double>::infinity();
            return Value::of_real(v.text[0] == '-' ? -inf : inf);
        }
        if (v.is(K::integer)) return Value::of_real(static_cast<double>(v.integer));
        if (v.is(K::real)) return v;
        return r.error(Code::type_mismatch, b->where("value"), "float() takes a constant or 'inf'", "convert tiles with x.to(f32)");
    }
    if (name == "int") {
        auto b = r.bind(args, "int", "value");
        if (!b) return Value{};
        const Value& v = b->at("value");
        if (v.is(K::real) && std::abs(v.real) < 9e15) return Value::of(static_cast<std::int64_t>(v.real));
        if (v.is(K::integer) || v.is(K::boolean)) return Value::of(v.integer);
        return r.error(Code::type_mismatch, b->where("value"), "int() takes a constant");
    }
    if (name == "len") {
        auto b = r.bind(args, "len", "value");
        if (!b) return Value{};
        if (!b->at("value").is(K::sequence)) return r.error(Code::type_mismatch, span, "len() takes a tuple");
        return Value::of(static_cast<std::int64_t>(b->at("value").items.size()));
    }
    if (name == "record") return r.record(args);
    if (name == "table") {
        auto b = r.bind(args, "tw.table", "entries");
        if (!b) return Value{};
        if (b->at("entries").is(K::table)) return b->at("entries");
        return r.error(Code::type_mismatch, b->where("entries"), "tw.table takes {key: value, ...}");
    }
    if (r.module_level) return std::nullopt;
    if (name == "grid") {
        if (args.positional.empty() || args.positional.size() > 3 || !args.keyword.empty())
            return r.error(Code::argument_count, span, "tw.grid takes one to three extents");
        std::vector<ir::Expr> grid;
        Value v;
        v.kind = K::sequence;
        for (std::size_t i = 0; i < args.positional.size(); ++i) {
            auto e = r.as_expr(args.positional[i], args.positional_spans[i], "the extent of the grid");
            if (!e) return Value{};
            grid.push_back(*e);
            v.items.push_back(Value::of_expr(ir::block_index(static_cast<int>(i))));
        }
        if (r.grid_set_) {
            r.cx.error(Code::bad_grid, span, "the kernel's grid is set twice").with_note(r.grid_span_, "it is set here");
            return Value{};
        }
        // Bodies of inline functions stand where they are called.
        const bool nested = std::any_of(r.frames_.begin() + 1, r.frames_.end(), [](const auto& frame) { return !frame.function; });
        if (r.group_ != 0 || nested)
            return r.error(Code::bad_grid, span, "tw.grid stands inside a block", "it is one of the first statements of a kernel");
        if (!r.set_grid(grid, false, span)) return Value{};
        return v.items.size() == 1 ? v.items[0] : v;
    }
    if (name == "block" || name == "num_blocks") {
        auto b = r.bind(args, "tw." + name, "axis");
        if (!b) return Value{};
        auto axis = r.small_int(b->at("axis"), b->where("axis"), "the axis", 0, 2);
        if (!axis) return Value{};
        return Value::of_expr(name == "block" ? ir::block_index(*axis) : ir::grid_size(*axis));
    }
    if (name == "cluster_rank") {
        if (!r.bind(args, "tw.cluster_rank", "")) return Value{};
        return Value::of_expr(ir::cluster_rank());
    }
    if (name == "assume") {
        auto b = r.bind(args, "tw.assume", "condition");
        if (!b) return Value{};
        auto c = r.as_expr(b->at("condition"), b->where("condition"), "the assumption");
        if (!c) return Value{};
        bool sizes = true;
        std::function<void(const ir::Expr&)> look = [&](const ir::Expr& e) {
            switch (e.kind()) {
                case ir::ExprKind::var:
                case ir::ExprKind::block_index:
                case ir::ExprKind::grid_size:
                case ir::ExprKind::cluster_rank:
                case ir::ExprKind::element: sizes = false; break;
                default: break;
            }
            for (const ir::Expr& a : e->args) look(a);
        };
        look(*c);
        if (!sizes)
            return r.error(Code::bad_assumption, b->where("condition"),
                           "an assumption is about sizes and constants: the launcher checks it",
                           "state what holds inside the kernel with tw.expect(...)");
        if (auto known = c->as_constant()) {
            if (*known) return done();
            return r.error(Code::bad_assumption, b->where("condition"),
                           "the assumption is false for these constants: no launch could satisfy it");
        }
        // As it is written, on one line and without the file's comments.
        std::string written;
        for (std::string_view line : split_lines(r.cx.sources.text(b->where("condition"))))
            written += std::string(line.substr(0, line.find('#'))) + " ";
        r.d.kernel.assumptions.push_back({*c, join(split_words(written), " "), r.loc(b->where("condition"))});
        return done();
    }
    return std::nullopt;
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

std::optional<Value> Builtins::tiles(const std::string& name, const CallArgs& args) {
    const Span span = args.span;
    static const std::map<std::string, ElementOp> unary = {
        {"exp", ElementOp::exp},   {"exp2", ElementOp::exp2},   {"log", ElementOp::log},  {"log2", ElementOp::log2},
        {"sqrt", ElementOp::sqrt}, {"rsqrt", ElementOp::rsqrt}, {"rcp", ElementOp::rcp},  {"sin", ElementOp::sin},
        {"cos", ElementOp::cos},   {"tanh", ElementOp::tanh},   {"erf", ElementOp::erf},  {"sigmoid", ElementOp::sigmoid},
        {"abs", ElementOp::abs},   {"floor", ElementOp::floor}, {"ceil", ElementOp::ceil}};
    if (auto it = unary.find(name); it != unary.end()) {
        auto b = r.bind(args, "tw." + name, "x approx=");
        if (!b) return Value{};
        const bool approximate = b->has("approx") && b->at("approx").integer != 0;
        const Value& x = b->at("x");
        if (x.is(K::real) || x.is(K::integer)) {
            const double v = x.is(K::real) ? x.real : static_cast<double>(x.integer);
            switch (it->second) {
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
            if (r.module_level) return r.error(Code::constant_overflow, span, fmt::format("tw.{} of {} is not a constant", name, v));
        }
        return r.elementwise(it->second, {x}, span, it->first.c_str(), approximate);
    }
    if (r.module_level) return std::nullopt;
    if (name == "where") {
        auto b = r.bind(args, "tw.where", "condition a b");
        if (!b) return Value{};
        if (auto c = r.constant_bool(b->at("condition"))) return *c ? b->at("a") : b->at("b");
        if (!b->at("condition").is(K::tile)) {
            auto e = r.as_expr(b->at("condition"), b->where("condition"), "the condition");
            if (!e) return Value{};
            auto x = r.as_tile(Value::of_expr(*e), span, "the condition");
            return r.elementwise(ElementOp::select,
                                 {r.elementwise(ElementOp::ne, {Value::of_tile(*x), Value::of(0)}, span, "!="), b->at("a"), b->at("b")},
                                 span, "where");
        }
        return r.elementwise(ElementOp::select, {b->at("condition"), b->at("a"), b->at("b")}, span, "where");
    }
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
    if (name == "min" || name == "max" || name == "sum" || name == "prod") {
        if ((name == "min" || name == "max") && args.positional.size() == 2) {
            auto b = r.bind(args, "tw." + name, "a b");
            return b ? r.elementwise(name == "min" ? ElementOp::min : ElementOp::max, {b->at("a"), b->at("b")}, span, name.c_str())
                     : Value{};
        }
        auto b = r.bind(args, "tw." + name, "x axis=");
        if (!b) return Value{};
        const ir::FoldKind kind = name == "min"   ? ir::FoldKind::min
                                  : name == "max" ? ir::FoldKind::max
                                  : name == "sum" ? ir::FoldKind::sum
                                                  : ir::FoldKind::prod;
        return r.reduce(kind, b->at("x"), b->has("axis") ? &b->at("axis") : nullptr, span, b->where("axis"));
    }
    if (name == "argmax" || name == "argmin") {
        auto b = r.bind(args, "tw." + name, "x axis= limit=");
        if (!b) return Value{};
        return extreme_index(name == "argmax" ? ir::FoldKind::max : ir::FoldKind::min, *b, span);
    }
    if (name == "any") {
        auto b = r.bind(args, "tw.any", "x");
        auto t = b ? r.as_tile(b->at("x"), b->where("x"), "the tile") : std::nullopt;
        if (!t) return Value{};
        if (t->dtype != DType::Bool)
            return r.error(Code::bad_dtype, span, fmt::format("tw.any of {} values", target::name(t->dtype)),
                           "compare first: tw.any(x > limit)");
        const std::string left = r.assigning_;
        r.assigning_.clear();
        const int src = r.materialize(*t, "any", span);
        r.assigning_ = left;
        return src < 0 ? Value{} : Value::entity(K::vote, src);
    }
    if (name == "cumsum" || name == "cumprod") {
        auto b = r.bind(args, "tw." + name, "x axis= reverse=");
        if (!b) return Value{};
        auto t = r.as_tile(b->at("x"), b->where("x"), "the value to scan");
        if (!t) return Value{};
        if (t->dtype != DType::F32 && t->dtype != DType::I32 && t->dtype != DType::F64 && t->dtype != DType::I64) {
            return r.error(Code::bad_dtype, span, fmt::format("tw.{} of {} values", name, target::name(t->dtype)),
                           "scan in f32: x.to(f32)");
        }
        std::int64_t axis = -1;
        if (b->has("axis")) {
            auto a = r.constant_int(b->at("axis"), b->where("axis"), "the axis");
            if (!a) return Value{};
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
        if (src < 0) return Value{};
        const int dst = r.new_fragment(name, t->dtype, r.d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape, span);
        r.emit(ir::Scan{dst, src, static_cast<int>(axis), name == "cumsum" ? ir::FoldKind::sum : ir::FoldKind::prod,
                        b->has("reverse") && b->at("reverse").integer != 0},
               span);
        return r.fragment_value(dst, true);
    }
    if (name == "shuffle") {
        auto b = r.bind(args, "tw.shuffle", "x xor= up= down= lane=");
        return b ? shuffle(*b, span) : Value{};
    }
    if (name == "zeros" || name == "full") {
        auto b = r.bind(args, "tw." + name, name == "zeros" ? "dtype shape layout=" : "dtype shape value layout=");
        if (!b) return Value{};
        if (!b->at("dtype").is(K::dtype))
            return r.error(Code::type_mismatch, b->where("dtype"),
                           fmt::format("a dtype is needed, such as f32, not {}", describe(b->at("dtype"))));
        auto shape = r.shape_of(b->at("shape"), b->where("shape"), 1 << 20);
        auto layout = layout_of(*b, "layout");
        if (!shape || !layout) return Value{};
        Tile t;
        t.weak = false;
        auto value = r.as_tile(name == "zeros" ? Value::of(0) : b->at("value"), name == "zeros" ? span : b->where("value"), "the value");
        if (!value) return Value{};
        if (!value->shape.empty()) return r.error(Code::shape_mismatch, b->where("value"), "tw.full takes a scalar value");
        t = r.cast(*value, b->at("dtype").dtype);
        t.shape = *shape;
        t.spread.assign(shape->size(), 0);
        t.layout = *layout;
        return Value::of_tile(std::move(t));
    }
    if (name == "arange" || name == "coord") {
        Tile t;
        auto n = std::make_shared<ir::ElementNode>();
        n->op = ElementOp::coordinate;
        n->dtype = DType::I32;
        t.dtype = DType::I32;
        t.element = n;
        if (name == "arange") {
            auto b = r.bind(args, "tw.arange", "n layout=");
            if (!b) return Value{};
            auto count = r.small_int(b->at("n"), b->where("n"), "the extent", 1, 1 << 20);
            auto layout = layout_of(*b, "layout");
            if (!count || !layout) return Value{};
            t.shape = {*count};
            t.layout = *layout;
        } else {
            auto b = r.bind(args, "tw.coord", "x axis");
            if (!b) return Value{};
            auto x = r.as_tile(b->at("x"), b->where("x"), "the tile");
            if (!x) return Value{};
            auto axis = r.small_int(b->at("axis"), b->where("axis"), "the axis", 0, static_cast<std::int64_t>(x->shape.size()) - 1);
            if (!axis) return Value{};
            t.shape = x->shape;
            n->id = *axis;
        }
        t.spread.assign(t.shape.size(), 0);
        return Value::of_tile(std::move(t));
    }
    if (name == "relayout") {
        auto b = r.bind(args, "tw.relayout", "x layout");
        if (!b) return Value{};
        auto t = r.as_tile(b->at("x"), b->where("x"), "the tile");
        auto layout = layout_of(*b, "layout");
        if (!t || !layout) return Value{};
        const std::string left = r.assigning_;
        r.assigning_.clear();
        const int src = r.materialize(*t, "moved", span);
        r.assigning_ = left;
        if (src < 0) return Value{};
        const int dst = r.new_fragment("moved", t->dtype, r.d.kernel.fragments[static_cast<std::size_t>(src)].dist.shape, span);
        r.d.notes[static_cast<std::size_t>(dst)].layout = *layout;
        emit_sugar(Relayout{dst, src}, fmt::format("{} = relayout {}", fragment_name(dst), fragment_name(src)), span);
        return r.fragment_value(dst, true);
    }
    static const std::map<std::string, LayoutKind> layouts = {
        {"blocked", LayoutKind::blocked}, {"rows", LayoutKind::rows},   {"warp_rows", LayoutKind::warp_rows}, {"mma_a", LayoutKind::mma_a},
        {"mma_b", LayoutKind::mma_b},     {"mma_c", LayoutKind::mma_c}, {"wgmma_c", LayoutKind::wgmma_c},     {"like", LayoutKind::like}};
    if (auto it = layouts.find(name); it != layouts.end()) {
        Value v;
        v.kind = K::layout;
        v.layout.kind = it->second;
        const bool mma = it->second == LayoutKind::mma_a || it->second == LayoutKind::mma_b || it->second == LayoutKind::mma_c;
        auto b = r.bind(args, "tw." + name,
                        it->second == LayoutKind::blocked || it->second == LayoutKind::warp_rows ? "vector="
                        : mma                                                                    ? "warps="
                        : it->second == LayoutKind::like                                         ? "x"
                                                                                                 : "");
        if (!b) return Value{};
        if (b->has("vector")) {
            auto n = r.small_int(b->at("vector"), b->where("vector"), "the vector", 1, 64);
            if (!n) return Value{};
            v.layout.vector = *n;
        }
        if (b->has("warps")) {
            const Value& w = b->at("warps");
            if (!w.is(K::sequence) || w.items.size() != 2)
                return r.error(Code::type_mismatch, b->where("warps"), "warps is a pair, such as (2, 2)");
            auto m = r.small_int(w.items[0], b->where("warps"), "warps along M", 1, 32),
                 n = r.small_int(w.items[1], b->where("warps"), "warps along N", 1, 32);
            if (!m || !n) return Value{};
            v.layout.warps_m = *m;
            v.layout.warps_n = *n;
        }
        if (it->second == LayoutKind::like) {
            const Value& x = b->at("x");
            if (!x.is(K::tile) || x.tile->element->op != ElementOp::fragment || !x.tile->element->offset.empty() ||
                x.tile->element->dims.size() != x.tile->shape.size()) {
                return r.error(Code::type_mismatch, b->where("x"), "tw.like takes the name of a register tile");
            }
            v.layout.like = x.tile->element->id;
        }
        return v;
    }
    return std::nullopt;
}

}  // namespace tw::lower
