// Tags: reductions, and how neighbouring ranges unite.
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
    using Bounds = std::vector<Poly>;
    auto among = [](const Poly& p, const Bounds& list) { return std::find(list.begin(), list.end(), p) != list.end(); };
    // Is every one of `some` at least (at most) one of the others or of m?
    auto bounded = [&](const Bounds& some, const Bounds& others, const Poly& m, bool above) {
        return std::all_of(some.begin(), some.end(), [&](const Poly& p) {
            auto idle = [&](const Poly& q) { return prover_.holds(above ? at_least(p, q) : at_least(q, p)); };
            return p == m || among(p, others) || idle(m) || std::any_of(others.begin(), others.end(), idle);
        });
    };
    auto cut_at = [&](const Poly& m, const Bounds& a_lows, const Bounds& a_highs, const Bounds& b_lows, const Bounds& b_highs) {
        return bounded(a_highs, b_highs, m, true) && bounded(b_highs, a_highs, m, true) && bounded(a_lows, b_lows, m, false) &&
               bounded(b_lows, a_lows, m, false);
    };
    if (a.hi == b.lo || simplified(a.hi) == simplified(b.lo) || prover_.holds(equals(a.hi, b.lo)))
        return cut_at(b.lo, {a.lo}, {b.lo}, {b.lo}, {b.hi});
    const Bounds a_highs = ints_.alternatives(a.hi, AtomInfo::Kind::minimum), b_lows = ints_.alternatives(b.lo, AtomInfo::Kind::maximum);
    if (std::none_of(a_highs.begin(), a_highs.end(), [&](const Poly& m) { return among(m, b_lows); })) return false;
    const Bounds a_lows = ints_.alternatives(a.lo, AtomInfo::Kind::maximum), b_highs = ints_.alternatives(b.hi, AtomInfo::Kind::minimum);
    return std::any_of(a_highs.begin(), a_highs.end(),
                       [&](const Poly& m) { return among(m, b_lows) && cut_at(m, a_lows, a_highs, b_lows, b_highs); });
}

