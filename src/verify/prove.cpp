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

// Bounds that an atom has by its make alone, whatever the facts.
Prover::Range Prover::range_of(Atom a) const {
    const AtomInfo& i = ints_.info(a);
    Range r{i.lower, i.upper};
    auto at_least_of = [](std::optional<std::int64_t> x, std::optional<std::int64_t> y) { return x && y ? std::optional(std::min(*x, *y)) : std::nullopt; };
    auto at_most_of = [](std::optional<std::int64_t> x, std::optional<std::int64_t> y) { return x && y ? std::optional(std::max(*x, *y)) : std::nullopt; };
    auto tighter = [](std::optional<std::int64_t> x, std::optional<std::int64_t> y, bool least) {
        if (!x || !y) return x ? x : y;
        return std::optional(least ? std::min(*x, *y) : std::max(*x, *y));
    };
    switch (i.kind) {
        case AtomInfo::Kind::quotient: {
            const auto d = i.args[1].constant();
            if (!d || *d <= 0) break;
            const Range n = range_of(i.args[0]);
            if (n.low) r.low = ir::floor_div(*n.low, *d);
            if (n.high) r.high = ir::floor_div(*n.high, *d);
            break;
        }
        case AtomInfo::Kind::minimum: {
            const Range x = range_of(i.args[0]), y = range_of(i.args[1]);
            r = {at_least_of(x.low, y.low), tighter(x.high, y.high, true)};
            break;
        }
        case AtomInfo::Kind::maximum: {
            const Range x = range_of(i.args[0]), y = range_of(i.args[1]);
            r = {tighter(x.low, y.low, false), at_most_of(x.high, y.high)};
            break;
        }
        case AtomInfo::Kind::choice: {
            const Range x = range_of(i.args[0]), y = range_of(i.args[1]);
            r = {at_least_of(x.low, y.low), at_most_of(x.high, y.high)};
            break;
        }
        default: break;
    }
    return r;
}

Prover::Range Prover::range_of(const Poly& p) const {
    std::optional<std::int64_t> low = 0, high = 0;
    auto add = [](std::optional<std::int64_t>& sum, std::optional<std::int64_t> x, std::int64_t k) {
        std::int64_t part = 0, total = 0;
        if (!sum || !x || __builtin_mul_overflow(*x, k, &part) || __builtin_add_overflow(*sum, part, &total)) sum.reset();
        else sum = total;
    };
    for (const auto& [m, k] : p.terms) {
        Range product{1, 1};
        for (Atom a : m) {
            const Range r = range_of(a);
            if (m.size() > 1 && (!r.low || *r.low < 0)) return {};
            std::int64_t v = 0;
            product.low = product.low && r.low && !__builtin_mul_overflow(*product.low, *r.low, &v) ? std::optional(v) : std::nullopt;
            product.high = product.high && r.high && !__builtin_mul_overflow(*product.high, *r.high, &v) ? std::optional(v) : std::nullopt;
        }
        add(low, k > 0 ? product.low : product.high, k);
        add(high, k > 0 ? product.high : product.low, k);
    }
    return {low, high};
}

std::optional<std::int64_t> Prover::quotient_value(const Poly& numerator, std::int64_t divisor) {
    const auto low = lowest(numerator, 2), high = lowest(Poly(-1) * numerator, 2);
    if (!low || !high || ir::floor_div(*low, divisor) != ir::floor_div(-*high, divisor)) return std::nullopt;
    return ir::floor_div(*low, divisor);
}

std::optional<std::int64_t> Prover::lower_bound(Atom a, int depth) {
    std::optional<std::int64_t> best = range_of(a).low;
    for (const Condition& f : facts_) {   // a + rest >= 0: a >= -rest
        if (f.kind != Condition::Kind::at_least_zero || f.poly.linear_in(a) != 1) continue;
        const Poly rest = f.poly - Poly::of(a);
        if (ints_.mentions(rest, a)) continue;
        if (auto low = lowest(Poly(-1) * rest, depth)) best = std::max(best.value_or(*low), *low);
    }
    return best;
}

