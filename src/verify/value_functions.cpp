// Tags: functions, and the laws that are used of them (docs/verifier.md lists each with its condition).
#include <numbers>

#include "verify/value_keys.h"

namespace tw::verify {

// exp(number + sum c t) == e^number * product exp(t)^c, with exp(t) an atomic base. exp(c log(x)) is x^c where x is positive.
Value Values::exponential(Value a) {
    const ValueNode n = node(a);
    if (n.kind == Kind::number && n.number.infinite()) return number(n.number.negative() ? Coefficient(0) : n.number);
    std::vector<std::pair<Value, Coefficient>> bases;
    auto base = [&](Value t) {
        const ValueNode& tn = node(t);
        return tn.kind == Kind::function && tn.name == "log" && signs(tn.args[0]) == positive_sign ? tn.args[0] : function("exp", {t});
    };
    const bool is_sum = n.kind == Kind::sum || n.kind == Kind::number;
    if (is_sum && !n.number.zero()) bases.emplace_back(function("exp", {number(1)}), n.number);
    for (std::size_t i = 0; is_sum && i < n.args.size(); ++i) bases.emplace_back(base(n.args[i]), n.weights[i]);
    if (!is_sum) bases.emplace_back(base(a), 1);
    return product(std::move(bases));
}

// log(a b) = log(a) + log(b) where both are positive; what is not known to be stays under the logarithm.
Value Values::logarithm(Value a) {
    const ValueNode n = node(a);
    auto log_of = [&](Value v) {
        const ValueNode& vn = node(v);
        return vn.kind == Kind::function && vn.name == "exp" ? vn.args[0] : function("log", {v});
    };
    if (n.kind == Kind::number) {
        if (n.number == 1) return number(0);
        if (n.number.zero()) return number(-infinity);
        Coefficient c = n.number;
        for (int k = 0; k < 128; ++k) {  // powers of two
            if (c == 1) return number(Coefficient(k) * Coefficient(std::numbers::ln2));
            c *= Coefficient::fraction(1, 2);
        }
        c = n.number;
        for (int k = 0; k < 128; ++k) {
            if (c == 1) return number(Coefficient(-k) * Coefficient(std::numbers::ln2));
            c *= 2;
        }
        return function("log", {a});
    }
    if (n.kind == Kind::product) {
        std::vector<std::pair<Coefficient, Value>> terms;
        std::vector<std::pair<Value, Coefficient>> rest;
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            if (signs(n.args[i]) == positive_sign) terms.emplace_back(n.weights[i], log_of(n.args[i]));
            else rest.emplace_back(n.args[i], n.weights[i]);
        }
        if (terms.empty()) return log_of(a);
        if (!rest.empty()) terms.emplace_back(1, logarithm(product(std::move(rest))));
        return sum(0, std::move(terms));
    }
    if (n.kind == Kind::sum && n.args.size() == 1 && n.number.zero() && n.weights[0].positive()) {
        return sum(0, {{1, logarithm(number(n.weights[0]))}, {1, logarithm(n.args[0])}});
    }
    return log_of(a);
}

// |x| is x where x is not negative, and |c x| is |c| |x|.
Value Values::magnitude(Value a) {
    const ValueNode n = node(a);
    const unsigned s = signs(a);
    if (!(s & negative_sign)) return a;
    if (!(s & positive_sign)) return scaled(-1, a);
    if (n.kind == Kind::sum && n.args.size() == 1 && n.number.zero())
        return scaled(n.weights[0].negative() ? -n.weights[0] : n.weights[0], magnitude(n.args[0]));
    if (n.kind == Kind::sum && n.weights[0].negative()) return function("abs", {scaled(-1, a)});  // of x and -x one is taken
    return function("abs", {a});
}

Condition Values::condition_of(Value v, bool& ok) {
    const ValueNode& n = node(v);
    Condition c;
    ok = true;
    if (n.kind == Kind::number) {
        c.kind = !n.number.zero() ? Condition::Kind::yes : Condition::Kind::no;
        return c;
    }
    if (n.kind == Kind::where) {  // where(c, 1, 0) and its like
        bool yes = true, no = true;
        const Condition a = condition_of(n.args[0], yes), b = condition_of(n.args[1], no);
        if (yes && no) return either(both(n.condition, a), both(negated(n.condition), b));
    }
    ok = false;
    return c;
}

// An element of a tensor of integers that is taken for an integer of the kernel is that element.
Value Values::word(Value v) {
    const ValueNode n = node(v);
    if (n.kind == Kind::function && n.name == "wrap:u32") {
        const Value inside = word(n.args[0]);
        return inside == n.args[0] ? v : function(n.name, {inside});
    }
    if (n.kind != Kind::index || n.indices[0].terms.size() != 1) return v;
    const auto& [atoms, times] = *n.indices[0].terms.begin();
    if (times != 1 || atoms.size() != 1 || ints_.info(atoms[0]).kind != AtomInfo::Kind::element) return v;
    const AtomInfo& info = ints_.info(atoms[0]);
    return element(info.tensor, info.args);
}

