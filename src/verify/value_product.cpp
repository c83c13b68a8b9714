// Tags: products. A base carries a power only where the laws of powers hold for it; elsewhere a root or a reciprocal is a base of its own,
// which cancels nothing.
#include "verify/value_keys.h"

namespace tw::verify {

Value Values::function(const std::string& name, std::vector<Value> args) {
    ValueNode n;
    n.kind = Kind::function;
    n.name = name;
    n.args = std::move(args);
    return intern(std::move(n));
}

// v to the power p among the factors. Pre: v is no number, product or multiple.
//   a whole positive power        always
//   a negative power              v is not 0; elsewhere 1 / v is a base of its own
//   a power that is not whole     v is not negative; elsewhere its square root, or pow(v, p), is a base of its own
void Values::raise(Value v, const Coefficient& p, std::map<Value, Coefficient>& factors) {
    if (p.integer()) {
        if (p.positive() || nonzero(v)) factors[v] += p;
        else factors[function("rcp", {v})] += -p;
        return;
    }
    if (!(signs(v) & negative_sign)) {
        if (p.positive() || nonzero(v)) factors[v] += p;
        else raise(product({{v, -p}}), -1, factors);
        return;
    }
    if (const Coefficient twice = p * Coefficient(2); twice.integer()) return raise(function("sqrt", {v}), twice, factors);
    factors[function("pow", {v, number(p)})] += 1;
}

// The factors of a product, to a power that is not whole: those that are not negative, and |b| for an even power of b; what is left stays
// under one root.
void Values::raise_parts(const ValueNode& n, const Coefficient& p, std::map<Value, Coefficient>& factors) {
    std::vector<std::pair<Value, Coefficient>> rest;
    const auto odd = [&](std::size_t i) { return (signs(n.args[i]) & negative_sign) && !n.weights[i].even(); };
    bool root_may_fail = false;  // then a factor that may be 0 stays with it: sqrt(0 * -1) is 0, and 0 * sqrt(-1) is not
    for (std::size_t i = 0; i < n.args.size(); ++i) root_may_fail |= odd(i);
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        if (odd(i) || (root_may_fail && !nonzero(n.args[i]))) rest.emplace_back(n.args[i], n.weights[i]);
        else if (!(signs(n.args[i]) & negative_sign)) raise(n.args[i], n.weights[i] * p, factors);
        else raise(apply("abs", {n.args[i]}), n.weights[i] * p, factors);
    }
    if (!rest.empty()) raise(product(std::move(rest)), p, factors);
}

// exp(m), of the maximum m of a row, beside the sum of the row's exponentials to a negative power: where m is minus infinity that sum is 0,
// and the product has no value with exp(m) or without.
bool Values::undefined_beside(Value v, const std::map<Value, Coefficient>& factors) {
    ValueNode e = node(v);
    if (e.kind == Kind::function && e.name == "rcp") e = ValueNode(node(e.args[0]));
    if (e.kind != Kind::function || e.name != "exp") return false;
    const ValueNode top = node(e.args[0]);
    if (top.kind != Kind::reduce || top.name != "max" || node(top.args[0]).kind != Kind::function || node(top.args[0]).name != "select")
        return false;
    for (std::size_t side : {1, 2}) {  // a choice between minus infinity and what is finite
        const Value other = node(top.args[0]).args[side];
        if (may_be_infinite(other) && as_number(other) != Coefficient(-infinity)) return false;
    }
    const Value body = function("exp", {top.args[0]});
    return std::any_of(factors.begin(), factors.end(), [&](const auto& factor) {
        const ValueNode& f = node(factor.first);
        const bool reciprocal = f.kind == Kind::function && f.name == "rcp";
        const ValueNode& sum = reciprocal ? node(f.args[0]) : f;
        return factor.second.integer() && (reciprocal ? factor.second.positive() : factor.second.negative()) && sum.kind == Kind::reduce &&
               sum.name == "sum" && sum.variable == top.variable && sum.lo == top.lo && sum.hi == top.hi && sum.args[0] == body;
    });
}