std::optional<std::int64_t> Prover::upper_bound(Atom a, int depth) {
    std::optional<std::int64_t> best = range_of(a).high;
    for (const Condition& f : facts_) {   // rest - a >= 0: a <= rest
        if (f.kind != Condition::Kind::at_least_zero || f.poly.linear_in(a) != -1) continue;
        const Poly rest = f.poly + Poly::of(a);
        if (ints_.mentions(rest, a)) continue;
        if (auto low = lowest(Poly(-1) * rest, depth)) best = std::min(best.value_or(-*low), -*low);
    }
    return best;
}

// A lower bound: the sum of lower bounds of the monomials; products only of non-negative atoms.
std::optional<std::int64_t> Prover::lowest(const Poly& p, int depth) {
    if (auto c = p.constant()) return c;
    if (depth <= 0) return std::nullopt;
    std::int64_t sum = 0;
    for (const auto& [m, k] : p.terms) {
        std::int64_t low = 1, high = 1;
        bool has_low = true, has_high = true;
        for (Atom a : m) {
            const auto l = lower_bound(a, depth - 1), u = upper_bound(a, depth - 1);
            if (m.size() > 1 && (!l || *l < 0)) return std::nullopt;
            has_low = has_low && l && !__builtin_mul_overflow(low, l.value_or(0), &low);
            has_high = has_high && u && !__builtin_mul_overflow(high, u.value_or(0), &high);
        }
        if (k > 0 ? !has_low : !has_high) return std::nullopt;
        std::int64_t part = 0;
        if (__builtin_mul_overflow(k, m.empty() ? 1 : k > 0 ? low : high, &part) || __builtin_add_overflow(sum, part, &sum)) return std::nullopt;
    }
    return sum;
}

bool Prover::by_bounds(const Poly& p) {
    const auto low = lowest(p, 2);
    return low && *low >= 0;
}

std::optional<std::int64_t> Prover::value(const Poly& p, std::map<Atom, std::int64_t>& env) {
    std::int64_t sum = 0;
    for (const auto& [m, k] : p.terms) {
        std::int64_t product = k;
        for (Atom a : m) {
            auto it = env.find(a);
            if (it == env.end()) {
                const AtomInfo& i = ints_.info(a);
                std::optional<std::int64_t> v;
                switch (i.kind) {
                    case AtomInfo::Kind::quotient: {
                        auto n = value(i.args[0], env), d = value(i.args[1], env);
                        if (n && d && *d != 0) v = ir::floor_div(*n, *d);
                        break;
                    }
                    case AtomInfo::Kind::minimum:
                    case AtomInfo::Kind::maximum: {
                        auto x = value(i.args[0], env), y = value(i.args[1], env);
                        if (x && y) v = i.kind == AtomInfo::Kind::minimum ? std::min(*x, *y) : std::max(*x, *y);
                        break;
                    }
                    case AtomInfo::Kind::choice: {
                        auto c = truth(i.condition, env);
                        if (c) v = value(i.args[*c ? 0 : 1], env);
                        break;
                    }
                    default: break;
                }
                if (!v) return std::nullopt;
                it = env.emplace(a, *v).first;
            }
            if (__builtin_mul_overflow(product, it->second, &product)) return std::nullopt;
        }
        if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    return sum;
}

std::optional<bool> Prover::truth(const Condition& c, std::map<Atom, std::int64_t>& env) {
    switch (c.kind) {
        case Condition::Kind::yes: return true;
        case Condition::Kind::no: return false;
        case Condition::Kind::all:
        case Condition::Kind::any: {
            const bool all = c.kind == Condition::Kind::all;
            for (const Condition& p : c.parts) {
                auto t = truth(p, env);
                if (!t) return std::nullopt;
                if (*t != all) return !all;
            }
            return all;
        }
        default: {
            auto v = value(c.poly, env);
            if (!v) return std::nullopt;
            return c.kind == Condition::Kind::at_least_zero ? *v >= 0 : c.kind == Condition::Kind::zero ? *v == 0 : *v != 0;
        }
    }
}

// Does the assignment satisfy the facts and break the goal?
bool Prover::refuted_by(const std::vector<Condition>& facts, const Condition& goal, Assignment env) {
    for (const Condition& f : facts) {
        const auto t = truth(f, env);
        if (!t || !*t) return false;
    }
    const auto t = truth(goal, env);
    return t && !*t;
}

bool Prover::refuted_by_sample(const std::vector<Condition>& facts, const Condition& goal) {
    std::vector<Atom> all;
    ints_.collect(goal, all);
    for (const Condition& f : facts) ints_.collect(f, all);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<Atom> symbols;
    for (Atom a : all) {
        const auto kind = ints_.info(a).kind;
        if (kind == AtomInfo::Kind::symbol || kind == AtomInfo::Kind::element || kind == AtomInfo::Kind::opaque) symbols.push_back(a);
    }
    for (std::size_t i = 0; i < models_.size(); ++i) {
        Assignment env = models_[i];
        for (Atom a : symbols) env.emplace(a, ints_.info(a).lower.value_or(0));
        if (!refuted_by(facts, goal, std::move(env))) continue;
        std::rotate(models_.begin(), models_.begin() + static_cast<std::ptrdiff_t>(i), models_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return true;
    }
    static constexpr std::int64_t common[] = {0, 1, 2, 3, 8, 64, 65, 128, 130, 192, 256, 1000, 1024, 1025, 2048, 5000};
    std::uint64_t state = 88172645463325252ull;   // fixed: answers are reproducible
    auto next = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    };
    for (int round = 0; round < 400; ++round) {
        Assignment env;
        for (Atom a : symbols) {
            const AtomInfo& i = ints_.info(a);
            std::int64_t v;
            if (i.lower && i.upper) v = *i.lower + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(*i.upper - *i.lower + 1));
            else if (next() % 2) v = i.lower.value_or(0) + static_cast<std::int64_t>(next() % 4);
            else v = std::max(i.lower.value_or(0), common[next() % std::size(common)]);
            env[a] = v;
        }
        if (refuted_by(facts, goal, std::move(env))) return true;
    }
    return false;
}