// Unites sums over neighbouring ranges: c * f * sum[a,b) + c * f * sum[b,d) == c * f * sum[a,d). And takes them apart: sum[a,d) - sum[a,b)
// == sum[b,d).
Value Values::merged_sums(const Coefficient& constant, std::map<Value, Coefficient> terms) {
    // Two sums of one body with the same factors, the second with `sign` times the weight of the first, become the one that `whole` makes
    // of them.
    auto pair_up = [&](int sign, const std::function<std::optional<ValueNode>(const ValueNode&, const ValueNode&)>& whole) {
        for (auto i = terms.begin(); i != terms.end(); ++i) {
            if (i->second.zero() || (sign < 0 && (has_unknown(i->first) || may_be_infinite(i->first)))) continue;  // those cancel nothing
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
            if (i->second.zero() || (!joins && (has_unknown(r) || may_be_infinite(r)))) continue;  // those cancel nothing
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
            const Value gone[] = {first, second};
            for (Value v : gone) bases.erase(v);
            bases[intern(std::move(whole))] += p;
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
    if (constant != identity(op)) flat.push_back(number(constant));
    if (flat.empty()) return number(constant);
    if (flat.size() == 1) return flat[0];
    ValueNode n;
    n.kind = Kind::extreme;
    n.name = op;
    n.args = std::move(flat);
    return intern(std::move(n));
}

// The end of a range as bounds on its variable: i < W + N // d is N - d*i + d*(W - 1) >= 0, and i >= W - N // d is
// N + d*i - d*W >= 0.
Condition Values::end_as_mask(Atom i, const Poly& end, bool upper) {
    for (const auto& [m, k] : end.terms) {
        if (m.size() != 1 || k != (upper ? 1 : -1) || ints_.info(m[0]).kind != AtomInfo::Kind::quotient) continue;
        const AtomInfo& info = ints_.info(m[0]);
        const auto d = info.args[1].constant();
        if (!d || *d <= 0) continue;
        const Poly whole = upper ? end - Poly::of(m[0]) : end + Poly::of(m[0]);
        return upper ? at_least(info.args[0] - Poly(*d) * Poly::of(i) + Poly(*d) * (whole - Poly(1)), Poly(0))
                     : at_least(info.args[0] + Poly(*d) * Poly::of(i) - Poly(*d) * whole, Poly(0));
    }
    return upper ? less(Poly::of(i), end) : at_least(Poly::of(i), end);
}

std::optional<Poly> Values::count_of(const Poly& p) const {
    if (p.terms.size() != 1 || p.terms.begin()->second != 1 || p.terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo& info = ints_.info(p.terms.begin()->first[0]);
    if (info.kind != AtomInfo::Kind::maximum || info.args.size() != 2) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
        if (info.args[i].constant() == 0) return info.args[1 - i];
    }
    return std::nullopt;
}

// A nest of folds whose variables are the digits of one index, in any order: sum_a sum_b sum_i f(32*i + 8*a + b) with a < 4,
// b < 8 is one sum over y = 32*i + 8*a + b. Ends that depend on other digits (the clip of a ragged end) are taken back into
// masks, which must depend on y alone, as the body must.
std::optional<Value> Values::joined_digits(const std::string& op, Atom x, const Poly& lo, const Poly& hi, Value body) {
    if (op != "sum" && op != "max" && op != "min" && op != "prod") return std::nullopt;
    struct Fold {
        Atom variable;
        Poly lo, hi;
    };
    std::vector<Fold> folds = {{x, lo, hi}};
    Value core = body;
    while (node(core).kind == Kind::reduce && node(core).name == op && folds.size() < 5) {
        const ValueNode& n = node(core);
        const Atom y = ints_.fresh("i");
        folds.push_back({y, n.lo, n.hi});
        ++opening_;  // it is in normal form already
        core = replace(n.args[0], {{n.variable, Poly::of(y)}});
        --opening_;
    }
    // A count that depends on the variables is a fold of ones: max(0, p) ones, or p where that is never negative.
    if (const ValueNode& n = node(core); op == "sum" && n.kind == Kind::index) {
        auto ones = count_of(n.indices[0]);
        const bool divided = std::any_of(n.indices[0].terms.begin(), n.indices[0].terms.end(), [&](const auto& term) {
            return term.second == 1 && term.first.size() == 1 && ints_.info(term.first[0]).kind == AtomInfo::Kind::quotient;
        });
        if (!ones && divided) {
            prover_.push();
            for (const Fold& f : folds) prover_.assume(both(at_least(Poly::of(f.variable), f.lo), less(Poly::of(f.variable), f.hi)));
            if (prover_.holds(at_least(n.indices[0], Poly(0)))) ones = n.indices[0];
            prover_.pop();
        }
        if (ones) {
            Fold counted{ints_.fresh("i"), Poly(0), *ones};
            for (const auto& [m, c] : ones->terms) {  // end - max(...): a range that is cut off below too
                if (c != -1 || m.size() != 1 || ints_.info(m[0]).kind != AtomInfo::Kind::maximum) continue;
                counted.lo = Poly::of(m[0]);
                counted.hi = *ones + counted.lo;
                break;
            }
            folds.push_back(counted);
            core = number(1);
        }
    }
    if (folds.size() < 2) return std::nullopt;
    auto mentions_fold = [&](const Poly& p) {
        return std::any_of(folds.begin(), folds.end(), [&](const Fold& f) { return ints_.mentions(p, f.variable); });
    };
    // Box bounds and masks.
    std::vector<Condition> masks;
    std::vector<bool> open(folds.size(), false);  // no upper bound of its own: a mask ends it
    for (std::size_t f = 0; f < folds.size(); ++f) {
        auto ends = [&](const Poly& end, AtomInfo::Kind kind) {
            const Poly one = absorbed(end);
            if (one.terms.size() == 1 && one.terms.begin()->first.size() == 1 && one.terms.begin()->second == 1) {
                const AtomInfo& info = ints_.info(one.terms.begin()->first[0]);
                if (info.kind == kind) return info.args;
            }
            return std::vector<Poly>{end};
        };
        std::vector<Poly> above = ends(folds[f].hi, AtomInfo::Kind::minimum), below = ends(folds[f].lo, AtomInfo::Kind::maximum);
        std::vector<Poly> high, low;
        for (const Poly& p : above) {
            if (!mentions_fold(p)) high.push_back(p);
            else masks.push_back(end_as_mask(folds[f].variable, p, true));
        }
        for (const Poly& p : below) {
            if (!mentions_fold(p)) low.push_back(p);
            else masks.push_back(end_as_mask(folds[f].variable, p, false));
        }
        if (low.empty()) return std::nullopt;
        open[f] = high.empty();
        folds[f].lo = low.size() == 1 ? low[0] : ints_.maximum(low[0], low[1]);
        if (!high.empty()) folds[f].hi = high.size() == 1 ? high[0] : ints_.minimum(high[0], high[1]);
    }
    // The index: an element of the body that has several of the variables in it.
    std::vector<Poly> candidates;
    std::function<void(Value)> collect = [&](Value v) {
        const ValueNode& n = node(v);
        if (n.kind == Kind::element || n.kind == Kind::index) {
            for (const Poly& p : n.indices) {
                int digits = 0;
                for (const Fold& f : folds) digits += p.linear_in(f.variable).value_or(0) != 0;
                if (digits > 1 && std::find(candidates.begin(), candidates.end(), p) == candidates.end()) candidates.push_back(p);
            }
        }
        for (Value a : n.args) collect(a);
    };
    collect(core);
    for (const Condition& m : masks) {  // or the masks have it
        if (m.kind != Condition::Kind::at_least_zero) continue;
        Poly p;
        for (const Fold& f : folds) p = p - Poly(m.poly.linear_in(f.variable).value_or(0)) * Poly::of(f.variable);
        if (p.terms.size() > 1 && std::find(candidates.begin(), candidates.end(), p) == candidates.end()) candidates.push_back(p);
    }
    for (const Poly& index : candidates) {
        struct Digit {
            std::size_t fold;
            std::int64_t step;
        };
        std::vector<Digit> digits;
        Poly rest = index;
        bool linear = true;
        for (std::size_t f = 0; f < folds.size(); ++f) {
            const auto step = index.linear_in(folds[f].variable);
            if (!step) linear = false;
            if (!step || *step == 0) continue;
            digits.push_back({f, *step});
            rest = rest - Poly(*step) * Poly::of(folds[f].variable);
        }
        if (!linear || mentions_fold(rest)) continue;
        std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.step < b.step; });
        // Mixed radix: each step is the extent of all digits below it.
        std::int64_t expected = digits.front().step;
        if (expected != 1) continue;
        bool ok = true;
        Poly start = rest;
        for (std::size_t d = 0; d < digits.size() && ok; ++d) {
            const Fold& fold = folds[digits[d].fold];
            ok = digits[d].step == expected;
            start = start + Poly(digits[d].step) * fold.lo;
            if (d + 1 == digits.size()) break;  // the highest digit may have any extent
            const auto extent = (fold.hi - fold.lo).constant();
            ok = ok && !open[digits[d].fold] && extent && *extent > 0;
            if (ok) expected *= *extent;
        }
        for (std::size_t f = 0; f < folds.size(); ++f) {  // only the highest digit may be without an end
            if (open[f] && f != digits.back().fold) ok = false;
        }
        if (!ok) continue;
        // y in place of the lowest digit; the others must vanish.
        const Atom y = ints_.fresh("i");
        Poly unit = Poly::of(y) - rest;
        for (std::size_t d = 1; d < digits.size(); ++d) unit = unit - Poly(digits[d].step) * Poly::of(folds[digits[d].fold].variable);
        const std::map<Atom, Poly> with = {{folds[digits.front().fold].variable, unit}};
        const Value one = replace(core, with);
        auto vanished = [&](auto&& thing) {
            return std::none_of(digits.begin(), digits.end(), [&](const Digit& d) { return thing(folds[d.fold].variable); });
        };
        if (!vanished([&](Atom a) { return mentions(one, a); })) continue;
        Condition mask;
        for (const Condition& m : masks) mask = both(mask, ints_.replace(m, with));
        if (!vanished([&](Atom a) { return ints_.mentions(mask, a); })) continue;
        const Fold& top = folds[digits.back().fold];
        Poly end = start + Poly(digits.back().step) * (top.hi - top.lo);
        if (open[digits.back().fold]) {  // some mask must end it
            bool found = false;
            for (const Condition& m : mask.kind == Condition::Kind::all ? mask.parts : std::vector<Condition>{mask}) {
                if (m.kind != Condition::Kind::at_least_zero || m.poly.linear_in(y) != -1) continue;
                end = m.poly + Poly::of(y) + Poly(1);
                found = true;
            }
            if (!found) continue;
        }
        Value result = reduce(op, y, start, end, where(mask, one, number(identity(op))));
        for (std::size_t f = folds.size(); f-- > 0;) {  // folds that are no digits stay around it
            if (std::any_of(digits.begin(), digits.end(), [&](const Digit& d) { return d.fold == f; })) continue;
            result = reduce(op, folds[f].variable, folds[f].lo, folds[f].hi, result);
        }
        return result;
    }
    return std::nullopt;
}

