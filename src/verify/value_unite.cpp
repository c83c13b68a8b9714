// Tags: how folds over neighbouring ranges unite.
#include <set>

#include "verify/value_keys.h"

namespace tw::verify {

// All ways to see a term as a sum times other factors.
std::vector<Values::SumFactor> Values::sum_factors(Value term) const {
    const ValueNode& n = node(term);
    if (n.kind == Kind::reduce && n.name == "sum") return {{term, {}}};
    std::vector<SumFactor> result;
    if (n.kind != Kind::product) return result;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        if (node(n.args[i]).kind != Kind::reduce || node(n.args[i]).name != "sum" || n.weights[i] != 1) continue;
        SumFactor f{n.args[i], {}};
        for (std::size_t j = 0; j < n.args.size(); ++j) {
            if (j != i) f.others.emplace_back(n.args[j], n.weights[j]);
        }
        result.push_back(std::move(f));
    }
    return result;
}

// Do the ranges make up [a.lo, b.hi), cut in two at some m? A range is what lies above all its lower and below all its upper bounds, so it
// takes a.hi == min(b.hi, m) and b.lo == max(a.lo, m), whether a part is empty or not: [a, min(m, n)) and [m, n) meet wherever n is, and
// so do [max(a, c), m) and [max(m, c), d) wherever c is.
bool Values::adjacent(const ValueNode& a, const ValueNode& b) {
    using BoundList = std::vector<Poly>;
    auto among = [](const Poly& p, const BoundList& list) { return std::find(list.begin(), list.end(), p) != list.end(); };
    // Is every one of `some` at least (at most) one of the others or of m?
    auto bounded = [&](const BoundList& some, const BoundList& others, const Poly& m, bool above) {
        return std::all_of(some.begin(), some.end(), [&](const Poly& p) {
            auto idle = [&](const Poly& q) { return prover_.holds(above ? at_least(p, q) : at_least(q, p)); };
            return p == m || among(p, others) || idle(m) || std::any_of(others.begin(), others.end(), idle);
        });
    };
    auto cut_at = [&](const Poly& m, const BoundList& a_lows, const BoundList& a_highs, const BoundList& b_lows, const BoundList& b_highs) {
        return bounded(a_highs, b_highs, m, true) && bounded(b_highs, a_highs, m, true) && bounded(a_lows, b_lows, m, false) &&
               bounded(b_lows, a_lows, m, false);
    };
    if (a.hi == b.lo || simplified(a.hi) == simplified(b.lo) || prover_.holds(equals(a.hi, b.lo)))
        return cut_at(b.lo, {a.lo}, {b.lo}, {b.lo}, {b.hi});
    const BoundList a_highs = ints_.alternatives(a.hi, AtomInfo::Kind::minimum), b_lows = ints_.alternatives(b.lo, AtomInfo::Kind::maximum);
    if (std::none_of(a_highs.begin(), a_highs.end(), [&](const Poly& m) { return among(m, b_lows); })) return false;
    const BoundList a_lows = ints_.alternatives(a.lo, AtomInfo::Kind::maximum), b_highs = ints_.alternatives(b.hi, AtomInfo::Kind::minimum);
    return std::any_of(a_highs.begin(), a_highs.end(),
                       [&](const Poly& m) { return among(m, b_lows) && cut_at(m, a_lows, a_highs, b_lows, b_highs); });
}