// Leaving facts out is always sound. What shares no symbol with the goal, even through other facts, cannot help; products of
// symbols (the number of tiles of a raster) only help a goal that has products itself, and make everything slow.
std::vector<Condition> Prover::relevant_facts(const Condition& goal) const {
    std::function<bool(const Condition&)> has_product = [&](const Condition& c) {
        for (const auto& [m, k] : c.poly.terms) {
            if (m.size() > 1) return true;
        }
        return std::any_of(c.parts.begin(), c.parts.end(), has_product);
    };
    const bool products = has_product(goal);
    std::vector<Atom> reached;
    ints_.collect(goal, reached);
    std::sort(reached.begin(), reached.end());
    std::vector<Condition> chosen;
    std::vector<char> taken(facts_.size(), 0);
    for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = 0; i < facts_.size(); ++i) {
            if (taken[i] || (!products && has_product(facts_[i]))) continue;
            std::vector<Atom> mine;
            ints_.collect(facts_[i], mine);
            if (!reached.empty() && std::none_of(mine.begin(), mine.end(), [&](Atom a) { return std::binary_search(reached.begin(), reached.end(), a); })) continue;
            taken[i] = 1;
            grew = true;
            chosen.push_back(facts_[i]);
            reached.insert(reached.end(), mine.begin(), mine.end());
            std::sort(reached.begin(), reached.end());
        }
    }
    return chosen;
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
        const std::vector<Condition> relevant = relevant_facts(goal);
        if (refuted_by_sample(relevant, goal)) {
            ++counts_.sampled;
            ++counts_.refused;
            z3_cache_.emplace(std::move(key), false);
            return false;
        }
        Assignment model;
        const bool answer = z3_implies(ints_, relevant, goal, ms, model);
        if (!model.empty()) {
            models_.push_front(std::move(model));
            if (models_.size() > 100) models_.pop_back();
        }
        counts_.z3_milliseconds += ms;
        found = z3_cache_.emplace(std::move(key), answer).first;
    }
    if (found->second) return yes("z3");
    ++counts_.refused;
    return false;
}

}  // namespace tw::verify