Value Values::product(std::vector<std::pair<Value, Coefficient>> bases) {
    std::vector<Value> args;
    for (const auto& b : bases) args.push_back(b.first);
    bool lifted = false;
    const Value masked = lift(
        args,
        [&](const std::vector<Value>& a) {
            std::vector<std::pair<Value, Coefficient>> list;
            for (std::size_t i = 0; i < a.size(); ++i) list.emplace_back(a[i], bases[i].second);
            return product(std::move(list));
        },
        lifted);
    if (lifted) return masked;
    Coefficient coefficient = 1;
    bool zero = false;  // an empty sum: whatever it is multiplied with (a power of an empty maximum, say) stays empty
    bool infinite = false;
    std::map<Value, Coefficient> collected;
    std::function<void(Value, const Coefficient&)> multiply = [&](Value v, const Coefficient& p) {
        const ValueNode& n = node(v);
        if (p.zero()) return;
        if (n.kind == Kind::number) {
            zero |= n.number.zero() && p.positive();
            infinite |= n.number.infinite() && p.positive();
            coefficient *= n.number.power(p);
        } else if (n.kind == Kind::product && p.integer()) {
            for (std::size_t i = 0; i < n.args.size(); ++i) multiply(n.args[i], p * n.weights[i]);
        } else if (n.kind == Kind::product && !has_odd_part(n)) {
            raise_parts(n, p, collected);
        } else if (n.kind == Kind::sum && n.args.size() == 1 && n.number.zero() && (p.integer() || n.weights[0].positive())) {
            coefficient *= n.weights[0].power(p);
            multiply(n.args[0], p);
        } else if (const Poly* i = n.kind == Kind::index && p.integer() ? &n.indices[0] : nullptr;
                   i && i->terms.size() == 1 && !(i->terms.begin()->second == 1 && i->terms.begin()->first.size() == 1)) {
            coefficient *= Coefficient(i->terms.begin()->second).power(p);  // 8 * M * N as its factors: a count cancels part of another
            for (Atom a : i->terms.begin()->first) multiply(index(Poly::of(a)), p);
        } else if (n.kind == Kind::function && n.name == "rcp" && p.negative() && p.integer() && nonzero(n.args[0])) {
            multiply(n.args[0], -p);
        } else {
            raise(v, p, collected);
        }
    };
    for (const auto& [v, p] : bases) multiply(v, p);
    if (zero || coefficient.zero()) {
        // Of an unknown factor not even finiteness is known: 0 * NaN is NaN, and so is 0 times an infinite fill. A factor of which only a
        // part is unknown may turn out to be known where the product is used: it waits as it is.
        if (infinite || coefficient.is_nan() || coefficient.infinite()) return unknown("0 times infinity");
        std::vector<Value> waiting;
        for (const auto& [v, p] : collected) {
            if (has_unknown(v)) waiting.push_back(p == 1 ? v : product({{v, p}}));
            else if (undefined_part(v)) return unknown("0 times what has a value only in places");
        }
        return waiting.empty() ? number(0) : function("times_zero", std::move(waiting));
    }
    if (coefficient.is_nan() || (coefficient.infinite() && !collected.empty())) return infinite_product(coefficient, collected);
    std::vector<Value> left;
    for (const auto& [v, p] : collected) {
        if (!p.zero()) left.push_back(v);
    }
    for (const auto& [v, p] : collected) {
        if (!p.zero()) continue;
        if (has_unknown(v)) return unknown("a quotient of unknown values");
        if (undefined_beside(v, collected)) continue;
        if (may_be_infinite(v)) return unknown("a quotient of what a fill may make infinite or zero");
        if (!nonzero(v) || !may_cancel(v, left)) return unknown("a quotient of what may be 0 or has a value only in places");
    }
    std::erase_if(collected, [](const auto& factor) { return factor.second.zero(); });
    if (const auto spread = spread_over_sum(coefficient, collected)) return *spread;
    while (unite_products(collected)) {
    }
    ValueNode n;
    n.kind = Kind::product;
    for (const auto& [v, p] : collected) {
        if (p.zero()) continue;
        n.args.push_back(v);
        n.weights.push_back(p);
    }
    Value result;
    if (n.args.empty()) return number(coefficient);
    const bool whole = std::all_of(n.weights.begin(), n.weights.end(),
                                   [](const Coefficient& p) { return p.small_integer() && p.positive() && p.as_integer() < 8; });
    if (whole && std::all_of(n.args.begin(), n.args.end(), [&](Value v) { return node(v).kind == Kind::index; })) {
        Poly all(1);  // and an integer again where nothing else is left
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            for (std::int64_t times = 0; times < n.weights[i].as_integer(); ++times) all = all * node(n.args[i]).indices[0];
        }
        result = index(all);
    } else if (n.args.size() == 1 && n.weights[0] == 1) {
        result = n.args[0];
    } else {
        result = intern(std::move(n));
    }
    if (coefficient == 1) return result;
    return sum(0, {{coefficient, result}});
}

