// Calls of `tw.` that give constants and integers: grid, assume, cdiv, min, max, records, tables.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "lower/builtins.h"
#include "target/warp.h"

namespace tw::lower {

using K = Value::Kind;

Value Builtins::real(const CallArgs& args) {
    auto b = r.bind(args, "float", "value");
    if (!b) return {};
    const Value& v = b->at("value");
    if (v.is(K::string) && (v.text == "inf" || v.text == "-inf" || v.text == "+inf")) {
        const double inf = std::numeric_limits<double>::infinity();
        return Value::of_real(v.text[0] == '-' ? -inf : inf);
    }
    if (v.is(K::integer)) return Value::of_real(static_cast<double>(v.integer));
    if (v.is(K::real)) return v;
    return r.error(Code::type_mismatch, b->where("value"), "float() takes a constant or 'inf'", "convert tiles with x.to(f32)");
}

Value Builtins::integer(const CallArgs& args) {
    auto b = r.bind(args, "int", "value");
    if (!b) return {};
    const Value& v = b->at("value");
    if (v.is(K::real) && std::abs(v.real) < 9e15) return Value::of(static_cast<std::int64_t>(v.real));
    if (v.is(K::integer) || v.is(K::boolean)) return Value::of(v.integer);
    return r.error(Code::type_mismatch, b->where("value"), "int() takes a constant");
}

Value Builtins::grid(const CallArgs& args) {
    const Span span = args.span;
    if (args.positional.empty() || args.positional.size() > 3 || !args.keyword.empty())
        return r.error(Code::argument_count, span, "tw.grid takes one to three extents");
    std::vector<ir::Expr> grid;
    Value v;
    v.kind = K::sequence;
    for (std::size_t i = 0; i < args.positional.size(); ++i) {
        auto e = r.as_expr(args.positional[i], args.positional_spans[i], "the extent of the grid");
        if (!e) return {};
        grid.push_back(*e);
        v.items.push_back(Value::of_expr(ir::block_index(static_cast<int>(i))));
    }
    if (r.grid_set_) {
        r.cx.error(Code::bad_grid, span, "the kernel's grid is set twice").with_note(r.grid_span_, "it is set here");
        return {};
    }
    // Bodies of inline functions stand where they are called.
    const bool nested = std::any_of(r.frames_.begin() + 1, r.frames_.end(), [](const auto& frame) { return !frame.function; });
    if (r.group_ != 0 || nested)
        return r.error(Code::bad_grid, span, "tw.grid stands inside a block", "it is one of the first statements of a kernel");
    if (!r.set_grid(grid, false, span)) return {};
    return v.items.size() == 1 ? v.items[0] : v;
}

Value Builtins::assume(const CallArgs& args) {
    auto b = r.bind(args, "tw.assume", "condition");
    if (!b) return {};
    auto c = r.as_expr(b->at("condition"), b->where("condition"), "the assumption");
    if (!c) return {};
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
        return r.error(Code::bad_assumption, b->where("condition"), "an assumption is about sizes and constants: the launcher checks it",
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
    if (name == "float") return real(args);
    if (name == "int") return integer(args);
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
    if (name == "grid") return grid(args);
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
    if (name == "assume") return assume(args);
    return std::nullopt;
}

}  // namespace tw::lower