// Unites sums over neighbouring ranges: c * f * sum[a,b) + c * f * sum[b,d) == c * f * sum[a,d). And takes them apart: sum[a,d) - sum[a,b)
// == sum[b,d).
Value Values::merged_sums(const Coefficient& constant, std::map<Value, Coefficient> terms) {
    // Two sums of one body with the same factors, the second with `sign` times the weight of the first, become the one that `whole` makes
    // of them.
    // Taken from itself it leaves 0: it is a finite number, everywhere.
    const auto cancels = [&](Value v) { return !has_unknown(v) && !may_be_infinite(v) && !undefined_part(v); };
    auto pair_up = [&](int sign, const std::function<std::optional<ValueNode>(const ValueNode&, const ValueNode&)>& whole) {
        for (auto i = terms.begin(); i != terms.end(); ++i) {
            if (i->second.zero() || (sign < 0 && !cancels(i->first))) continue;
            const std::vector<SumFactor> mine = sum_factors(i->first);
            if (mine.empty()) continue;
            for (auto j = terms.begin(); j != terms.end(); ++j) {
                if (i == j || !(i->second == Coefficient(sign) * j->second)) continue;
                for (const SumFactor& theirs : sum_factors(j->first)) {
                    for (const SumFactor& one : mine) {
                        const ValueNode &a = node(one.reduce), &b = node(theirs.reduce);
                        if (one.others != theirs.others || a.args[0] != b.args[0] || a.variable != b.variable) continue;
                        auto made = whole(a, b);
                        if (!made) continue;
                        ++merging_;
                        const Coefficient c = i->second;
                        const Value first = i->first, second = j->first;
                        auto bases = one.others;
                        bases.emplace_back(intern(std::move(*made)), 1.0);
                        const Value united = product(std::move(bases));
                        terms.erase(first);
                        terms.erase(second);
                        terms[united] += c;
                        --merging_;
                        return true;
                    }
                }
            }
        }
        return false;
    };
    auto unite_two = [&] {
        return pair_up(1, [&](const ValueNode& a, const ValueNode& b) -> std::optional<ValueNode> {
            if (!adjacent(a, b)) return std::nullopt;
            ValueNode whole = a;
            whole.hi = b.hi;
            return whole;
        });
    };
    auto subtract_two = [&] {  // a sum less one over its first or its last part is one over the rest
        return pair_up(-1, [&](const ValueNode& a, const ValueNode& b) -> std::optional<ValueNode> {
            const bool front = a.lo == b.lo;
            if ((!front && !(a.hi == b.hi)) || !prover_.holds(both(at_least(b.lo, a.lo), both(at_least(b.hi, b.lo), at_least(a.hi, b.hi)))))
                return std::nullopt;
            ValueNode rest = a;
            (front ? rest.lo : rest.hi) = front ? b.hi : b.lo;
            return rest;
        });
    };
    // f(b) joins the sum of f over [a, b), and so does f(a - 1); f(b - 1) and f(a) may be taken from it; with the factors before the sum
    // too, and term by term where f is a sum.
    auto unite_one = [&](bool joins) {
        for (auto i = terms.begin(); i != terms.end(); ++i) {
            const Value r = i->first;
            if (i->second.zero() || (!joins && !cancels(r))) continue;
            const Coefficient c = i->second;
            for (const SumFactor& one : sum_factors(r)) {
                const ValueNode a = node(one.reduce);
                for (const bool after : {true, false}) {
                    ++merging_;
                    const Value next =
                        replace(a.args[0], {{a.variable, joins ? (after ? a.hi : a.lo - Poly(1)) : (after ? a.hi - Poly(1) : a.lo)}});
                    const ValueNode n = node(next);
                    std::vector<std::pair<Value, Coefficient>> parts;
                    if (n.kind == Kind::sum && n.number == 0) {
                        for (std::size_t k = 0; k < n.args.size(); ++k) parts.emplace_back(n.args[k], n.weights[k]);
                    } else {
                        parts.emplace_back(next, 1.0);
                    }
                    bool all = true;
                    std::set<Value> found;  // a term of the sum is used up by one part
                    for (auto& [part, weight] : parts) {
                        if (!one.others.empty()) {
                            auto bases = one.others;
                            bases.emplace_back(part, 1.0);
                            part = product(std::move(bases));
                        }
                        auto j = terms.find(part);
                        all = all && j != terms.end() && j->first != r && found.insert(part).second &&
                              j->second == (joins ? c * weight : -c * weight);
                    }
                    --merging_;
                    if (!all || !prover_.holds(at_least(a.hi, joins ? a.lo : a.lo + Poly(1)))) continue;
                    ValueNode whole = a;
                    if (after) whole.hi = a.hi + Poly(joins ? 1 : -1);
                    else whole.lo = a.lo + Poly(joins ? -1 : 1);
                    ++merging_;
                    auto bases = one.others;
                    bases.emplace_back(intern(std::move(whole)), 1.0);
                    const Value united = product(std::move(bases));
                    --merging_;
                    terms.erase(r);
                    for (const auto& [part, weight] : parts) terms.erase(part);
                    terms[united] += c;
                    return true;
                }
            }
        }
        return false;
    };
    while (merging_ < 8 && (unite_two() || unite_one(true) || unite_one(false) || subtract_two())) {
    }
    // What has come together may be what is taken away.
    if (const auto why = taken_away(terms)) return *why;
    ValueNode n;
    n.kind = Kind::sum;
    n.number = constant;
    for (const auto& [v, c] : terms) {
        if (c.zero()) continue;
        n.args.push_back(v);
        n.weights.push_back(c);
    }
    if (n.args.empty()) return number(n.number);
    if (n.args.size() == 1 && n.weights[0] == 1 && n.number == 0) return n.args[0];
    return intern(std::move(n));
}

