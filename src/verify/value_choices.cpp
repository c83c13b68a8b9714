// Tags: choices by comparisons of data, in one form. The constructors leave `select` as it is written; where two tags differ, both are
// written in this form and compared once more. Every step is an identity of the real numbers, with its condition beside it.
#include <functional>
#include <set>

#include "verify/value_keys.h"

namespace tw::verify {

// A whole number made of integers of the kernel and of elements of integer tensors.
std::optional<Poly> Values::as_index(Value v) {
    const ValueNode n = node(v);
    if (n.kind == Kind::element) return is_whole(v) ? std::optional(ints_.element(n.id, n.indices)) : std::nullopt;
    if (n.kind != Kind::sum || !n.number.small_integer()) return as_integer(v);
    Poly p(n.number.as_integer());
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const auto part = n.weights[i].small_integer() ? as_index(n.args[i]) : std::nullopt;
        if (!part) return std::nullopt;
        p = p + Poly(n.weights[i].as_integer()) * *part;
    }
    return p;
}

// A comparison of such integers as a condition; anything else as it is.
Value Values::as_condition(Value v) {
    static const std::set<std::string> orders = {"lt", "le", "gt", "ge", "eq", "ne"};
    const ValueNode n = node(v);
    if (n.kind != Kind::function || !orders.count(n.name)) return v;
    const auto p = as_index(n.args[0]), q = p ? as_index(n.args[1]) : std::nullopt;
    return q ? apply(n.name, {index(*p), index(*q)}) : v;
}

// c with v == c z, where it is a number.
std::optional<Coefficient> Values::multiple_of(Value v, Value z) {
    if (v == z) return Coefficient(1);
    const ValueNode &p = node(v), &q = node(z);
    if (p.kind == Kind::number && p.number.zero()) return Coefficient(0);
    if (p.kind != Kind::sum && q.kind != Kind::sum) return std::nullopt;
    Coefficient c = p.kind == Kind::sum ? p.weights[0] : Coefficient(1);
    if (q.kind == Kind::sum) c *= q.weights[0].power(-1);
    return scaled(c, z) == v ? std::optional(c) : std::nullopt;
}

// The number that a maximum or minimum of nothing but that number is, if it is over anything at all.
std::optional<Coefficient> Values::number_of_fold(Value v) const {
    const ValueNode& n = node(v);
    if (n.kind == Kind::number && !n.number.infinite()) return n.number;
    return n.kind == Kind::reduce && (n.name == "max" || n.name == "min") ? number_of_fold(n.args[0]) : std::nullopt;
}

// A whole number that is at least c (max) or at most c (min): c adds nothing to its maximum or minimum. A fold of nothing is no whole
// number.
bool Values::never_beyond(const std::string& op, Value x, const Coefficient& c) {
    if (!c.small_integer()) return false;
    const ValueNode n = node(x);
    if (n.kind == Kind::reduce && (n.name != op || !prover_.holds(less(n.lo, n.hi)))) return false;
    if (n.kind == Kind::reduce) {
        const Atom i = ints_.fresh("i");
        prover_.push();
        prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
        const bool all = never_beyond(op, replace(n.args[0], {{n.variable, Poly::of(i)}}), c);
        prover_.pop();
        return all;
    }
    if (n.kind == Kind::extreme && n.name == op)
        return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return never_beyond(op, a, c); });
    if (n.kind != Kind::element && n.kind != Kind::function && n.kind != Kind::number) return false;
    if (n.kind == Kind::function && n.name == "select") return never_beyond(op, n.args[1], c) && never_beyond(op, n.args[2], c);
    if (!is_whole(x) || (n.kind == Kind::function && !converted_to(n.name))) return false;
    const auto range = bounds(x);
    return range && (op == "max" ? range->low >= c.as_integer() : range->high <= c.as_integer());
}

