#include "verify/prove.h"

#include <algorithm>

#include "verify/linear.h"
#include "verify/work.h"

namespace tw::verify {

void Prover::assume(const Condition& c) {
    if (c.is_yes()) return;
    spend(30 + 2 * fact_numbers_.size());
    if (c.kind == Condition::Kind::all) {
        for (const Condition& p : c.parts) assume(p);
        return;
    }
    const int number = number_of(c);
    if (std::find(fact_numbers_.begin(), fact_numbers_.end(), number) != fact_numbers_.end()) return;
    const int next = next_states_.emplace(std::make_pair(state(), number), static_cast<int>(next_states_.size()) + 1).first->second;
    facts_.push_back(c);
    fact_numbers_.push_back(number);
    states_.push_back(next);
}

void Prover::pop() {
    facts_.resize(marks_.back());
    fact_numbers_.resize(marks_.back());
    states_.resize(marks_.back());
    marks_.pop_back();
}

bool Prover::mentions(Atom a) const {
    return std::any_of(fact_numbers_.begin(), fact_numbers_.end(), [&](int f) {
        const std::vector<Atom>& atoms = numbered_[static_cast<std::size_t>(f)].atoms;
        return std::binary_search(atoms.begin(), atoms.end(), a);
    });
}

int Prover::number_of(const Condition& c) {
    const auto [it, fresh] = numbers_.emplace(c, static_cast<int>(numbered_.size()));
    if (!fresh) return it->second;
    Numbered n{c, {}, false};
    ints_.collect(c, n.atoms);
    std::sort(n.atoms.begin(), n.atoms.end());
    n.atoms.erase(std::unique(n.atoms.begin(), n.atoms.end()), n.atoms.end());
    const std::function<bool(const Condition&)> has_product = [&](const Condition& x) {
        return std::any_of(x.poly.terms.begin(), x.poly.terms.end(), [](const auto& t) { return t.first.size() > 1; }) ||
               std::any_of(x.parts.begin(), x.parts.end(), has_product);
    };
    n.has_product = has_product(c);
    numbered_.push_back(std::move(n));
    return it->second;
}

bool Prover::yes(const char* who) {
    last_ = who;
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
    return by_search(no);
}

// The same question under the same facts has the same answer.
bool Prover::holds(const Condition& goal) {
    if (goal.is_yes()) return yes("affine");
    const auto key = static_cast<std::uint64_t>(state()) << 32 | static_cast<std::uint32_t>(number_of(goal));
    const auto known = answers_.find(key);
    if (known != answers_.end()) {
        if (known->second.proved) last_ = known->second.prover;
        return known->second.proved;
    }
    const bool proved = decide(goal);
    if (proved) ++counts_.answered[last_];
    else ++counts_.refused;
    answers_.emplace(key, Answer{proved, proved ? last_ : std::string()});
    return proved;
}

bool Prover::decide(const Condition& goal) {
    switch (goal.kind) {
        case Condition::Kind::yes: return yes("affine");
        case Condition::Kind::no: return by_search(goal);
        case Condition::Kind::all:
            for (const Condition& p : goal.parts) {
                if (!holds(p)) return false;
            }
            return true;
        case Condition::Kind::any:
            for (const Condition& p : goal.parts) {
                if (p.kind != Condition::Kind::any && p.kind != Condition::Kind::all &&
                    std::find(facts_.begin(), facts_.end(), p) != facts_.end())
                    return yes("affine");
            }
            return by_search(goal);
        default: return leaf(goal);
    }
}

// Facts that have nothing to do with the goal come and go: the answer is kept for those that have.
bool Prover::leaf(const Condition& goal) {
    if (std::find(facts_.begin(), facts_.end(), goal) != facts_.end()) return yes("affine");
    const int number = number_of(goal);
    std::vector<int> key = connected_facts(number, true);
    std::sort(key.begin(), key.end());
    key.push_back(number);
    const auto known = leaf_answers_.find(key);
    if (known != leaf_answers_.end()) {
        if (known->second.proved) last_ = known->second.prover;
        return known->second.proved;
    }
    const bool proved = search_leaf(goal);
    leaf_answers_.emplace(std::move(key), Answer{proved, proved ? last_ : std::string()});
    return proved;
}

bool Prover::search_leaf(const Condition& goal) {
    if (goal.kind == Condition::Kind::at_least_zero) {
        if (by_facts(goal.poly)) return yes("affine");
        if (by_bounds(goal.poly)) return yes("bounds");
    }
    if (goal.kind == Condition::Kind::nonzero) {
        if (by_bounds(goal.poly - Poly(1)) || by_bounds(Poly(-1) * goal.poly - Poly(1))) return yes("bounds");
    }
    return by_search(goal);
}

bool Prover::by_facts(const Poly& p) {
    std::vector<const Poly*> known;
    for (const Condition& f : facts_) {
        if (f.kind == Condition::Kind::at_least_zero) {
            if (auto c = p.minus_if_constant(f.poly); c && *c >= 0) return true;
            known.push_back(&f.poly);
        }
        if (f.kind == Condition::Kind::zero) {
            if (auto c = p.minus_if_constant(f.poly); c && *c >= 0) return true;
            if (auto c = (p + f.poly).constant(); c && *c >= 0) return true;
        }
    }
    for (std::size_t i = 0; i < known.size(); ++i) {
        const Poly rest = p - *known[i];
        for (std::size_t j = i + 1; j < known.size(); ++j) {
            if (auto c = rest.minus_if_constant(*known[j]); c && *c >= 0) return true;
        }
        if (by_bounds(rest)) return true;
    }
    return false;
}

// Bounds that an atom has by its make alone, whatever the facts.
// Quotients of sums of quotients have the same ones in many places: each is looked at once.
Prover::Range Prover::range_of(Atom a) {
    if (const auto known = ranges_.find(a); known != ranges_.end()) return known->second;
    return ranges_.emplace(a, range_by_parts(a)).first->second;
}

Prover::Range Prover::range_by_parts(Atom a) {
    const AtomInfo& i = ints_.info(a);
    Range r{i.lower, i.upper};
    auto at_least_of = [](std::optional<std::int64_t> x, std::optional<std::int64_t> y) {
        return x && y ? std::optional(std::min(*x, *y)) : std::nullopt;
    };
    auto at_most_of = [](std::optional<std::int64_t> x, std::optional<std::int64_t> y) {
        return x && y ? std::optional(std::max(*x, *y)) : std::nullopt;
    };
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

Prover::Range Prover::range_of(const Poly& p) {
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

// The same atom has the same bounds under the same facts; a condition asks for them once for each of its monomials and facts.
template <class Compute>
std::optional<std::int64_t> Prover::remembered_bound(Atom a, int depth, bool lower, const Compute& compute) {
    const auto key = static_cast<std::uint64_t>(state()) << 32 | static_cast<std::uint64_t>(a) << 4 |
                     static_cast<std::uint64_t>(depth) << 1 | (lower ? 1u : 0u);
    if (const auto known = bounds_.find(key); known != bounds_.end()) return known->second;
    const std::optional<std::int64_t> bound = compute();
    bounds_.emplace(key, bound);
    return bound;
}

std::optional<std::int64_t> Prover::lower_bound(Atom a, int depth) {
    return remembered_bound(a, depth, true, [&] {
        std::optional<std::int64_t> best = range_of(a).low;
        for (const Condition& f : facts_) {  // a + rest >= 0: a >= -rest
            if (f.kind != Condition::Kind::at_least_zero || f.poly.linear_in(a) != 1) continue;
            const Poly rest = f.poly - Poly::of(a);
            if (ints_.mentions(rest, a)) continue;
            if (auto low = lowest(Poly(-1) * rest, depth)) best = std::max(best.value_or(*low), *low);
        }
        return best;
    });
}

std::optional<std::int64_t> Prover::upper_bound(Atom a, int depth) {
    return remembered_bound(a, depth, false, [&] {
        std::optional<std::int64_t> best = range_of(a).high;
        for (const Condition& f : facts_) {  // rest - a >= 0: a <= rest
            if (f.kind != Condition::Kind::at_least_zero || f.poly.linear_in(a) != -1) continue;
            const Poly rest = f.poly + Poly::of(a);
            if (ints_.mentions(rest, a)) continue;
            if (auto low = lowest(Poly(-1) * rest, depth)) best = std::min(best.value_or(-*low), -*low);
        }
        return best;
    });
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
        if (__builtin_mul_overflow(k, m.empty() ? 1 : k > 0 ? low : high, &part) || __builtin_add_overflow(sum, part, &sum))
            return std::nullopt;
    }
    return sum;
}

bool Prover::by_bounds(const Poly& p) {
    const auto low = lowest(p, 2);
    return low && *low >= 0;
}

// Samples: values of atoms by number, valid where their mark is that of the present sample.
void Prover::begin_sample() {
    if (sample_values_.size() < ints_.size()) {
        sample_values_.resize(ints_.size());
        sample_marks_.resize(ints_.size(), 0);
    }
    ++sample_;
}

void Prover::set_sample(Atom a, std::int64_t value) {
    sample_values_[static_cast<std::size_t>(a)] = value;
    sample_marks_[static_cast<std::size_t>(a)] = sample_;
}

std::optional<std::int64_t> Prover::value(const Poly& p) {
    std::int64_t sum = 0;
    for (const auto& [m, k] : p.terms) {
        std::int64_t product = k;
        for (Atom a : m) {
            if (sample_marks_[static_cast<std::size_t>(a)] != sample_) {
                const AtomInfo& i = ints_.info(a);
                std::optional<std::int64_t> v;
                switch (i.kind) {
                    case AtomInfo::Kind::quotient: {
                        auto n = value(i.args[0]), d = value(i.args[1]);
                        if (n && d && *d != 0) v = ir::floor_div(*n, *d);
                        break;
                    }
                    case AtomInfo::Kind::minimum:
                    case AtomInfo::Kind::maximum: {
                        auto x = value(i.args[0]), y = value(i.args[1]);
                        if (x && y) v = i.kind == AtomInfo::Kind::minimum ? std::min(*x, *y) : std::max(*x, *y);
                        break;
                    }
                    case AtomInfo::Kind::choice: {
                        auto c = truth(i.condition);
                        if (c) v = value(i.args[*c ? 0 : 1]);
                        break;
                    }
                    default: break;
                }
                if (!v) return std::nullopt;
                set_sample(a, *v);
            }
            if (__builtin_mul_overflow(product, sample_values_[static_cast<std::size_t>(a)], &product)) return std::nullopt;
        }
        if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
    }
    return sum;
}

std::optional<bool> Prover::truth(const Condition& c) {
    switch (c.kind) {
        case Condition::Kind::yes: return true;
        case Condition::Kind::no: return false;
        case Condition::Kind::all:
        case Condition::Kind::any: {
            const bool all = c.kind == Condition::Kind::all;
            for (const Condition& p : c.parts) {
                auto t = truth(p);
                if (!t) return std::nullopt;
                if (*t != all) return !all;
            }
            return all;
        }
        default: {
            auto v = value(c.poly);
            if (!v) return std::nullopt;
            return c.kind == Condition::Kind::at_least_zero ? *v >= 0 : c.kind == Condition::Kind::zero ? *v == 0 : *v != 0;
        }
    }
}

// Does the sample break the goal and satisfy the facts?
bool Prover::sample_refutes(const std::vector<Condition>& facts, const Condition& goal) {
    const auto reached = truth(goal);
    if (!reached || *reached) return false;
    return std::all_of(facts.begin(), facts.end(), [&](const Condition& f) { return truth(f).value_or(false); });
}

std::vector<Atom> Prover::symbols_of(const std::vector<Condition>& facts, const Condition& goal) const {
    std::vector<Atom> all;
    ints_.collect(goal, all);
    for (const Condition& f : facts) ints_.collect(f, all);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](Atom a) {
                                 const auto kind = ints_.info(a).kind;
                                 return kind != AtomInfo::Kind::symbol && kind != AtomInfo::Kind::element && kind != AtomInfo::Kind::opaque;
                             }),
              all.end());
    return all;
}