// The sum of p over [lo, hi) where p is (a + x) // m, or (a - x) // m, for as many x as m, and what does not depend on x: each remainder
// stands once among the numerators, so the sum is a (Hermite's identity). It counts the elements of a row by the lanes that hold them.
std::optional<Poly> Values::sum_of_quotients(Atom x, const Poly& lo, const Poly& hi, const Poly& p) {
    const auto m = (hi - lo).constant();
    if (!m || *m < 1) return std::nullopt;
    Poly apart, beside;  // free of x; linear in x
    std::optional<std::pair<Atom, std::int64_t>> found;
    for (const auto& [atoms, c] : p.terms) {
        Poly term;
        term.terms[atoms] = c;
        if (!ints_.mentions(term, x)) {
            apart = apart + term;
        } else if (atoms.size() == 1 && atoms[0] == x) {
            beside = beside + term;
        } else if (atoms.size() == 1 && ints_.info(atoms[0]).kind == AtomInfo::Kind::quotient && ints_.info(atoms[0]).args[1] == Poly(*m) &&
                   (c == 1 || c == -1) && !found) {
            found = {atoms[0], c};
        } else {
            return std::nullopt;
        }
    }
    if (!found) return std::nullopt;
    const Poly numerator = ints_.info(found->first).args[0] + Poly(*m * found->second) * beside;
    const auto step = numerator.linear_in(x);
    if (!step || (*step != 1 && *step != -1)) return std::nullopt;
    const Poly a = numerator - Poly(*step) * Poly::of(x);
    if (ints_.mentions(a, x)) return std::nullopt;
    const Poly sum = *step == 1 ? a + lo : a - lo - Poly(*m - 1);
    return Poly(*m) * apart + Poly(found->second) * sum;
}