// trunc:T of a minimum or maximum, part by part: it never turns two numbers round. A fold of nothing is the type's end.
std::optional<Value> Values::truncated_parts(const std::string& to, Value v) {
    const ValueNode n = node(v);
    const auto part = [&](Value a) { return truncated_parts(to, a).value_or(apply(to, {a})); };
    if (n.kind == Kind::function && n.name == "select") return apply("select", {n.args[0], part(n.args[1]), part(n.args[2])});
    if (n.kind == Kind::extreme) {
        std::vector<Value> args;
        for (Value a : n.args) args.push_back(part(a));
        return extreme(n.name, std::move(args));
    }
    if (n.kind != Kind::reduce || (n.name != "min" && n.name != "max")) return std::nullopt;
    const Atom i = ints_.fresh("i");
    prover_.push();
    prover_.assume(both(at_least(Poly::of(i), n.lo), less(Poly::of(i), n.hi)));
    const Value body = part(replace(n.args[0], {{n.variable, Poly::of(i)}}));
    prover_.pop();
    return extreme(n.name, {reduce(n.name, i, n.lo, n.hi, body), apply(to, {number(identity(n.name))})});
}

// A maximum or minimum: max(x, -x) is |x|; max(a, min(b, x)) is min(b, max(a, x)) where a <= b; a number at most 0, or a maximum of such,
// adds nothing to the maximum with what is not negative.
Value Values::extreme_in_form(const std::string& op, const std::vector<Value>& parts) {
    const Value v = extreme(op, parts);
    const ValueNode n = node(v);
    if (n.kind != Kind::extreme || n.name != op) return v;
    const bool largest = op == "max";
    const auto beyond = [&](Value x) { return !(signs(x) & (largest ? negative_sign : positive_sign)); };
    std::vector<Value> kept;
    for (Value a : n.args) {
        const auto c = number_of_fold(a);
        const bool beside = node(a).kind == Kind::number && c && std::any_of(n.args.begin(), n.args.end(), [&](Value x) {
                                return x != a && node(x).kind != Kind::number && never_beyond(op, x, *c);
                            });
        const bool of_sign = c && (node(a).kind == Kind::number || node(a).name == op) && !(largest ? c->positive() : c->negative()) &&
                             std::any_of(n.args.begin(), n.args.end(), [&](Value x) { return x != a && !number_of_fold(x) && beyond(x); });
        const bool idle = beside || of_sign;
        if (!idle) kept.push_back(a);
    }
    if (kept.size() < n.args.size()) return extreme_in_form(op, kept);
    if (n.args.size() != 2) return v;
    if (scaled(-1, n.args[0]) == n.args[1]) return largest ? magnitude(n.args[0]) : scaled(-1, magnitude(n.args[0]));
    if (!largest) return v;
    for (std::size_t i = 0; i < 2; ++i) {
        const ValueNode &low = node(n.args[i]), inner = node(n.args[1 - i]);
        if (low.kind != Kind::number || inner.kind != Kind::extreme || inner.name != "min") continue;
        std::vector<Value> rest;
        std::optional<Value> high;
        for (Value a : inner.args) {
            if (node(a).kind == Kind::number && !(low.number - node(a).number).positive() && !node(a).number.infinite()) high = a;
            else rest.push_back(a);
        }
        if (high && !low.number.infinite()) return extreme("min", {*high, extreme_in_form("max", {n.args[i], extreme("min", rest)})});
    }
    return v;
}