Value Values::apply(const std::string& f, std::vector<Value> a) {
    if (f == "add") return sum(0, {{1, a[0]}, {1, a[1]}});
    if (f == "sub") return sum(0, {{1, a[0]}, {-1, a[1]}});
    if (f == "neg") return sum(0, {{-1, a[0]}});
    if (f == "fma") return sum(0, {{1, product({{a[0], 1}, {a[1], 1}})}, {1, a[2]}});
    if (f == "select") {
        bool ok = true;
        const Condition c = condition_of(a[0], ok);
        if (ok) return where(c, a[1], a[2]);
        if (a[1] == a[2]) return a[1];
    }
    if (f == "mul") return product({{a[0], 1}, {a[1], 1}});
    if (f == "div") return product({{a[0], 1}, {a[1], -1}});
    if (f == "floor_div") {
        const auto p = as_integer(a[0]), q = as_integer(a[1]);
        return p && q && !q->terms.empty() ? index(ints_.quotient(*p, *q)) : apply("floor", {product({{a[0], 1}, {a[1], -1}})});
    }
    if (f == "rcp") return product({{a[0], -1}});
    if (f == "sqrt") return product({{a[0], Coefficient::fraction(1, 2)}});
    if (f == "rsqrt") return product({{a[0], Coefficient::fraction(-1, 2)}});
    if (f == "times_zero") {
        std::vector<std::pair<Value, Coefficient>> factors = {{number(0), 1}};
        for (Value x : a) factors.emplace_back(x, 1);
        return product(std::move(factors));
    }
    if (f == "pow") {
        if (auto p = as_number(a[1]); p && !p->infinite()) return product({{a[0], *p}});
    }
    bool lifted = false;
    const Value masked = lift(
        a, [&](const std::vector<Value>& b) { return apply(f, b); }, lifted);
    if (lifted) return masked;
    if (const auto type = converted_to(f))
        return f.starts_with("wrap:") ? wrapped(*type, a[0]) : f.starts_with("trunc:") ? truncated(*type, a[0]) : rounded(*type, a[0]);
    if (f == "philox") std::transform(a.begin(), a.end(), a.begin(), [&](Value x) { return word(x); });
    if (f == "mulhi") return apply("floor", {product({{a[0], 1}, {a[1], 1}, {number(Coefficient(std::int64_t{1} << 32)), -1}})});
    if (f == "exp") return exponential(a[0]);
    if (f == "exp2") return exponential(scaled(std::numbers::ln2, a[0]));
    if (f == "log") return logarithm(a[0]);
    if (f == "log2") return scaled(std::numbers::log2e, logarithm(a[0]));
    if (f == "sigmoid") return product({{sum(1, {{1, exponential(scaled(-1, a[0]))}}), -1}});
    if (f == "max" || f == "min") return extreme(f, a);
    if (f == "abs") return magnitude(a[0]);
    if (f == "floor" || f == "ceil") {
        if (const auto x = as_number(a[0]); x && !x->infinite())
            return number(f == "floor" ? std::floor(x->value()) : std::ceil(x->value()));
        if (is_whole(a[0])) return a[0];
    }
    // Comparisons of integers are conditions; of data they stay functions.
    if (a.size() == 2) {
        const auto left = as_integer(a[0]), right = as_integer(a[1]);
        if (left && right) {
            const Poly &p = *left, &q = *right;
            const Value one = number(1), zero = number(0);
            if (f == "lt") return where(less(p, q), one, zero);
            if (f == "le") return where(at_least(q, p), one, zero);
            if (f == "gt") return where(less(q, p), one, zero);
            if (f == "ge") return where(at_least(p, q), one, zero);
            if (f == "eq") return where(equals(p, q), one, zero);
            if (f == "ne") return where(negated(equals(p, q)), one, zero);
            if (f == "mod") return index(ints_.remainder(p, q));
        }
    }
    if (f == "ge" && as_number(a[1]) == Coefficient(-infinity)) return number(1);
    if (f == "le" && as_number(a[1]) == Coefficient(infinity)) return number(1);
    if (f == "eq" && a[0] == a[1] && !undefined_part(a[0])) return number(1);
    if (f == "and" || f == "or") {
        auto x = as_number(a[0]), y = as_number(a[1]);
        for (std::size_t i = 0; i < 2; ++i) {
            const auto known = i == 0 ? x : y;
            if (known) return !known->zero() == (f == "and") ? a[1 - i] : number(f == "or" ? 1 : 0);
        }
    }
    if (f == "not") {
        if (auto x = as_number(a[0])) return number(x->zero() ? 1 : 0);
    }
    // z > x is x < z. (z >= x stays: votes are recognised by it.)
    if (f == "gt") return function("lt", {a[1], a[0]});
    const Value made = function(f, std::move(a));
    if (f == "select") {
        if (const auto place = place_in_whole(made)) return *place;
    }
    return made;
}

}  // namespace tw::verify