// Products over neighbouring ranges: prod[a,b) * prod[b,d) == prod[a,d), and f(b) joins prod of f over [a, b).
bool Values::unite_products(std::map<Value, Coefficient>& bases) {
    if (merging_ >= 8) return false;
    for (const auto& [first, power] : bases) {
        const ValueNode& a = node(first);
        if (a.kind != Kind::reduce || a.name != "prod") continue;
        for (const auto& [second, other] : bases) {
            if (first == second || !(power == other)) continue;
            const ValueNode& b = node(second);
            ValueNode whole = a;
            if (b.kind == Kind::reduce && b.name == "prod" && b.args[0] == a.args[0] && b.variable == a.variable) {
                if (!adjacent(a, b)) continue;
                whole.hi = b.hi;
            } else {
                ++merging_;
                const Value next = replace(a.args[0], {{a.variable, a.hi}});
                --merging_;
                if (next != second || !prover_.holds(at_least(a.hi, a.lo))) continue;
                whole.hi = a.hi + Poly(1);
            }
            const Coefficient p = power;
            const Value united = intern(std::move(whole));
            const auto beside = bases.find(united);  // what it divides is not 0, and has a value
            if (beside != bases.end() && (p + beside->second).zero() &&
                (!nonzero(united) || undefined_part(united) || may_be_infinite(united) || has_unknown(united)))
                continue;
            const Value gone[] = {first, second};
            for (Value v : gone) bases.erase(v);
            bases[united] += p;
            return true;
        }
    }
    return false;
}

Value Values::extreme(const std::string& op, std::vector<Value> args) {
    std::vector<Value> flat;
    Coefficient constant = identity(op);
    for (Value v : args) {
        const ValueNode& n = node(v);
        if (n.kind == Kind::number) {
            if (op == "max" ? constant.value() < n.number.value() : n.number.value() < constant.value()) constant = n.number;
        } else if (n.kind == Kind::extreme && n.name == op) {
            flat.insert(flat.end(), n.args.begin(), n.args.end());
        } else {
            flat.push_back(v);
        }
    }
    std::sort(flat.begin(), flat.end());
    flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
    // Ranges of one body that touch or overlap unite.
    bool changed = true;
    while (changed) {
        changed = false;
        for (std::size_t i = 0; i < flat.size() && !changed; ++i) {
            for (std::size_t j = 0; j < flat.size() && !changed; ++j) {
                if (i == j) continue;
                // c * reduce: the coefficient must agree, and one below 0 turns the order round: max(-min a, -min b) is -min of both.
                auto core = [&](Value v, Coefficient& c) {
                    const ValueNode& n = node(v);
                    c = 1;
                    if (n.kind == Kind::sum && n.args.size() == 1 && n.number.zero()) {
                        c = n.weights[0];
                        return n.args[0];
                    }
                    return v;
                };
                Coefficient c1 = 1, c2 = 1;
                const Value v1 = core(flat[i], c1), v2 = core(flat[j], c2);
                const ValueNode &a = node(v1), &b = node(v2);
                if (a.kind != Kind::reduce || b.kind != Kind::reduce || a.name != b.name || !(c1 == c2)) continue;
                if (a.name != (c1.positive() ? op : op == "max" ? "min" : "max")) continue;
                if (a.args[0] != b.args[0] || a.variable != b.variable) continue;
                const bool meet = adjacent(a, b);
                if (!meet && !(a.lo == b.lo && prover_.holds(at_least(a.hi, b.hi)))) continue;
                ValueNode whole = a;
                if (meet) whole.hi = b.hi;
                Value united = intern(std::move(whole));
                if (!(c1 == 1)) united = sum(0, {{c1, united}});
                flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
                flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
                flat.push_back(united);
                std::sort(flat.begin(), flat.end());
                changed = true;
            }
        }
        // f(b) joins the fold of f over [a, b).
        for (std::size_t i = 0; i < flat.size() && !changed && merging_ < 8; ++i) {
            const ValueNode& a = node(flat[i]);
            if (a.kind != Kind::reduce || a.name != op) continue;
            ++merging_;
            const Value next = replace(a.args[0], {{a.variable, a.hi}});
            --merging_;
            auto j = std::find(flat.begin(), flat.end(), next);
            if (j == flat.end() || !prover_.holds(at_least(a.hi, a.lo))) continue;
            ValueNode whole = a;
            whole.hi = a.hi + Poly(1);
            flat[i] = intern(std::move(whole));
            flat.erase(j);
            std::sort(flat.begin(), flat.end());
            changed = true;
        }
    }
    if (op == "min") drop_later_places(flat);
    if (constant != identity(op)) flat.push_back(number(constant));
    if (flat.empty()) return number(constant);
    if (flat.size() == 1) return flat[0];
    ValueNode n;
    n.kind = Kind::extreme;
    n.name = op;
    n.args = std::move(flat);
    return intern(std::move(n));
}

}  // namespace tw::verify