// `then` where x < y, else `otherwise`.
Value Values::chosen_by_order(Value x, Value y, Value then, Value otherwise) {
    // min(x, y) is x on the one side and y on the other, max(x, y) the other way round.
    const Value least = extreme("min", {x, y}), largest = extreme("max", {x, y});
    if (node(least).kind == Kind::extreme) then = substitute(then, least, x), otherwise = substitute(otherwise, least, y);
    if (node(largest).kind == Kind::extreme) then = substitute(then, largest, y), otherwise = substitute(otherwise, largest, x);
    const Value plain = apply("select", {apply("lt", {x, y}), then, otherwise});
    if (then == otherwise || may_be_infinite(plain) || has_unknown(plain)) return plain;
    if (then == x && otherwise == y) return extreme_in_form("min", {x, y});
    if (then == y && otherwise == x) return extreme_in_form("max", {x, y});
    // c z where z is below 0, else z: max(z, c z) where c is at most 1, min(z, c z) elsewhere. At 0 both are 0.
    const auto is_zero = [&](Value v) { return node(v).kind == Kind::number && node(v).number.zero(); };
    for (const auto& [z, zero, positive, negative] : {std::tuple{x, y, otherwise, then}, std::tuple{y, x, then, otherwise}}) {
        if (!is_zero(zero) || positive != z) continue;
        const auto c = multiple_of(negative, z);
        if (!c || c->infinite() || c->is_nan()) continue;
        return extreme_in_form((*c - Coefficient(1)).positive() ? "min" : "max", {z, negative});
    }
    // a number a where z has passed it, else z cut off on the other side: cut off on both. (z is x or y, a the other one.)
    const auto cut_off = [&](Value number_side, Value z, Value inner, const std::string& op) {
        const ValueNode& n = node(inner);
        if (node(number_side).kind != Kind::number || n.kind != Kind::extreme || n.name != op || n.args.size() != 2) return false;
        const Value other = n.args[0] == z ? n.args[1] : n.args[0];
        if ((n.args[0] != z && n.args[1] != z) || node(other).kind != Kind::number) return false;
        const Coefficient past = node(other).number - node(number_side).number;
        return op == "max" ? !past.positive() : !past.negative();
    };
    if (then == x && cut_off(x, y, otherwise, "max")) return extreme_in_form("min", {x, otherwise});
    if (then == y && cut_off(y, x, otherwise, "min")) return extreme_in_form("max", {y, otherwise});
    if (otherwise == y && cut_off(y, x, then, "max")) return extreme_in_form("min", {y, then});
    if (otherwise == x && cut_off(x, y, then, "min")) return extreme_in_form("max", {x, then});
    return plain;
}

// Of x < y and its opposites one is taken: where a value is not below another it is at or above it. (NaN is not of this world.)
Value Values::chosen(Value condition, Value then, Value otherwise) {
    const ValueNode c = node(condition);
    if (c.kind == Kind::function) {
        if (c.name == "not") return chosen(c.args[0], otherwise, then);
        if (c.name == "ne") return apply("select", {apply("eq", c.args), otherwise, then});
        if (c.name == "lt") return chosen_by_order(c.args[0], c.args[1], then, otherwise);
        if (c.name == "gt") return chosen_by_order(c.args[1], c.args[0], then, otherwise);
        if (c.name == "le") return chosen_by_order(c.args[1], c.args[0], otherwise, then);
        if (c.name == "ge") return chosen_by_order(c.args[0], c.args[1], otherwise, then);
    }
    return apply("select", {condition, then, otherwise});
}

// Two folds of one body from one start, of which a condition says which: one fold, where there is an end that is that of each under its
// condition. So a loop over whole tiles with a masked tile after it is a loop over all of them: n // d iterations, and one more where
// n - d * (n // d) > 0, are (n - 1) // d + 1.
std::optional<Value> Values::fold_to_one_end(const Condition& c, Value then, Value otherwise) {
    const ValueNode &a = node(then), &b = node(otherwise);
    if (a.kind != Kind::reduce || b.kind != Kind::reduce || a.name != b.name || a.variable != b.variable || a.args != b.args ||
        !(a.lo == b.lo))
        return std::nullopt;
    std::vector<Poly> ends = {a.hi, b.hi};
    if (c.kind == Condition::Kind::at_least_zero && a.hi - b.hi == Poly(1)) {
        for (const auto& [m, k] : b.hi.terms) {
            if (m.size() != 1 || ints_.info(m[0]).kind != AtomInfo::Kind::quotient) continue;
            if (const auto d = ints_.info(m[0]).args[1].constant(); d && *d > 1)
                ends.push_back(ints_.quotient(c.poly + Poly(*d) * b.hi, Poly(*d)) + Poly(1));
        }
    }
    for (const Poly& end : ends) {
        if ((end == a.hi || prover_.holds_given(c, equals(end, a.hi))) &&
            (end == b.hi || prover_.holds_given(negated(c), equals(end, b.hi))))
            return reduce(a.name, a.variable, Poly(a.lo), Poly(end), a.args[0]);
    }
    return std::nullopt;
}