bool Prover::refuted_by_model(const std::vector<Condition>& facts, const Condition& goal) {
    const std::vector<Atom> symbols = symbols_of(facts, goal);
    for (std::size_t i = 0; i < models_.size(); ++i) {
        begin_sample();
        for (Atom a : symbols) {
            const auto found = models_[i].find(a);
            set_sample(a, found != models_[i].end() ? found->second : ints_.info(a).lower.value_or(0));
        }
        if (!sample_refutes(facts, goal)) continue;
        std::rotate(models_.begin(), models_.begin() + static_cast<std::ptrdiff_t>(i),
                    models_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return true;
    }
    return false;
}

void Prover::remember(Assignment model) {
    models_.push_front(std::move(model));
    if (models_.size() > 40) models_.pop_back();
}

bool Prover::refuted_by_sample(const std::vector<Condition>& facts, const Condition& goal, int first, int last) {
    const std::vector<Atom> symbols = symbols_of(facts, goal);
    static constexpr std::int64_t common[] = {0, 1, 2, 3, 8, 64, 65, 128, 130, 192, 256, 1000, 1024, 1025, 2048, 5000};
    std::uint64_t state = 88172645463325252ull + static_cast<std::uint64_t>(first);  // fixed: answers are reproducible
    auto next = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    };
    std::vector<std::int64_t> values(symbols.size());
    for (int round = first; round < last; ++round) {
        // Every other one starts from a counterexample to an earlier goal: the next goal is often about the same things.
        const Assignment* near =
            round % 2 == 0 && !models_.empty() ? &models_[static_cast<std::size_t>(round / 2) % models_.size()] : nullptr;
        for (std::size_t s = 0; s < symbols.size(); ++s) {
            const AtomInfo& i = ints_.info(symbols[s]);
            if (near) {
                if (const auto known = near->find(symbols[s]); known != near->end()) {
                    values[s] = known->second;
                    continue;
                }
            }
            if (i.lower && i.upper)
                values[s] = *i.lower + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(*i.upper - *i.lower + 1));
            else if (next() % 2) values[s] = i.lower.value_or(0) + static_cast<std::int64_t>(next() % 4);
            else values[s] = std::max(i.lower.value_or(0), common[next() % std::size(common)]);
            if (i.fresh && !i.lower && next() % 2) values[s] = -1 - values[s];
        }
        // Facts that the values break are mended one after the other, by moving one symbol each: `grid == cdiv(S, 64)` is met by chance
        // never.
        for (int mended = 0; mended < 12; ++mended) {
            begin_sample();
            for (std::size_t s = 0; s < symbols.size(); ++s) set_sample(symbols[s], values[s]);
            auto fails = [&](const Condition& c) { return !truth(c).value_or(false); };
            const auto first_broken = std::find_if(facts.begin(), facts.end(), fails);
            if (first_broken == facts.end()) {
                const auto reached = truth(goal);
                if (!reached || *reached) break;
                Assignment model;
                for (std::size_t s = 0; s < symbols.size(); ++s) model.emplace(symbols[s], values[s]);
                remember(std::move(model));
                return true;
            }
            const Condition* broken = &*first_broken;
            while (broken && !broken->parts.empty()) {
                const bool all = broken->kind == Condition::Kind::all;
                const auto part = all ? std::find_if(broken->parts.begin(), broken->parts.end(), fails)
                                      : broken->parts.begin() + static_cast<std::ptrdiff_t>(next() % broken->parts.size());
                broken = part == broken->parts.end() ? nullptr : &*part;  // an alternative holds, and another has no value
            }
            if (!broken) break;
            if (broken->kind != Condition::Kind::zero && broken->kind != Condition::Kind::at_least_zero) break;
            const auto off = value(broken->poly);
            if (!off || std::abs(*off) > 1'000'000'000) break;
            bool moved = false;
            const std::size_t start = next() % std::max<std::size_t>(1, symbols.size());
            auto solve = [&](std::size_t s) {
                const std::int64_t factor = broken->poly.linear_in(symbols[s]).value_or(0);
                if (factor == 0 || (broken->kind == Condition::Kind::zero && *off % factor != 0)) return;
                const AtomInfo& i = ints_.info(symbols[s]);
                std::int64_t v = values[s] - (factor > 0 ? ir::floor_div(*off, factor) : -ir::floor_div(*off, -factor));
                if (i.lower) v = std::max(v, *i.lower);
                if (i.upper) v = std::min(v, *i.upper);
                moved = v != values[s];
                values[s] = v;
            };
            auto grow = [&](std::size_t s) {  // under a quotient or a minimum
                const AtomInfo& i = ints_.info(symbols[s]);
                if ((i.lower && i.upper) || broken->poly.linear_in(symbols[s]).value_or(1) != 0 ||
                    !ints_.mentions(broken->poly, symbols[s]))
                    return;
                values[s] = std::max(i.lower.value_or(0),
                                     next() % 4 == 0 ? values[s] / 2 : 2 * values[s] + common[next() % std::size(common)] % 256);
                moved = values[s] < 1'000'000;
            };
            const bool grow_first = broken->kind == Condition::Kind::at_least_zero && next() % 2;
            for (std::size_t n = 0; n < 2 * symbols.size() && !moved; ++n) {
                const std::size_t s = (start + n) % symbols.size();
                if ((n < symbols.size()) == grow_first) grow(s);
                else solve(s);
            }
            if (!moved) break;
        }
    }
    return false;
}

