// Tags: nests of folds that run through one index.
#include <numeric>

#include "verify/value_keys.h"

namespace tw::verify {

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
class Values::FoldNest {
public:
    FoldNest(Values& values, const Fold& outermost);
    std::optional<Value> joined();

private:
    struct Level {
        Atom variable;
        Poly lo, hi;
        bool open = false;  // no upper bound of its own: a mask ends it
    };
    struct Digit {
        std::size_t level;
        std::int64_t step;
    };
    struct Digits {
        std::vector<Digit> list;  // the lowest first
        Poly rest;                // of the index beside them
        Poly start;               // the index where every digit is at its start
    };
    void count_as_ones();
    bool bounds_to_masks();
    std::vector<Poly> indices() const;
    std::optional<Digits> digits_of(const Poly& index) const;
    std::optional<Value> over(const Digits& digits);
    bool mentions_variable(const Poly& p) const {
        return std::any_of(levels_.begin(), levels_.end(), [&](const Level& f) { return ints_.mentions(p, f.variable); });
    }
    Atom variable(const Digit& d) const { return levels_[d.level].variable; }

    Values& values_;
    Integers& ints_ = values_.ints_;
    const std::string& op_;
    std::vector<Level> levels_;  // outermost first
    Value core_;                 // the body of the innermost
    std::vector<Condition> masks_;
};

Values::FoldNest::FoldNest(Values& values, const Fold& outermost)
    : values_(values), op_(outermost.op), levels_{{outermost.variable, outermost.lo, outermost.hi}}, core_(outermost.body) {
    while (values_.node(core_).kind == Kind::reduce && values_.node(core_).name == op_ && levels_.size() < 5) {
        const ValueNode& n = values_.node(core_);
        const Atom y = ints_.fresh("i");
        levels_.push_back({y, n.lo, n.hi});
        ++values_.opening_;  // it is in normal form already
        core_ = values_.replace(n.args[0], {{n.variable, Poly::of(y)}});
        --values_.opening_;
    }
    if (op_ == "sum" && values_.node(core_).kind == Kind::index) count_as_ones();
}

// A count that depends on the variables is a fold of ones: max(0, p) ones, or p where that is never negative.
void Values::FoldNest::count_as_ones() {
    const Poly& count = values_.node(core_).indices[0];
    auto ones = values_.count_of(count);
    const bool divided = std::any_of(count.terms.begin(), count.terms.end(), [&](const auto& term) {
        return term.second == 1 && term.first.size() == 1 && ints_.info(term.first[0]).kind == AtomInfo::Kind::quotient;
    });
    if (!ones && divided) {
        Prover& prover = values_.prover_;
        prover.push();
        for (const Level& f : levels_) prover.assume(both(at_least(Poly::of(f.variable), f.lo), less(Poly::of(f.variable), f.hi)));
        if (prover.holds(at_least(count, Poly(0)))) ones = count;
        prover.pop();
    }
    if (!ones) return;
    Level counted{ints_.fresh("i"), Poly(0), *ones};
    for (const auto& [m, c] : ones->terms) {  // end - max(...): a range that is cut off below too
        if (c != -1 || m.size() != 1 || ints_.info(m[0]).kind != AtomInfo::Kind::maximum) continue;
        counted.lo = Poly::of(m[0]);
        counted.hi = *ones + counted.lo;
        break;
    }
    levels_.push_back(counted);
    core_ = values_.number(1);
}

// Bounds that hang on other variables of the nest become masks; the others are a box. False: a variable has no lower bound of its own.
bool Values::FoldNest::bounds_to_masks() {
    auto ends = [&](const Poly& end, AtomInfo::Kind kind) {
        const Poly one = values_.absorbed(end);
        if (one.terms.size() == 1 && one.terms.begin()->first.size() == 1 && one.terms.begin()->second == 1) {
            const AtomInfo& info = ints_.info(one.terms.begin()->first[0]);
            if (info.kind == kind) return info.args;
        }
        return std::vector<Poly>{end};
    };
    for (Level& f : levels_) {
        const std::vector<Poly> above = ends(f.hi, AtomInfo::Kind::minimum), below = ends(f.lo, AtomInfo::Kind::maximum);
        std::vector<Poly> high, low;
        for (const Poly& p : above) {
            if (!mentions_variable(p)) high.push_back(p);
            else masks_.push_back(values_.end_as_mask(f.variable, p, true));
        }
        for (const Poly& p : below) {
            if (!mentions_variable(p)) low.push_back(p);
            else masks_.push_back(values_.end_as_mask(f.variable, p, false));
        }
        if (low.empty()) return false;
        f.open = high.empty();
        f.lo = low.size() == 1 ? low[0] : ints_.maximum(low[0], low[1]);
        if (!high.empty()) f.hi = high.size() == 1 ? high[0] : ints_.minimum(high[0], high[1]);
    }
    return true;
}

// Indices of elements of the body that have several of the variables in them; or the masks have one.
std::vector<Poly> Values::FoldNest::indices() const {
    std::vector<Poly> candidates;
    auto add = [&](const Poly& p) {
        if (std::find(candidates.begin(), candidates.end(), p) == candidates.end()) candidates.push_back(p);
    };
    std::function<void(Value)> collect = [&](Value v) {
        const ValueNode& n = values_.node(v);
        if (n.kind == Kind::element || n.kind == Kind::index) {
            for (const Poly& p : n.indices) {
                int digits = 0;
                std::int64_t unit = 0;  // of rows that lie so far apart: their number is the index
                for (const Level& f : levels_) {
                    const std::int64_t step = p.linear_in(f.variable).value_or(0);
                    digits += step != 0;
                    unit = std::gcd(unit, step);
                }
                if (digits > 1) add(p);
                if (digits < 2 || unit == 1) continue;
                Poly row;
                for (const Level& f : levels_) row = row + Poly(p.linear_in(f.variable).value_or(0) / unit) * Poly::of(f.variable);
                add(row);
            }
        }
        for (Value a : n.args) collect(a);
    };
    collect(core_);
    for (const Condition& m : masks_) {
        if (m.kind != Condition::Kind::at_least_zero) continue;
        Poly p;
        for (const Level& f : levels_) p = p - Poly(m.poly.linear_in(f.variable).value_or(0)) * Poly::of(f.variable);
        if (p.terms.size() > 1) add(p);
    }
    return candidates;
}

// The variables as digits of an index in a mixed radix: each step is the extent of all digits below it.
std::optional<Values::FoldNest::Digits> Values::FoldNest::digits_of(const Poly& index) const {
    Digits digits{{}, index, {}};
    for (std::size_t f = 0; f < levels_.size(); ++f) {
        const auto step = index.linear_in(levels_[f].variable);
        if (!step) return std::nullopt;
        if (*step == 0) continue;
        digits.list.push_back({f, *step});
        digits.rest = digits.rest - Poly(*step) * Poly::of(levels_[f].variable);
    }
    if (mentions_variable(digits.rest)) return std::nullopt;
    std::sort(digits.list.begin(), digits.list.end(), [](const Digit& a, const Digit& b) { return a.step < b.step; });
    std::int64_t expected = 1;
    digits.start = digits.rest;
    const std::size_t highest = digits.list.back().level;
    for (const Digit& d : digits.list) {
        const Level& f = levels_[d.level];
        if (d.step != expected) return std::nullopt;
        digits.start = digits.start + Poly(d.step) * f.lo;
        if (d.level == highest) break;  // it may have any extent
        const auto extent = (f.hi - f.lo).constant();
        if (f.open || !extent || *extent <= 0) return std::nullopt;
        expected *= *extent;
    }
    for (std::size_t f = 0; f < levels_.size(); ++f) {  // only the highest digit may be without an end
        if (levels_[f].open && f != highest) return std::nullopt;
    }
    return digits;
}

// One fold over y in place of the lowest digit; the others must vanish.
std::optional<Value> Values::FoldNest::over(const Digits& digits) {
    const std::vector<Digit>& list = digits.list;
    const Atom y = ints_.fresh("i");
    Poly unit = Poly::of(y) - digits.rest;
    for (std::size_t d = 1; d < list.size(); ++d) unit = unit - Poly(list[d].step) * Poly::of(variable(list[d]));
    const std::map<Atom, Poly> with = {{variable(list.front()), unit}};
    const Value one = values_.replace(core_, with);
    auto vanished = [&](auto&& mentioned) {
        return std::none_of(list.begin(), list.end(), [&](const Digit& d) { return mentioned(variable(d)); });
    };
    if (!vanished([&](Atom a) { return values_.mentions(one, a); })) return std::nullopt;
    Condition mask;
    for (const Condition& m : masks_) mask = both(mask, ints_.replace(m, with));
    if (!vanished([&](Atom a) { return ints_.mentions(mask, a); })) return std::nullopt;
    const Level& top = levels_[list.back().level];
    Poly end = digits.start + Poly(list.back().step) * (top.hi - top.lo);
    if (top.open) {  // some mask must end it
        bool found = false;
        for (const Condition& m : mask.kind == Condition::Kind::all ? mask.parts : std::vector<Condition>{mask}) {
            if (m.kind != Condition::Kind::at_least_zero || m.poly.linear_in(y) != -1) continue;
            end = m.poly + Poly::of(y) + Poly(1);
            found = true;
        }
        if (!found) return std::nullopt;
    }
    Value result = values_.reduce(op_, y, digits.start, end, values_.where(mask, one, values_.number(identity(op_))));
    for (std::size_t f = levels_.size(); f-- > 0;) {  // folds that are no digits stay around it
        if (std::any_of(list.begin(), list.end(), [&](const Digit& d) { return d.level == f; })) continue;
        result = values_.reduce(op_, levels_[f].variable, levels_[f].lo, levels_[f].hi, result);
    }
    return result;
}

std::optional<Value> Values::FoldNest::joined() {
    if (levels_.size() < 2 || !bounds_to_masks()) return std::nullopt;
    for (const Poly& index : indices()) {
        const auto digits = digits_of(index);
        if (!digits) continue;
        if (const auto whole = over(*digits)) return whole;
    }
    return std::nullopt;
}

std::optional<Value> Values::joined_digits(const Fold& fold) {
    if (fold.op != "sum" && fold.op != "max" && fold.op != "min" && fold.op != "prod") return std::nullopt;
    return FoldNest(*this, fold).joined();
}

}  // namespace tw::verify
