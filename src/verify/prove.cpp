#include "verify/prove.h"

#include <algorithm>

namespace tw::verify {

void Prover::assume(const Condition& c) {
    if (c.is_yes()) return;
    if (c.kind == Condition::Kind::all) {
        for (const Condition& p : c.parts) assume(p);
        return;
    }
    facts_.push_back(c);
}

bool Prover::yes(const char* who) {
    last_ = who;
    ++counts_.answered[who];
    return true;
}

bool Prover::holds_given(const Condition& extra, const Condition& goal) {
    push();
    assume(extra);
    const bool result = holds(goal);
    pop();
    return result;
}

bool Prover::contradictory() {
    Condition no;
    no.kind = Condition::Kind::no;
    return by_z3(no);
}

bool Prover::holds(const Condition& goal) {
    switch (goal.kind) {
        case Condition::Kind::yes: return yes("affine");
        case Condition::Kind::no: return by_z3(goal);
        case Condition::Kind::all:
            for (const Condition& p : goal.parts) {
                if (!holds(p)) return false;
            }
            return true;
        case Condition::Kind::any:
            for (const Condition& p : goal.parts) {
                if (p.kind != Condition::Kind::any && p.kind != Condition::Kind::all && std::find(facts_.begin(), facts_.end(), p) != facts_.end()) return yes("affine");
            }
            return by_z3(goal);
        default: return leaf(goal);
    }
}

bool Prover::leaf(const Condition& goal) {
    if (std::find(facts_.begin(), facts_.end(), goal) != facts_.end()) return yes("affine");
    if (goal.kind == Condition::Kind::at_least_zero) {
        if (by_facts(goal.poly)) return yes("affine");
        if (by_bounds(goal.poly)) return yes("bounds");
    }
    if (goal.kind == Condition::Kind::nonzero) {
        if (by_bounds(goal.poly - Poly(1)) || by_bounds(Poly(-1) * goal.poly - Poly(1))) return yes("bounds");
    }
    return by_z3(goal);
}

bool Prover::by_facts(const Poly& p) {
    std::vector<const Poly*> known;
    for (const Condition& f : facts_) {
        if (f.kind == Condition::Kind::at_least_zero) {
            const Poly difference = p - f.poly;
            if (auto c = difference.constant(); c && *c >= 0) return true;
            known.push_back(&f.poly);
        }
        if (f.kind == Condition::Kind::zero) {
            for (const Poly& d : {p - f.poly, p + f.poly}) {
                if (auto c = d.constant(); c && *c >= 0) return true;
            }
        }
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
        const Poly rest = p - *known[i];
        for (std::size_t j = i + 1; j < known.size(); ++j) {
            if (auto c = (rest - *known[j]).constant(); c && *c >= 0) return true;
        }
        if (by_bounds(rest)) return true;
    }
    return false;
}

std::optional<std::int64_t> Prover::lower_bound(Atom a) {
    std::optional<std::int64_t> best = ints_.info(a).lower;
    for (const Condition& f : facts_) {   // a + c >= 0
        if (f.kind == Condition::Kind::at_least_zero && f.poly.linear_in(a) == 1) {
            if (auto c = (f.poly - Poly::of(a)).constant()) best = std::max(best.value_or(-*c), -*c);
        }
    }
    return best;
}

std::optional<std::int64_t> Prover::upper_bound(Atom a) {
    std::optional<std::int64_t> best = ints_.info(a).upper;
    for (const Condition& f : facts_) {   // c - a >= 0
        if (f.kind == Condition::Kind::at_least_zero && f.poly.linear_in(a) == -1) {
            if (auto c = (f.poly + Poly::of(a)).constant()) best = std::min(best.value_or(*c), *c);
        }
    }
    return best;
}

// Sum of lower bounds of the monomials; products only of non-negative atoms.
bool Prover::by_bounds(const Poly& p) {
    std::int64_t sum = 0;
    for (const auto& [m, k] : p.terms) {
        if (m.empty()) {
            sum += k;
            continue;
        }
        std::int64_t lo = 1;
        std::optional<std::int64_t> hi = 1;
        for (Atom a : m) {
            auto l = lower_bound(a);
            auto u = upper_bound(a);
            if (m.size() > 1) {
                if (!l || *l < 0) return false;
                if (__builtin_mul_overflow(lo, *l, &lo)) return false;
                if (hi && u) hi = *hi * *u;
                else hi.reset();
            } else {
                if (k > 0 && !l) return false;
                if (k < 0 && !u) return false;
                lo = l.value_or(0);
                hi = u;
            }
        }
        if (k < 0 && !hi) return false;
        sum += k * (k > 0 ? lo : *hi);
    }
    return sum >= 0;
}

bool Prover::by_z3(const Condition& goal) {
    if (!use_z3) {
        ++counts_.refused;
        return false;
    }
    std::string key = ints_.text(goal);
    for (const Condition& f : facts_) key += ";" + ints_.text(f);
    auto found = z3_cache_.find(key);
    if (found == z3_cache_.end()) {
        double ms = 0;
        const bool answer = z3_implies(ints_, facts_, goal, ms);
        counts_.z3_milliseconds += ms;
        found = z3_cache_.emplace(std::move(key), answer).first;
    }
    if (found->second) return yes("z3");
    ++counts_.refused;
    return false;
}

}  // namespace tw::verify