// Leaving facts out is always sound. What shares no symbol with the goal, even through other facts, cannot help; products of
// symbols (the number of tiles of a raster) only help a goal that has products itself, and make everything slow.
std::vector<int> Prover::connected_facts(int goal, bool products) const {
    const Numbered& wanted = numbered_[static_cast<std::size_t>(goal)];
    std::vector<Atom> reached = wanted.atoms;
    std::vector<int> chosen;
    std::vector<char> taken(facts_.size(), 0);
    for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = 0; i < facts_.size(); ++i) {
            const Numbered& fact = numbered_[static_cast<std::size_t>(fact_numbers_[i])];
            if (taken[i] || (fact.has_product && !products)) continue;
            if (!reached.empty() && std::none_of(fact.atoms.begin(), fact.atoms.end(),
                                                 [&](Atom a) { return std::binary_search(reached.begin(), reached.end(), a); }))
                continue;
            taken[i] = 1;
            grew = true;
            chosen.push_back(fact_numbers_[i]);
            std::vector<Atom> all;
            std::set_union(reached.begin(), reached.end(), fact.atoms.begin(), fact.atoms.end(), std::back_inserter(all));
            reached = std::move(all);
        }
    }
    return chosen;
}

bool Prover::by_search(const Condition& goal) {
    spend(400);
    const int number = number_of(goal);
    const std::vector<int> relevant = connected_facts(number, numbered_[static_cast<std::size_t>(number)].has_product);
    std::vector<int> key = relevant;
    std::sort(key.begin(), key.end());
    key.push_back(number);
    if (linear_answers_.count(key)) return yes("linear");
    auto found = z3_answers_.find(key);
    if (found == z3_answers_.end()) {
        double ms = 0;
        std::vector<Condition> facts;
        for (int f : relevant) facts.push_back(numbered_[static_cast<std::size_t>(f)].condition);
        if (!ints_.promises.empty()) {
            std::vector<Atom> atoms;
            ints_.collect(goal, atoms);
            for (const Condition& f : facts) ints_.collect(f, atoms);
            for (Condition& law : ints_.promised(atoms)) facts.push_back(std::move(law));
        }
        // A few samples first: most of what does not hold fails on them, at a fraction of the cost of a vain search for a proof.
        spend(20'000);
        bool refuted = refuted_by_model(facts, goal) || refuted_by_sample(facts, goal, 0, 24);
        if (!refuted && linear_implies(ints_, facts, goal)) {
            linear_answers_.insert(std::move(key));
            return yes("linear");
        }
        refuted = refuted || refuted_by_sample(facts, goal, 24, 150);
        if (refuted) {
            ++counts_.sampled;
            z3_answers_.emplace(std::move(key), false);
            return false;
        }
        if (!use_z3) return false;
        Assignment model;
        const bool answer = z3_implies(ints_, facts, goal, ms, model);
        if (!model.empty()) remember(std::move(model));
        counts_.z3_milliseconds += ms;
        found = z3_answers_.emplace(std::move(key), answer).first;
    }
    return found->second && yes("z3");
}

}  // namespace tw::verify