Value Values::reduce(const std::string& op, Atom x, Poly lo, Poly hi, Value body) {
    if (auto extent = (hi - lo).constant(); extent && *extent <= 0) return number(identity(op));
    const ValueNode& n = node(body);
    if (n.kind == Kind::where) {
        std::vector<Condition> inside, outside;
        auto sort_parts = [&](const Condition& c) {
            inside.clear();
            outside.clear();
            for (const Condition& p : c.kind == Condition::Kind::all ? c.parts : std::vector<Condition>{c}) {
                (ints_.mentions(p, x) ? inside : outside).push_back(p);
            }
        };
        auto clip = [&](const std::vector<Condition>& parts, Poly& a, Poly& b) {
            for (const Condition& p : parts) {
                auto k = p.poly.linear_in(x);
                if (p.kind != Condition::Kind::at_least_zero || !k || *k == 0) return false;
                const Poly rest = p.poly - Poly(*k) * Poly::of(x);
                if (ints_.mentions(rest, x)) return false;
                // k x + rest >= 0: x >= -(rest // k) for k > 0, x <= rest // -k for k < 0.
                if (*k > 0) a = simplified(ints_.maximum(a, Poly(-1) * ints_.quotient(rest, Poly(*k))));
                else b = simplified(ints_.minimum(b, ints_.quotient(rest, Poly(-*k)) + Poly(1)));
            }
            return true;
        };
        auto gather = [&](const std::vector<Condition>& list) {
            Condition c;
            for (const Condition& p : list) c = both(c, p);
            return c;
        };
        const Value id = number(identity(op));
        for (int side = 0; side < 2; ++side) {  // a mask whose other side is the identity clips the range
            const Condition c = side == 0 ? n.condition : negated(n.condition);
            const Value kept = n.args[static_cast<std::size_t>(side)], dropped = n.args[static_cast<std::size_t>(1 - side)];
            if (dropped != id) continue;
            sort_parts(c);
            Poly a = lo, b = hi;
            if (!clip(inside, a, b)) continue;
            return where(gather(outside), reduce(op, x, a, b, kept), id);
        }
        sort_parts(n.condition);
        if (!inside.empty() && !outside.empty()) {  // the part that does not depend on the variable comes out
            const Condition out = gather(outside), in = gather(inside);
            return where(out, reduce(op, x, lo, hi, where(in, n.args[0], n.args[1])), reduce(op, x, lo, hi, n.args[1]));
        }
        if (inside.empty()) return where(n.condition, reduce(op, x, lo, hi, n.args[0]), reduce(op, x, lo, hi, n.args[1]));
        if (n.condition.kind == Condition::Kind::at_least_zero && (op == "sum" || op == "max" || op == "min")) {
            // Two ranges, one after the other.
            Poly a1 = lo, b1 = hi, a2 = lo, b2 = hi;
            if (clip({n.condition}, a1, b1) && clip({negated(n.condition)}, a2, b2)) {
                if (prover_.holds(at_least(a2, b2))) return reduce(op, x, a1, b1, n.args[0]);
                if (prover_.holds(at_least(a1, b1))) return reduce(op, x, a2, b2, n.args[1]);
                const Value first = reduce(op, x, a1, b1, n.args[0]), second = reduce(op, x, a2, b2, n.args[1]);
                return op == "sum" ? add(first, second) : extreme(op, {first, second});
            }
        }
    }
    if (op == "sum") {
        if (!mentions(body, x)) {  // hi - lo equal terms
            const Poly count = simplified(ints_.maximum(hi - lo, Poly(0)));
            return product({{index(count), 1}, {body, 1}});
        }
        if (n.kind == Kind::index) {
            if (const auto counted = sum_of_quotients(x, lo, hi, n.indices[0])) return index(*counted);
        }
        if (n.kind == Kind::sum) {
            std::vector<std::pair<Coefficient, Value>> parts;
            for (std::size_t i = 0; i < n.args.size(); ++i) parts.emplace_back(n.weights[i], reduce(op, x, lo, hi, n.args[i]));
            if (n.number != 0) parts.emplace_back(1.0, reduce(op, x, lo, hi, number(n.number)));
            return sum(0, std::move(parts));
        }
        if (n.kind == Kind::product) {
            std::vector<std::pair<Value, Coefficient>> outside, inside;
            for (std::size_t i = 0; i < n.args.size(); ++i)
                (mentions(n.args[i], x) ? inside : outside).emplace_back(n.args[i], n.weights[i]);
            if (!outside.empty()) {
                const Value folded = reduce(op, x, lo, hi, product(inside));
                outside.emplace_back(folded, 1);
                return product(std::move(outside));
            }
        }
    }
    if (op == "max" || op == "min") {
        if (!mentions(body, x)) {
            if (prover_.holds(less(lo, hi))) return body;
        } else if (n.kind == Kind::extreme && n.name == op &&
                   std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return !mentions(a, x); }) && prover_.holds(less(lo, hi))) {
            std::vector<Value> outside, inside;
            for (Value a : n.args) (mentions(a, x) ? inside : outside).push_back(a);
            outside.push_back(reduce(op, x, lo, hi, extreme(op, std::move(inside))));
            return extreme(op, std::move(outside));
        } else if (n.kind == Kind::sum) {
            std::vector<std::pair<Coefficient, Value>> outside, inside;
            for (std::size_t i = 0; i < n.args.size(); ++i)
                (mentions(n.args[i], x) ? inside : outside).emplace_back(n.weights[i], n.args[i]);
            if (inside.size() == 1 && inside[0].first.positive() && (!(inside[0].first == 1) || !outside.empty() || !n.number.zero())) {
                outside.emplace_back(inside[0].first, reduce(op, x, lo, hi, inside[0].second));
                return sum(n.number, std::move(outside));
            }
        }
    }
    // The variable becomes the index it stands for: shift by what stands beside it in an element. Operands come in any order, so the
    // element is that of the first tensor and dimension which have it; an offset of 0 among those stays.
    struct Beside {
        int tensor;
        std::size_t dimension;
        Poly offset;
        bool before(const Beside& o) const {
            if (tensor != o.tensor || dimension != o.dimension) return std::tie(tensor, dimension) < std::tie(o.tensor, o.dimension);
            return !o.offset.terms.empty() && (offset.terms.empty() || offset < o.offset);
        }
    };
    std::optional<Beside> beside;
    std::vector<Atom> inner;  // bound further in: never shift by those
    std::set<Value> seen;
    std::function<void(Value)> look = [&](Value v) {
        if (!mentions(v, x) || !seen.insert(v).second) return;
        const ValueNode& m = node(v);
        for (std::size_t d = 0; d < m.indices.size(); ++d) {
            if (m.indices[d].linear_in(x) != 1) continue;
            Beside here{m.kind == Kind::element ? m.id : std::numeric_limits<int>::max(), d, m.indices[d] - Poly::of(x)};
            if (ints_.mentions(here.offset, x) ||
                std::any_of(inner.begin(), inner.end(), [&](Atom a) { return ints_.mentions(here.offset, a); }))
                continue;
            if (!beside || here.before(*beside)) beside = std::move(here);
        }
        if (m.kind == Kind::reduce) inner.push_back(m.variable);
        for (Value a : m.args) look(a);
        if (m.kind == Kind::reduce) inner.pop_back();
    };
    look(body);
    if (beside && !beside->offset.terms.empty()) {
        const Poly& offset = beside->offset;
        const Atom y = ints_.fresh("i");
        const Value shifted = replace(body, {{x, Poly::of(y) - offset}});
        return reduce(op, y, lo + offset, hi + offset, shifted);
    }
    // Two digits of one index: sum_u sum_v f(u * n + v), v < n, is one sum.
    if (n.kind == Kind::reduce && n.name == op) {
        const ValueNode& inner = n;
        // Inner range [c + x*w, c + x*w + w), perhaps cut off at ends that do not move with x, with the body free of x
        // otherwise: consecutive x tile a longer range. The width w may be symbolic, if it is never negative.
        using End = std::pair<Poly, std::optional<Poly>>;  // what moves, and where it is cut off
        auto tiled = [&](const End& first, const End& end) -> std::optional<Value> {
            const Poly width = end.first - first.first;
            if (ints_.mentions(width, x) || mentions(inner.args[0], x)) return std::nullopt;
            const Poly base = first.first - width * Poly::of(x);
            if (ints_.mentions(base, x) || (first.second && ints_.mentions(*first.second, x)) ||
                (end.second && ints_.mentions(*end.second, x)))
                return std::nullopt;
            if (!(width.constant() ? *width.constant() > 0 : prover_.holds(at_least(width, Poly(0))))) return std::nullopt;
            const Atom y = ints_.fresh("i");
            Poly near = base + width * lo, far = base + width * hi;
            if (first.second) near = ints_.maximum(near, *first.second);
            if (end.second) far = ints_.minimum(far, *end.second);
            return reduce(op, y, near, far, replace(inner.args[0], {{inner.variable, Poly::of(y)}}));
        };
        auto ways = [&](const Poly& end, AtomInfo::Kind kind) {
            std::vector<End> list = {{end, std::nullopt}};
            if (end.terms.size() != 1 || end.terms.begin()->first.size() != 1 || end.terms.begin()->second != 1) return list;
            const AtomInfo info = ints_.info(end.terms.begin()->first[0]);
            for (std::size_t i = 0; info.kind == kind && i < info.args.size(); ++i) {
                std::optional<Poly> cut;
                for (std::size_t j = 0; j < info.args.size(); ++j) {
                    if (j != i)
                        cut = !cut                              ? info.args[j]
                              : kind == AtomInfo::Kind::minimum ? ints_.minimum(*cut, info.args[j])
                                                                : ints_.maximum(*cut, info.args[j]);
                }
                list.emplace_back(info.args[i], cut);
            }
            return list;
        };
        const auto ends = ways(inner.hi, AtomInfo::Kind::minimum);
        for (const End& first : ways(inner.lo, AtomInfo::Kind::maximum)) {
            for (const End& end : ends) {
                if (auto whole = tiled(first, end)) return *whole;
            }
        }
        // The digit may stand further in: exchange the two folds when that lets it join.
        if (!ints_.mentions(inner.lo, x) && !ints_.mentions(inner.hi, x) && node(inner.args[0]).kind == Kind::reduce) {
            const Atom y = ints_.fresh("i");
            const Value further = replace(inner.args[0], {{inner.variable, Poly::of(y)}});
            if (node(further).kind == Kind::reduce && node(further).name == op) {
                const Value joined = reduce(op, x, lo, hi, further);
                if (node(joined).height == node(further).height) return reduce(op, y, inner.lo, inner.hi, joined);
            }
        }
    }
    if (opening_ == 0 && ((n.kind == Kind::reduce && n.name == op) || (op == "sum" && n.kind == Kind::index && count_of(n.indices[0])))) {
        if (auto joined = joined_digits(op, x, lo, hi, body)) return *joined;
    }
    ValueNode r;
    r.kind = Kind::reduce;
    r.name = op;
    r.lo = absorbed(simplified(absorbed(lo)));
    r.hi = absorbed(simplified(absorbed(hi)));
    // Named by depth, so that equal folds are equal; never as something that is free in it.
    Atom bound = ints_.symbol("#" + std::to_string(node(body).height));
    for (int more = 1; ints_.mentions(r.lo, bound) || ints_.mentions(r.hi, bound) || (bound != x && mentions(body, bound)); ++more) {
        bound = ints_.symbol("#" + std::to_string(node(body).height + more));
    }
    r.args = {bound == x ? body : replace(body, {{x, Poly::of(bound)}})};
    r.variable = bound;
    return intern(std::move(r));
}

}  // namespace tw::verify