// An infinite fill times what has one sign stays infinite.
Value Values::infinite_product(const Coefficient& coefficient, const std::map<Value, Coefficient>& factors) {
    unsigned sign = coefficient.is_nan() ? static_cast<unsigned>(any_sign) : coefficient.negative() ? negative_sign : positive_sign;
    for (const auto& [v, p] : factors) {
        const unsigned s = signs(v);
        if (has_unknown(v)) return unknown("no real number");
        if (s != positive_sign && s != negative_sign) sign = any_sign;
        if (s == negative_sign && !p.even())
            sign = sign == negative_sign ? positive_sign : sign == positive_sign ? negative_sign : any_sign;
    }
    if (sign == positive_sign || sign == negative_sign) return number(sign == positive_sign ? infinity : -infinity);
    if (coefficient.is_nan()) return unknown("no real number");
    // Of either sign, or none at all: as it is.
    ValueNode n;
    n.kind = Kind::product;
    for (const auto& [v, p] : factors) n.args.push_back(v), n.weights.push_back(p);
    const Value rest = n.args.size() == 1 && n.weights[0] == 1 ? n.args[0] : intern(std::move(n));
    return function("mul_infinity", {number(coefficient), rest});
}

// Nothing of it may come out from under a root: raise_parts would leave it as it is.
bool Values::has_odd_part(const ValueNode& n) {
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        if (!(signs(n.args[i]) & negative_sign) || n.weights[i].even()) return false;
    }
    return true;
}

// A sum times anything else is spread out, so that sums of products have one form; powers of sums up to 2 as well.
std::optional<Value> Values::spread_over_sum(const Coefficient& coefficient, const std::map<Value, Coefficient>& collected) {
    for (auto it = collected.begin(); it != collected.end(); ++it) {
        const ValueNode& s = node(it->first);
        // An integer likewise where one of its terms may cancel: (N - n) / N is 1 - n / N.
        const bool integer =
            s.kind == Kind::index && s.indices[0].terms.size() > 1 &&
            std::any_of(collected.begin(), collected.end(), [&](const auto& other) {
                if (!other.second.negative() || node(other.first).kind != Kind::index) return false;
                const auto& size = node(other.first).indices[0].terms;
                return size.size() == 1 && size.begin()->first.size() == 1 && s.indices[0].mentions(size.begin()->first[0]);
            });
        if (!(s.kind == Kind::sum || integer) || !(it->second == 1 || it->second == 2) || (collected.size() == 1 && it->second == 1))
            continue;
        std::vector<std::pair<Value, Coefficient>> rest;
        for (const auto& [v, p] : collected) {
            if (v != it->first) rest.emplace_back(v, p);
        }
        if (it->second == 2) rest.emplace_back(it->first, 1);
        std::vector<std::pair<Coefficient, Value>> spread;
        const Value others = product(rest);
        if (integer) {
            for (const auto& [factors, times] : s.indices[0].terms) {
                std::vector<std::pair<Value, Coefficient>> one{{others, 1}};
                for (Atom a : factors) one.emplace_back(index(Poly::of(a)), 1);
                spread.emplace_back(coefficient * Coefficient(times), product(std::move(one)));
            }
            return sum(0, std::move(spread));
        }
        for (std::size_t i = 0; i < s.args.size(); ++i)
            spread.emplace_back(coefficient * s.weights[i], product({{s.args[i], 1}, {others, 1}}));
        if (!s.number.zero()) spread.emplace_back(coefficient * s.number, others);
        return sum(0, std::move(spread));
    }
    return std::nullopt;
}

}  // namespace tw::verify