// A sum or product with one choice in it as a choice of sums or products.
Value Values::choice_outside(Value v) {
    const ValueNode n = node(v);
    std::optional<Value> condition;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode& a = node(n.args[i]);
        if (a.kind != Kind::function || a.name != "select") continue;
        if ((n.kind == Kind::product && !(n.weights[i] == 1)) || (condition && *condition != a.args[0])) return v;
        condition = a.args[0];
    }
    if (!condition || may_be_infinite(v) || has_unknown(v)) return v;
    const auto side = [&](std::size_t which) {
        std::vector<std::pair<Coefficient, Value>> terms;
        std::vector<std::pair<Value, Coefficient>> bases;
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            const ValueNode& a = node(n.args[i]);
            const Value part = a.kind == Kind::function && a.name == "select" ? a.args[which] : n.args[i];
            terms.emplace_back(n.weights[i], part);
            bases.emplace_back(part, n.weights[i]);
        }
        return n.kind == Kind::sum ? sum(n.number, std::move(terms)) : product(std::move(bases));
    };
    return chosen(*condition, side(1), side(2));
}

Value Values::with_choices(Value v) {
    std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode n = node(x);
        const auto inner = [&](Value a) { return rewritten(a, change); };
        std::vector<Value> args;
        switch (n.kind) {
            case Kind::function: {
                for (Value a : n.args) args.push_back(inner(a));
                if (n.name.starts_with("trunc:"))
                    if (const auto parts = truncated_parts(n.name, args[0])) return parts;
                if (n.name != "select") return as_condition(apply(n.name, std::move(args)));
                // Of integers too a choice of the larger one is a maximum: the comparison as it is, first.
                if (const ValueNode c = node(n.args[0]); c.kind == Kind::function && c.args.size() == 2)
                    args[0] = apply(c.name, {inner(c.args[0]), inner(c.args[1])});
                // A choice of an infinity stays one by data: a mask on integers is taken to leave an element of a row, data may leave none.
                const bool infinite = may_be_infinite(n.args[1]) || may_be_infinite(n.args[2]);
                if (infinite) args[0] = n.args[0];
                const Value made = chosen(args[0], args[1], args[2]);
                const ValueNode m = node(made);
                if (m.kind != Kind::function || m.name != "select" || infinite) return made;
                return apply("select", {as_condition(m.args[0]), m.args[1], m.args[2]});
            }
            case Kind::extreme:
                for (Value a : n.args) args.push_back(inner(a));
                return extreme_in_form(n.name, args);
            case Kind::sum:
            case Kind::product: {
                std::vector<std::pair<Coefficient, Value>> terms;
                std::vector<std::pair<Value, Coefficient>> bases;
                for (std::size_t i = 0; i < n.args.size(); ++i) {
                    const Value a = inner(n.args[i]);
                    terms.emplace_back(n.weights[i], a);
                    bases.emplace_back(a, n.weights[i]);
                }
                const Value made = n.kind == Kind::sum ? sum(n.number, std::move(terms)) : product(std::move(bases));
                return node(made).kind == n.kind ? choice_outside(made) : made;
            }
            case Kind::reduce: {  // the maximum of maxima part by part
                if (n.name != "max" && n.name != "min") return std::nullopt;
                const Atom y = ints_.fresh("i");
                prover_.push();
                prover_.assume(at_least(Poly::of(y), n.lo));
                prover_.assume(less(Poly::of(y), n.hi));
                const Value body = inner(replace(n.args[0], {{n.variable, Poly::of(y)}}));
                prover_.pop();
                if (node(body).kind == Kind::extreme && node(body).name == n.name) args = node(body).args;
                else args = {body};
                for (Value& a : args) a = reduce(n.name, y, n.lo, n.hi, a);
                return extreme_in_form(n.name, args);
            }
            default: return std::nullopt;
        }
    };
    return rewritten(v, change);
}

}  // namespace tw::verify
