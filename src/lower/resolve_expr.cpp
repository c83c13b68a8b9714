// Expressions: constants, run-time integers, attributes.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "lower/facts.h"
#include "lower/names.h"
#include "lower/resolver.h"
#include "lower/size_limits.h"

namespace tw::lower {

using lang::BinaryOp;
using lang::CompareOp;
using lang::ExprId;
using K = Value::Kind;

std::string describe(const Value& v) {
    switch (v.kind) {
        case K::error: return "an invalid value";
        case K::none: return "None";
        case K::integer: return "the integer " + std::to_string(v.integer);
        case K::boolean: return v.integer ? "True" : "False";
        case K::real: return "a float";
        case K::string: return "a string";
        case K::dtype: return "the dtype " + std::string(target::name(v.dtype));
        case K::size: return "the size " + v.text;
        case K::expr: return "a run-time integer";
        case K::tile:
            if (v.tile->shape.empty()) return fmt::format("a {} scalar", target::name(v.tile->dtype));
            return fmt::format("a {} tile of shape {}", target::name(v.tile->dtype), shape_text(v.tile->shape));
        case K::tensor: return "a tensor";
        case K::global: return "a part of a tensor";
        case K::shared: return "a shared-memory view";
        case K::barriers: return "an array of mbarriers";
        case K::barrier: return "an mbarrier";
        case K::ring: return "a pipeline";
        case K::team: return "a team";
        case K::named_barrier: return "a named barrier";
        case K::vote: return "tw.any(...), which is the whole condition of an `if`";
        case K::layout: return "a layout";
        case K::sequence: return "a tuple";
        case K::record: return "a record";
        case K::table: return "a table";
        case K::builtin: return "the function " + v.text;
        case K::function: return "an inline function";
        case K::kernel: return "a kernel";
        case K::program: return "a program";
        case K::signature: return "a signature";
        case K::method: return "the method " + v.text;
        case K::module: return "the module tilewright";
        case K::kernel_file: return "a kernel file";
    }
    return "a value";
}

Value Resolver::error(Code code, Span span, std::string message, std::string hint) {
    auto& diagnostic = cx.error(code, span, std::move(message));
    if (!hint.empty()) diagnostic.with_hint(std::move(hint));
    return {};
}

std::optional<bool> Resolver::constant_bool(const Value& v) {
    switch (v.kind) {
        case K::integer:
        case K::boolean: return v.integer != 0;
        case K::real: return v.real != 0;
        case K::none: return false;
        case K::expr:
            if (auto c = v.expr.as_constant()) return *c != 0;
            return std::nullopt;
        default: return std::nullopt;
    }
}

std::optional<std::int64_t> Resolver::constant_int(const Value& v, Span span, const char* what) {
    if (v.is(K::integer) || v.is(K::boolean)) return v.integer;
    if (!v) return std::nullopt;
    if (v.is(K::expr) || v.is(K::size)) {
        error(Code::not_constant, span, fmt::format("{} must be known at compile time, but this is {}", what, describe(v)),
              "use integers and const parameters (`BM: tw.const = 128`)");
    } else {
        error(Code::type_mismatch, span, fmt::format("{} must be an integer, not {}", what, describe(v)));
    }
    return std::nullopt;
}

std::optional<int> Resolver::small_int(const Value& v, Span span, const char* what, std::int64_t lo, std::int64_t hi) {
    auto c = constant_int(v, span, what);
    if (!c) return std::nullopt;
    if (*c < lo || *c > hi) {
        error(Code::value_out_of_range, span, fmt::format("{} is {}, which is not in {} .. {}", what, *c, lo, hi));
        return std::nullopt;
    }
    return static_cast<int>(*c);
}

std::optional<ir::Expr> Resolver::as_expr(const Value& v, Span span, const char* what) {
    switch (v.kind) {
        case K::error: return std::nullopt;
        case K::integer:
        case K::boolean: return ir::Expr(v.integer);
        case K::expr: return v.expr;
        case K::size: return size_of(v.text);
        case K::global: {
            const ir::Tensor& t = d.kernel.tensors[static_cast<std::size_t>(v.global->tensor)];
            const auto& info = target::info(t.dtype);
            bool scalar = !info.is_float && t.dtype != DType::Bool;
            std::vector<ir::Expr> indices;
            for (const Index& i : v.global->indices) {
                scalar &= i.kind == Index::Kind::scalar;
                indices.push_back(i.lo);
            }
            if (scalar) return ir::element_expr(v.global->tensor, std::move(indices));
            break;
        }
        default: break;
    }
    error(Code::type_mismatch, span, fmt::format("{} must be an integer, not {}", what, describe(v)),
          !v.is(K::tile) ? ""
          : v.tile->shape.empty() && target::info(v.tile->dtype).is_float
              ? "integers are divided by // (rounded down) or tw.cdiv (rounded up); what is computed in floats is no index"
              : "a tile's values differ between threads; control flow and indices need uniform integers");
    return std::nullopt;
}

Value Resolver::evaluate(ExprId id) {
    const lang::Expr& e = ast[id];
    const Span span = e.span;
    if (++work_ > 40 * kMaxWork) stopped_ = true;
    return std::visit(
        [&](const auto& n) -> Value {
            using T = std::decay_t<decltype(n)>;
            if constexpr (std::is_same_v<T, lang::InvalidExpr>) return {};
            else if constexpr (std::is_same_v<T, lang::Name>) return lookup(n.id, span);
            else if constexpr (std::is_same_v<T, lang::IntLiteral>) return Value::of(n.value);
            else if constexpr (std::is_same_v<T, lang::FloatLiteral>) return Value::of_real(n.value);
            else if constexpr (std::is_same_v<T, lang::StringLiteral>) {
                Value v = Value::named(K::string, n.value);
                v.pieces = std::make_shared<const std::vector<lang::StringPiece>>(n.pieces);
                return v;
            } else if constexpr (std::is_same_v<T, lang::BoolLiteral>) return Value::of_bool(n.value);
            else if constexpr (std::is_same_v<T, lang::NoneLiteral>) return Value::of_none();
            else if constexpr (std::is_same_v<T, lang::Tuple> || std::is_same_v<T, lang::List>) {
                Value v;
                v.kind = K::sequence;
                for (ExprId x : n.elements) {
                    v.items.push_back(evaluate(x));
                    if (!v.items.back()) return {};
                    // A list keeps tiles for later, so that a lazy expression must not see later changes.
                    if (!module_level && v.items.back().is(K::tile) && !is_number(v.items.back()))
                        v.items.back() = settled(v.items.back(), "item", ast[x].span);
                    if (!v.items.back()) return {};
                    if (const char* problem = size_problem(v)) return error(Code::too_much_code, span, problem);
                }
                return v;
            } else if constexpr (std::is_same_v<T, lang::Dict>) return table(n, span);
            else if constexpr (std::is_same_v<T, lang::Attribute>) return attribute(n, span);
            else if constexpr (std::is_same_v<T, lang::Call>) return call(n, span, ast[n.callee].span);
            else if constexpr (std::is_same_v<T, lang::Subscript>) return subscript(n, span);
            else if constexpr (std::is_same_v<T, lang::Unary>) {
                Value v = evaluate(n.operand);
                return v ? unary(n.op, v, span) : v;
            } else if constexpr (std::is_same_v<T, lang::Binary>) {
                Value a = evaluate(n.left), b = evaluate(n.right);
                if (!a || !b) return {};
                return binary(n.op, a, b, span, ast[n.left].span, ast[n.right].span);
            } else if constexpr (std::is_same_v<T, lang::Compare>) {
                Value left = evaluate(n.first), result;
                bool first = true;
                for (const lang::Comparison& c : n.rest) {
                    Value right = evaluate(c.right);
                    if (!left || !right) return {};
                    Value one = compare(c.op, left, right, span);
                    if (!one) return {};
                    if (first) result = one;
                    else if (result.is(K::tile) || one.is(K::tile))
                        result = elementwise(ir::ElementOp::logic_and, {result, one}, span, "and");
                    else {
                        auto x = as_expr(result, span, "a condition"), y = as_expr(one, span, "a condition");
                        if (!x || !y) return {};
                        result = Value::of_expr(ir::logic_and(*x, *y));
                    }
                    first = false;
                    left = right;
                }
                return result;
            } else if constexpr (std::is_same_v<T, lang::Logical>) {
                const bool conjunction = n.op == lang::LogicalOp::logical_and;
                std::optional<ir::Expr> sum;
                for (ExprId x : n.operands) {
                    Value v = evaluate(x);
                    if (!v) return {};
                    if (v.is(K::tile)) {
                        return error(Code::bad_operand, ast[x].span, "`and` and `or` take integer conditions, not tiles",
                                     "combine boolean tiles with & and |, with parentheses around comparisons");
                    }
                    if (auto c = constant_bool(v)) {
                        if (*c != conjunction) return Value::of_bool(!conjunction);  // decides; the rest is not looked at
                        continue;
                    }
                    auto part = as_expr(v, ast[x].span, "a condition");
                    if (!part) return {};
                    sum = !sum ? *part : conjunction ? ir::logic_and(*sum, *part) : ir::logic_or(*sum, *part);
                }
                return sum ? Value::of_expr(*sum) : Value::of_bool(conjunction);
            } else if constexpr (std::is_same_v<T, lang::Conditional>) return conditional(n, span);
            else {
                return error(Code::unsupported_expression, span, fmt::format("{} is not in the language here", lang::describe(e.node)));
            }
        },
        e.node);
}

Value Resolver::conditional(const lang::Conditional& c, Span span) {
    Value condition = evaluate(c.condition);
    if (!condition) return {};
    if (condition.is(K::tile)) {
        return error(Code::bad_operand, ast[c.condition].span, "the condition of `a if c else b` is a tile", "write tw.where(c, a, b)");
    }
    if (auto known = constant_bool(condition)) return evaluate(*known ? c.then_value : c.else_value);
    auto e = as_expr(condition, ast[c.condition].span, "the condition");
    if (!e) return {};
    Value a = evaluate(c.then_value), b = evaluate(c.else_value);
    if (!a || !b) return {};
    if (a.is(K::tile) || b.is(K::tile) || a.is(K::real) || b.is(K::real)) {
        Value choice;
        choice.kind = K::tile;
        auto leaf = std::make_shared<ir::ElementNode>();
        leaf->op = ir::ElementOp::ne;
        leaf->dtype = DType::Bool;
        auto index = std::make_shared<ir::ElementNode>();
        index->op = ir::ElementOp::index;
        index->dtype = DType::I32;
        index->index = *e;
        auto zero = std::make_shared<ir::ElementNode>();
        zero->op = ir::ElementOp::number;
        zero->dtype = DType::I32;
        leaf->args = {index, zero};
        Tile t;
        t.element = leaf;
        t.dtype = DType::Bool;
        choice.tile = std::make_shared<Tile>(t);
        return elementwise(ir::ElementOp::select, {choice, a, b}, span, "where");
    }
    auto x = as_expr(a, ast[c.then_value].span, "a choice"), y = as_expr(b, ast[c.else_value].span, "a choice");
    if (!x || !y) return {};
    return Value::of_expr(ir::select(*e, *x, *y));
}

Value Resolver::unary(lang::UnaryOp op, const Value& v, Span span) {
    switch (op) {
        case lang::UnaryOp::plus:
            if (v.is(K::integer) || v.is(K::real) || v.is(K::expr) || v.is(K::size) || v.is(K::tile)) return v;
            break;
        case lang::UnaryOp::negate:
            if (v.is(K::integer)) {
                if (v.integer == std::numeric_limits<std::int64_t>::min())
                    return error(Code::constant_overflow, span, "the negated constant does not fit 64 bits");
                return Value::of(-v.integer);
            }
            if (v.is(K::real)) return Value::of_real(-v.real);
            if (v.is(K::tile)) return elementwise(ir::ElementOp::neg, {v}, span, "-");
            if (v.is(K::expr) || v.is(K::size) || v.is(K::global)) {
                auto e = as_expr(v, span, "the operand");
                return e ? Value::of_expr(ir::Expr(0) - *e) : Value{};
            }
            break;
        case lang::UnaryOp::invert:
            if (v.is(K::tile)) return elementwise(ir::ElementOp::logic_not, {v}, span, "~");
            if (v.is(K::integer)) return Value::of(~v.integer);
            break;
        case lang::UnaryOp::logical_not:
            if (auto c = constant_bool(v)) return Value::of_bool(!*c);
            if (v.is(K::expr) || v.is(K::size) || v.is(K::global)) {
                auto e = as_expr(v, span, "the operand");
                return e ? Value::of_expr(ir::logic_not(*e)) : Value{};
            }
            if (v.is(K::tile))
                return error(Code::bad_operand, span, "`not` takes an integer condition, not a tile", "negate a boolean tile with ~");
            break;
    }
    return error(Code::bad_operand, span, fmt::format("'{}' cannot be applied to {}", lang::spelling(op), describe(v)));
}

namespace {

bool numeric(const Value& v) { return v.is(K::integer) || v.is(K::boolean) || v.is(K::real); }
double as_real(const Value& v) { return v.is(K::real) ? v.real : static_cast<double>(v.integer); }
bool integer_like(const Value& v) { return v.is(K::integer) || v.is(K::boolean) || v.is(K::expr) || v.is(K::size) || v.is(K::global); }

std::optional<std::int64_t> power(std::int64_t base, std::int64_t exponent) {
    std::int64_t r = 1;
    if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
    if (base == -1) return exponent % 2 ? -1 : 1;
    for (std::int64_t i = 0; i < exponent; ++i) {
        if (__builtin_mul_overflow(r, base, &r)) return std::nullopt;
    }
    return r;
}

}  // namespace

Value Resolver::binary(BinaryOp op, const Value& a, const Value& b, Span span, Span sa, Span sb) {
    if (a.is(K::tile) || b.is(K::tile)) {
        switch (op) {
            case BinaryOp::add: return elementwise(ir::ElementOp::add, {a, b}, span, "+");
            case BinaryOp::subtract: return elementwise(ir::ElementOp::sub, {a, b}, span, "-");
            case BinaryOp::multiply: return elementwise(ir::ElementOp::mul, {a, b}, span, "*");
            case BinaryOp::divide:
            case BinaryOp::floor_divide: return elementwise(ir::ElementOp::div, {a, b}, span, op == BinaryOp::divide ? "/" : "//");
            case BinaryOp::modulo: return elementwise(ir::ElementOp::mod, {a, b}, span, "%");
            case BinaryOp::power:
                if (b.is(K::integer) && b.integer == 2) return elementwise(ir::ElementOp::mul, {a, a}, span, "**");
                return elementwise(ir::ElementOp::pow, {a, b}, span, "**");
            case BinaryOp::bit_and: return elementwise(ir::ElementOp::logic_and, {a, b}, span, "&");
            case BinaryOp::bit_or: return elementwise(ir::ElementOp::logic_or, {a, b}, span, "|");
            case BinaryOp::matmul:
                return error(Code::bad_operand, span, "'@' is not an operator of tiles", "use tw.wgmma(acc, a, b) or tw.mma(acc, a, b)");
            default: return error(Code::bad_operand, span, fmt::format("'{}' is not an operator of tiles", lang::spelling(op)));
        }
    }
    if (numeric(a) && numeric(b) && (a.is(K::real) || b.is(K::real) || op == BinaryOp::divide)) {
        const double x = as_real(a), y = as_real(b);
        switch (op) {
            case BinaryOp::add: return Value::of_real(x + y);
            case BinaryOp::subtract: return Value::of_real(x - y);
            case BinaryOp::multiply: return Value::of_real(x * y);
            case BinaryOp::divide:
                if (y == 0) return error(Code::constant_overflow, span, "division by zero");
                return Value::of_real(x / y);
            case BinaryOp::floor_divide:
                if (y == 0) return error(Code::constant_overflow, span, "division by zero");
                return Value::of_real(std::floor(x / y));
            case BinaryOp::power: {
                const double r = std::pow(x, y);
                if (std::isnan(r)) return error(Code::constant_overflow, span, "the power is not a real number");
                return Value::of_real(r);
            }
            default: break;
        }
        return error(Code::bad_operand, span, fmt::format("'{}' is not defined for floats", lang::spelling(op)));
    }
    // Run-time integers meet floats only in tiles: an integer becomes an element value.
    if ((integer_like(a) && b.is(K::real)) || (a.is(K::real) && integer_like(b)) ||
        (op == BinaryOp::divide && integer_like(a) && integer_like(b))) {
        auto x = as_tile(a, sa, "the operand"), y = as_tile(b, sb, "the operand");
        if (!x || !y) return {};
        if (op == BinaryOp::divide) {
            x = cast(*x, DType::F32);
            y = cast(*y, DType::F32);
        }
        x->weak = x->dtype == DType::F32 ? false : x->weak;
        return binary(op, Value::of_tile(*x), Value::of_tile(*y), span, sa, sb);
    }
    if (a.is(K::sequence) || a.is(K::string)) {
        if (auto joined = join_parts(op, a, b, span)) return *joined;
    }
    if (!integer_like(a) || !integer_like(b)) {
        return error(Code::bad_operand, span,
                     fmt::format("'{}' cannot be applied to {} and {}", lang::spelling(op), describe(a), describe(b)),
                     a.is(K::global) || b.is(K::global) ? "load the elements first: tw.load(X[...])" : "");
    }
    auto x = as_expr(a, sa, "the operand"), y = as_expr(b, sb, "the operand");
    if (!x || !y) return {};
    const auto cx_ = x->as_constant(), cy = y->as_constant();
    const bool constant = cx_ && cy;
    ir::ExprKind kind;
    switch (op) {
        case BinaryOp::add: kind = ir::ExprKind::add; break;
        case BinaryOp::subtract: kind = ir::ExprKind::sub; break;
        case BinaryOp::multiply: kind = ir::ExprKind::mul; break;
        case BinaryOp::floor_divide: kind = ir::ExprKind::floor_div; break;
        case BinaryOp::modulo: kind = ir::ExprKind::mod; break;
        case BinaryOp::shift_left: kind = ir::ExprKind::shift_left; break;
        case BinaryOp::shift_right: kind = ir::ExprKind::shift_right; break;
        case BinaryOp::bit_and: kind = ir::ExprKind::bit_and; break;
        case BinaryOp::bit_xor: kind = ir::ExprKind::bit_xor; break;
        case BinaryOp::bit_or:
            if (constant) return Value::of(*cx_ | *cy);
            return error(Code::bad_operand, span, "'|' is not defined for run-time integers",
                         "use + for disjoint bits, or `or` for conditions");
        case BinaryOp::power:
            if (constant && *cy >= 0) {
                if (auto r = power(*cx_, *cy)) return Value::of(*r);
                return error(Code::constant_overflow, span, "the power does not fit 64 bits");
            }
            return error(Code::bad_operand, span, "'**' needs constants with an exponent that is not negative");
        default: return error(Code::bad_operand, span, fmt::format("'{}' is not defined for integers", lang::spelling(op)));
    }
    if ((kind == ir::ExprKind::floor_div || kind == ir::ExprKind::mod) && cy && *cy == 0)
        return error(Code::constant_overflow, span, "division by zero");
    ir::Expr r = ir::make_expr(kind, {*x, *y});
    if (constant && !r.as_constant()) return error(Code::constant_overflow, span, "the result does not fit 64 bits");
    if (const char* problem = size_problem(r))
        return error(Code::too_much_code, span, problem,
                     "a name stands for its whole expression: a value that a loop carries, or a smaller expression, does not grow");
    return Value::of_expr(r);
}

Value Resolver::compare(CompareOp op, const Value& a, const Value& b, Span span) {
    if (op == CompareOp::is || op == CompareOp::is_not) {
        if (a.is(K::none) || b.is(K::none)) return Value::of_bool((a.is(K::none) && b.is(K::none)) == (op == CompareOp::is));
        return error(Code::bad_operand, span, "'is' compares with None only", "write ==");
    }
    if (op == CompareOp::in || op == CompareOp::not_in) return error(Code::bad_operand, span, "'in' is not an operator of the language");
    if (a.is(K::tile) || b.is(K::tile)) {
        static constexpr ir::ElementOp ops[] = {ir::ElementOp::eq, ir::ElementOp::ne, ir::ElementOp::lt,
                                                ir::ElementOp::le, ir::ElementOp::gt, ir::ElementOp::ge};
        return elementwise(ops[static_cast<int>(op)], {a, b}, span, "comparison");
    }
    if (a.is(K::string) && b.is(K::string)) return Value::of_bool((a.text == b.text) == (op == CompareOp::equal));
    if (a.is(K::dtype) && b.is(K::dtype)) return Value::of_bool((a.dtype == b.dtype) == (op == CompareOp::equal));
    if (a.is(K::none) || b.is(K::none)) return Value::of_bool((a.is(K::none) && b.is(K::none)) == (op == CompareOp::equal));
    if (numeric(a) && numeric(b)) {
        const double x = as_real(a), y = as_real(b);
        const bool ints = !a.is(K::real) && !b.is(K::real);
        const bool less = ints ? a.integer < b.integer : x < y, equal = ints ? a.integer == b.integer : x == y;
        switch (op) {
            case CompareOp::equal: return Value::of_bool(equal);
            case CompareOp::not_equal: return Value::of_bool(!equal);
            case CompareOp::less: return Value::of_bool(less);
            case CompareOp::less_equal: return Value::of_bool(less || equal);
            case CompareOp::greater: return Value::of_bool(!less && !equal);
            default: return Value::of_bool(!less);
        }
    }
    auto x = as_expr(a, span, "the left side of the comparison"), y = as_expr(b, span, "the right side of the comparison");
    if (!x || !y) return {};
    switch (op) {
        case CompareOp::equal: return Value::of_expr(ir::equal(*x, *y));
        case CompareOp::not_equal: return Value::of_expr(ir::not_equal(*x, *y));
        case CompareOp::less: return Value::of_expr(*x < *y);
        case CompareOp::less_equal: return Value::of_expr(*x <= *y);
        case CompareOp::greater: return Value::of_expr(*y < *x);
        default: return Value::of_expr(*y <= *x);
    }
}

Value Resolver::evaluate_with(const std::map<std::string, Value>& names, ExprId id) {
    frames_.emplace_back();
    for (const auto& [name, value] : names) frames_.back().names[name] = {value, ast[id].span};
    Value v = evaluate(id);
    frames_.pop_back();
    return v;
}

Value Resolver::attribute(const lang::Attribute& a, Span span) {
    if (field_of) {
        if (auto field = field_of(a, span)) return *field;
    }
    Value base = evaluate(a.base);
    if (!base) return {};
    if (base.is(K::kernel_file)) {
        const auto& names = module.names_in(static_cast<FileId>(base.integer));
        const auto it = names.find(a.name);
        if (it == names.end() || !it->second.value)
            return error(Code::unknown_attribute, a.name_span, fmt::format("{}.py has no '{}'", base.text, a.name));
        if (it->second.value.is(K::size) && !module_level) return Value::of_expr(size_of(it->second.value.text));
        return it->second.value;
    }
    if (base.is(K::module)) {
        if (auto dtype = target::dtype_from_name(a.name)) {
            Value v;
            v.kind = K::dtype;
            v.dtype = *dtype;
            return v;
        }
        if (a.name == "inf") return Value::of_real(std::numeric_limits<double>::infinity());
        if (is_builtin(a.name)) return Value::named(K::builtin, a.name);
        return error(Code::unknown_tw_name, a.name_span, fmt::format("tilewright has no '{}'", a.name), nearest_builtin_hint(a.name));
    }
    if (base.is(K::shared) && a.name == "T") {
        Value v = base;
        v.shared = std::make_shared<ir::SharedView>(*base.shared);
        auto& view = *v.shared;
        if (view.dims.size() < 2) return error(Code::bad_index_count, span, "'.T' needs a view of two dimensions or more");
        std::swap(view.dims[view.dims.size() - 1], view.dims[view.dims.size() - 2]);
        std::swap(view.extents[view.extents.size() - 1], view.extents[view.extents.size() - 2]);
        return v;
    }
    if (base.is(K::tile) && a.name == "shape") {
        Value v;
        v.kind = K::sequence;
        for (int e : base.tile->shape) v.items.push_back(Value::of(e));
        return v;
    }
    if ((base.is(K::tile) || base.is(K::tensor)) && a.name == "dtype") {
        Value v;
        v.kind = K::dtype;
        v.dtype = base.is(K::tile) ? base.tile->dtype : d.kernel.tensors[static_cast<std::size_t>(base.integer)].dtype;
        return v;
    }
    if (base.is(K::record)) return field(base, a);
    if (base.is(K::dtype) && a.name == "bytes") return Value::of(target::bytes(base.dtype));
    if (base.is(K::tensor) && a.name == "shape") {
        Value v;
        v.kind = K::sequence;
        for (const ir::Expr& e : d.kernel.tensors[static_cast<std::size_t>(base.integer)].dims) v.items.push_back(Value::of_expr(e));
        return v;
    }
    if (!has_method(base, a.name)) {
        return error(Code::unknown_attribute, a.name_span, fmt::format("{} has no '{}'", describe(base), a.name),
                     method_hint(base, a.name));
    }
    Value v = Value::named(K::method, a.name);
    v.items.push_back(std::move(base));
    return v;
}

}  // namespace tw::lower
