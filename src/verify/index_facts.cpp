#include "verify/index_facts.h"

#include <algorithm>
#include <limits>
#include <set>

namespace tw::verify {
namespace {

constexpr std::int64_t least_i32 = std::numeric_limits<std::int32_t>::min(), most_i32 = std::numeric_limits<std::int32_t>::max();

void look_in(const Condition& c, const std::function<void(const Poly&)>& look) {
    if (c.parts.empty()) look(c.poly);
    for (const Condition& p : c.parts) look_in(p, look);
}

}  // namespace

const IndexFacts::Known* IndexFacts::known(int tensor) const {
    const auto it = known_.find(tensor);
    return it == known_.end() ? nullptr : &it->second;
}

Condition IndexFacts::inside(const std::vector<Poly>& index, const std::vector<Poly>& extents) const {
    Condition c;
    for (std::size_t d = 0; d < index.size() && d < extents.size(); ++d)
        c = both(c, both(at_least(index[d], Poly(0)), less(index[d], extents[d])));
    return c;
}

void IndexFacts::define(int tensor, std::vector<Atom> variables, std::vector<Poly> extents, std::optional<Whole> value,
                        std::optional<Whole> sign_only) {
    Known k;
    k.variables = std::move(variables);
    k.extents = std::move(extents);
    k.value = std::move(value);
    k.sign_only = std::move(sign_only);
    if (k.value && !fits(k, *k.value)) k.value.reset();
    if (k.sign_only && !fits(k, *k.sign_only)) k.sign_only.reset();
    known_[tensor] = std::move(k);
}

void IndexFacts::define_scatter(int tensor, int by, Atom source, const Poly& extent, std::optional<Poly> value) {
    Known k;
    k.extents = {extent};
    k.by = by;
    k.source = source;
    if (value) {
        prover_.push();
        prover_.assume(both(at_least(Poly::of(source), Poly(0)), less(Poly::of(source), extent)));
        if (fits(*value)) k.scattered = value;
        prover_.pop();
    }
    known_[tensor] = std::move(k);
}

void IndexFacts::promise_range(int tensor, std::vector<Poly> extents, const Poly& first, const Poly& end) {
    Known k;
    k.extents = std::move(extents);
    k.range = {first, end};
    known_[tensor] = std::move(k);
}

// What is known of the elements among these atoms: their ranges, and that equal indices are equal elements.
std::vector<Condition> IndexFacts::laws_of(std::vector<Atom> atoms) {
    std::sort(atoms.begin(), atoms.end());
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    std::vector<Condition> laws;
    for (std::size_t i = 0; i < atoms.size(); ++i) {
        const AtomInfo& a = ints_.info(atoms[i]);
        if (a.kind != AtomInfo::Kind::element) continue;
        const Known* k = known(a.tensor);
        if (k && k->range) {
            const Condition in = both(at_least(Poly::of(atoms[i]), k->range->first), less(Poly::of(atoms[i]), k->range->second));
            laws.push_back(either(negated(inside(a.args, k->extents)), in));
        }
        for (std::size_t j = i + 1; j < atoms.size(); ++j) {
            const AtomInfo& b = ints_.info(atoms[j]);
            if (b.kind != AtomInfo::Kind::element || b.tensor != a.tensor || b.args.size() != a.args.size()) continue;
            Condition same;
            for (std::size_t d = 0; d < a.args.size(); ++d) same = both(same, equals(a.args[d], b.args[d]));
            laws.push_back(either(negated(same), equals(Poly::of(atoms[i]), Poly::of(atoms[j]))));
        }
    }
    return laws;
}

// A product with a factor of few values is, for each of them, a multiple of the other factor: Z3 need not multiply.
void IndexFacts::add_products(std::vector<Condition>& facts, const Condition& goal) const {
    std::set<Monomial> products;
    std::set<Atom> seen;
    const std::function<void(const Poly&)> look = [&](const Poly& p) {
        std::vector<Atom> inner;
        for (const auto& [m, k] : p.terms) {
            if (m.size() == 2) products.insert(m);
        }
        ints_.collect(p, inner);
        for (const Atom a : inner) {
            if (!seen.insert(a).second) continue;
            for (const Poly& q : ints_.info(a).args) look(q);
            look_in(ints_.info(a).condition, look);
        }
    };
    for (const Condition& f : facts) look_in(f, look);
    look_in(goal, look);
    for (const Monomial& m : products) {
        for (const std::size_t few : {0u, 1u}) {
            const AtomInfo& info = ints_.info(m[few]);
            const Known* k = info.kind == AtomInfo::Kind::element ? known(info.tensor) : nullptr;
            const auto first = k && k->range ? k->range->first.constant() : std::nullopt,
                       end = k && k->range ? k->range->second.constant() : std::nullopt;
            if (!first || !end || *end - *first > 17) continue;
            const Poly factor = Poly::of(m[few]), other = Poly::of(m[1 - few]);
            for (std::int64_t v = *first; v < *end; ++v)
                facts.push_back(either(negated(equals(factor, Poly(v))), equals(factor * other, Poly(v) * other)));
        }
    }
}

// By Z3, from the prover's facts, from what is known of elements, and from `given`.
bool IndexFacts::implied(const Condition& given, const Condition& goal, unsigned effort) {
    if (goal.is_yes() || given.is_no()) return true;
    std::vector<Condition> facts = prover_.facts();
    facts.insert(facts.end(), taken_.begin(), taken_.end());
    facts.push_back(given);
    std::vector<Atom> atoms;
    ints_.collect(goal, atoms);
    for (const Condition& f : facts) ints_.collect(f, atoms);
    for (Condition& law : laws_of(std::move(atoms))) facts.push_back(std::move(law));
    add_products(facts, goal);
    double milliseconds = 0;
    std::map<Atom, std::int64_t> model;
    return z3_implies(ints_, facts, goal, milliseconds, model, effort);
}

// 0, or the least power of two, that is never below it.
std::optional<std::int64_t> IndexFacts::most(const Poly& p) {
    if (const auto c = p.constant()) return c;
    const auto never_above = [&](int k) {
        return implied({}, at_least(Poly(k == 0 ? 0 : k == 32 ? most_i32 : std::int64_t{1} << (k - 1)), p));
    };
    int low = -1, high = 32;
    if (!never_above(high)) return std::nullopt;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        (never_above(middle) ? high : low) = middle;
    }
    return high == 0 ? 0 : high == 32 ? most_i32 : std::int64_t{1} << (high - 1);
}

// At most so many terms, none above the largest.
std::optional<std::int64_t> IndexFacts::most(const Whole& w) {
    auto total = most(w.plain);
    for (const Addend& a : w.sums) {
        if (!total) return std::nullopt;
        prover_.push();
        std::int64_t terms = 1;
        bool bounded = true;
        for (const BoundVariable& v : a.over) {
            const auto length = most(v.hi - v.lo);
            bounded = bounded && length && !__builtin_mul_overflow(terms, std::max<std::int64_t>(*length, 0), &terms);
            prover_.assume(both(at_least(Poly::of(v.variable), v.lo), less(Poly::of(v.variable), v.hi)));
        }
        const auto each = most(a.each);
        prover_.pop();
        std::int64_t sum = 0;
        if (!bounded || !each || __builtin_mul_overflow(terms, std::max<std::int64_t>(*each, 0), &sum) ||
            __builtin_add_overflow(*total, sum, &sum))
            return std::nullopt;
        total = sum;
    }
    return total;
}

bool IndexFacts::fits(const Poly& p) {
    const auto high = most(p), low = most(Poly(-1) * p);
    return high && low && *high <= most_i32 && -*low >= least_i32;
}

bool IndexFacts::holds_its_value(int tensor) const {
    const Known* k = known(tensor);
    return k && (k->value || k->sign_only);
}

bool IndexFacts::fits(Known& k, const Whole& w) {
    prover_.push();
    std::vector<Poly> index;
    for (const Atom v : k.variables) index.push_back(Poly::of(v));
    prover_.assume(inside(index, k.extents));
    Whole turned{Poly(-1) * w.plain, w.sums};
    for (Addend& a : turned.sums) a.each = Poly(-1) * a.each;
    const auto high = most(w), low = high ? most(turned) : std::nullopt;
    prover_.pop();
    if (!high || !low || *high > most_i32 || -*low < least_i32) return false;
    k.range = {Poly(-*low), Poly(*high + 1)};
    return true;
}

// ------------------------------------------------------------------------------------------------------------ sets and what counts them

// One element that is itself a sum, put in: its index must be in bounds wherever it is asked for.
bool IndexFacts::unfold_once(Whole& w, const Condition& given) {
    const auto sum_in = [&](const Poly& p, const Condition& where) -> std::optional<std::pair<Atom, std::int64_t>> {
        for (const auto& [m, k] : p.terms) {
            if (m.size() != 1) continue;
            const AtomInfo& info = ints_.info(m[0]);
            const Known* def = info.kind == AtomInfo::Kind::element ? known(info.tensor) : nullptr;
            if (def && def->value && !def->value->sums.empty() && implied(where, inside(info.args, def->extents))) return {{m[0], k}};
        }
        return std::nullopt;
    };
    const auto put_in = [&](Atom a) {
        const AtomInfo info = ints_.info(a);
        const Known& def = *known(info.tensor);
        std::map<Atom, Poly> with;
        for (std::size_t d = 0; d < def.variables.size(); ++d) with[def.variables[d]] = info.args[d];
        return instance(*def.value, with, ints_);
    };
    if (const auto found = sum_in(w.plain, given)) {
        const Poly k(found->second);
        const Whole inner = put_in(found->first);
        w.plain = w.plain - k * Poly::of(found->first) + k * inner.plain;
        for (Addend a : inner.sums) a.each = k * a.each, w.sums.push_back(std::move(a));
        return true;
    }
    for (std::size_t i = 0; i < w.sums.size(); ++i) {
        const auto found = sum_in(w.sums[i].each, both(given, constraints(w.sums[i])));
        if (!found) continue;
        const Poly k(found->second);
        const Whole inner = put_in(found->first);
        const Addend outer = w.sums[i];
        w.sums[i].each = outer.each - k * Poly::of(found->first) + k * inner.plain;
        if (w.sums[i].each.terms.empty()) w.sums.erase(w.sums.begin() + static_cast<std::ptrdiff_t>(i));
        for (const Addend& a : inner.sums) {
            Addend b = outer;
            b.over.insert(b.over.end(), a.over.begin(), a.over.end());
            b.given = both(b.given, a.given);
            b.each = k * a.each;
            w.sums.push_back(std::move(b));
        }
        return true;
    }
    return false;
}

Whole IndexFacts::unfolded(Whole w, const Condition& given) {
    for (int i = 0; i < 16 && unfold_once(w, given); ++i) {
    }
    return w;
}

// The addend as a set of one variable: all others are numbers that it determines.
std::optional<Condition> IndexFacts::as_members(Addend a, Atom member, const Condition& given) {
    if (!(a.each == Poly(1))) return std::nullopt;
    Condition all = constraints(a);
    std::vector<Atom> left;
    for (const BoundVariable& v : a.over) left.push_back(v.variable);
    const auto determined = [&](Atom v) -> std::optional<Poly> {
        std::vector<Poly> candidates;
        const std::vector<Condition> parts = a.given.kind == Condition::Kind::all ? a.given.parts : std::vector<Condition>{a.given};
        for (const Condition& c : parts) {  // an equation
            const auto k = c.kind == Condition::Kind::zero ? c.poly.linear_in(v) : std::nullopt;
            if (k && (*k == 1 || *k == -1)) candidates.push_back(Poly::of(v) - Poly(*k) * c.poly);
        }
        for (const BoundVariable& u : a.over) {  // the number of the piece that u is in
            const auto k = u.variable != v ? u.lo.linear_in(v) : std::nullopt;
            if (k && *k > 0) candidates.push_back(ints_.quotient(Poly::of(u.variable) - u.lo + Poly(*k) * Poly::of(v), Poly(*k)));
        }
        for (const Poly& p : candidates) {
            if (!ints_.mentions(p, v) && implied(both(given, all), equals(Poly::of(v), p))) return p;
        }
        return std::nullopt;
    };
    for (bool changed = true; changed && left.size() > 1;) {
        changed = false;
        for (std::size_t i = 0; i < left.size() && !changed; ++i) {
            const auto p = determined(left[i]);
            if (!p) continue;
            const std::map<Atom, Poly> with = {{left[i], *p}};
            all = ints_.replace(all, with);
            a.given = ints_.replace(a.given, with);
            for (BoundVariable& u : a.over) u.lo = ints_.replace(u.lo, with), u.hi = ints_.replace(u.hi, with);
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
            changed = true;
        }
    }
    if (left.size() != 1) return std::nullopt;
    return ints_.replace(all, {{left[0], Poly::of(member)}});
}

// The set that the element counts, of [0, size).
std::optional<IndexFacts::Members> IndexFacts::members(int tensor, const std::vector<Poly>& index, const Poly& size,
                                                       const Condition& given) {
    const Known* k = known(tensor);
    if (!k || !k->value || index.size() != k->variables.size()) return std::nullopt;
    std::map<Atom, Poly> with;
    for (std::size_t d = 0; d < index.size(); ++d) with[k->variables[d]] = index[d];
    const Whole w = unfolded(instance(*k->value, with, ints_), given);
    if (!w.plain.terms.empty()) return std::nullopt;
    Members m{ints_.fresh("i"), negated(Condition{})};
    std::vector<Condition> parts;
    for (const Addend& a : w.sums) {
        const auto c = as_members(a, m.member, given);
        const Poly i = Poly::of(m.member);
        if (!c || !implied(both(given, *c), both(at_least(i, Poly(0)), less(i, size)))) return std::nullopt;
        for (const Condition& other : parts) {  // nothing is counted twice
            if (!implied(both(given, both(*c, other)), negated(Condition{}))) return std::nullopt;
        }
        parts.push_back(*c);
        m.condition = either(m.condition, *c);
    }
    return m;
}

bool IndexFacts::is_permutation(int tensor) {
    const auto it = known_.find(tensor);
    if (it == known_.end() || it->second.extents.size() != 1 || !it->second.value) return false;
    if (it->second.permutation) return *it->second.permutation;
    const Poly n = it->second.extents[0];
    const Atom x = ints_.fresh("x"), y = ints_.fresh("y"), z = ints_.fresh("z");
    const auto in = [&](Atom a) { return both(at_least(Poly::of(a), Poly(0)), less(Poly::of(a), n)); };
    if (const Whole& w = *it->second.value; w.sums.empty()) {
        const auto at = [&](Atom a) { return ints_.replace(w.plain, {{it->second.variables[0], Poly::of(a)}}); };
        const bool once = implied(in(x), both(at_least(at(x), Poly(0)), less(at(x), n))) &&
                          implied(both(both(in(x), in(y)), equals(at(x), at(y))), equals(Poly::of(x), Poly::of(y)));
        it->second.permutation = once;
        if (once) it->second.range = {Poly(0), n};
        return once;
    }
    const auto m = members(tensor, {Poly::of(x)}, n, in(x));
    const auto before = [&](Atom a, Atom b) { return ints_.replace(m->condition, {{m->member, Poly::of(a)}, {x, Poly::of(b)}}); };
    const Condition all = both(in(x), both(in(y), in(z)));
    const bool order = m && implied(all, negated(before(x, x))) &&
                       implied(both(all, negated(equals(Poly::of(x), Poly::of(y)))), either(before(x, y), before(y, x))) &&
                       implied(both(all, both(before(x, y), before(y, z))), before(x, z));
    Known& k = known_[tensor];
    k.permutation = order;
    if (order) k.range = {Poly(0), n};
    return order;
}

// ------------------------------------------------------------------------------------------------------------------------ prefix sums

std::optional<IndexFacts::Prefix> IndexFacts::prefix_of(int tensor) const {
    const Known* k = known(tensor);
    if (!k || !k->value || k->variables.size() != 1 || !k->value->plain.terms.empty() || k->value->sums.size() != 1) return std::nullopt;
    const Addend& a = k->value->sums[0];
    if (a.over.size() != 1 || !(a.over[0].lo == Poly(0)) || !(a.over[0].hi == Poly::of(k->variables[0])) || !a.given.is_yes() ||
        ints_.mentions(a.each, k->variables[0]))
        return std::nullopt;
    return Prefix{a.over[0].variable, a.each};
}

std::optional<IndexFacts::Beginning> IndexFacts::beginning_of(int tensor, const Poly& index) {
    const Known* k = known(tensor);
    if (!k || !k->value || k->variables.size() != 1 || !k->value->plain.terms.empty() || k->value->sums.size() != 1) return std::nullopt;
    const Whole w = instance(*k->value, {{k->variables[0], index}}, ints_);
    const Addend& a = w.sums[0];
    if (a.over.size() != 1 || !(a.each == Poly(1))) return std::nullopt;
    return Beginning{a.over[0].variable, a.over[0].lo, a.over[0].hi, a.given};
}

bool IndexFacts::is_sorted(int tensor) {
    const auto it = known_.find(tensor);
    if (it == known_.end() || it->second.extents.size() != 1 || !it->second.value) return false;
    if (it->second.sorted) return *it->second.sorted;
    const bool sorted = rises(tensor);
    known_[tensor].sorted = sorted;
    return sorted;
}

// By its steps where it is a prefix sum or no sum, else by the sets that its elements count: each holds the one before it.
bool IndexFacts::rises(int tensor) {
    const Known& k = *known(tensor);
    const Poly last = k.extents[0] - Poly(1);
    const auto before_last = [&](const Poly& v) { return both(at_least(v, Poly(0)), less(v, last)); };
    if (const auto p = prefix_of(tensor)) return implied(before_last(Poly::of(p->variable)), at_least(p->body, Poly(0)));
    const Poly x = Poly::of(ints_.fresh("x")), next = x + Poly(1);
    if (k.value->sums.empty()) {
        const auto at = [&](const Poly& index) { return ints_.replace(k.value->plain, {{k.variables[0], index}}); };
        return implied(before_last(x), at_least(at(next), at(x)));
    }
    for (const Poly& size : lengths_) {
        const auto own = members(tensor, {x}, size, before_last(x)), later = members(tensor, {next}, size, before_last(x));
        if (!own || !later) continue;
        const Poly i = Poly::of(own->member);
        const Condition member = both(both(at_least(i, Poly(0)), less(i, size)), own->condition);
        return implied(both(before_last(x), member), ints_.replace(later->condition, {{later->member, i}}));
    }
    return false;
}

// --------------------------------------------------------------------------------------------------------------------------- promises

bool IndexFacts::in_range(int tensor, const Poly& first, const Poly& end) {
    const auto it = known_.find(tensor);
    if (it == known_.end()) return false;
    const auto within = [&](const Poly& p, const Condition& given) { return implied(given, both(at_least(p, first), less(p, end))); };
    Known& k = it->second;
    const Poly element = Poly::of(ints_.fresh("e"));
    if (k.range && implied(both(at_least(element, k.range->first), less(element, k.range->second)),
                           both(at_least(element, first), less(element, end))))
        return true;
    std::vector<Poly> index;
    for (const Atom v : k.variables) index.push_back(Poly::of(v));
    const Condition in = inside(index, k.extents);
    bool shown = false;
    if (k.by >= 0) {
        const Poly s = Poly::of(k.source);
        shown = k.scattered && within(*k.scattered, both(at_least(s, Poly(0)), less(s, k.extents[0])));
    } else if (k.value && k.value->sums.empty()) {
        shown = within(k.value->plain, in);
    } else if (k.value && k.extents.size() == 1 && is_permutation(tensor)) {
        shown = implied({}, both(at_least(Poly(0), first), at_least(end, k.extents[0])));
    } else if (k.value) {
        shown = counted_within(tensor, index, in, first, end);
    } else if (k.sign_only && k.sign_only->sums.empty()) {
        shown = within(k.sign_only->plain, in);
    }
    if (shown) known_[tensor].range = {first, end};
    return shown;
}

// Sums of which no term is negative: at least 0; at most as many as there are, where they are counts of different ones, or by bounds.
bool IndexFacts::counted_within(int tensor, const std::vector<Poly>& index, const Condition& in, const Poly& first, const Poly& end) {
    const Whole value = *known(tensor)->value;
    if (!implied(in, at_least(value.plain, first))) return false;
    for (const Addend& a : value.sums) {
        if (!implied(both(in, constraints(a)), at_least(a.each, Poly(0)))) return false;
    }
    prover_.push();
    prover_.assume(in);
    const auto high = most(value);
    const auto low_end = prover_.least(end);
    prover_.pop();
    if (high && low_end && *high < *low_end) return true;
    // The sum of lengths, where every term is a count.
    Poly length = value.plain;
    bool counts = true;
    for (const Addend& a : value.sums) {
        counts = counts && a.over.size() == 1 && a.each == Poly(1);
        if (counts) length = length + ints_.maximum(a.over[0].hi - a.over[0].lo, Poly(0));
    }
    if (counts && implied(in, less(length, end))) return true;
    for (const Poly& size : lengths_) {
        if (members(tensor, index, size, in)) return implied(in, less(size, end));
    }
    return false;
}

std::optional<Poly> IndexFacts::scattered(int tensor, const std::vector<Poly>& index) {
    const Known* k = known(tensor);
    if (!k || k->by < 0 || !k->scattered || index.size() != 1) return std::nullopt;
    if (index[0].terms.size() != 1 || index[0].terms.begin()->second != 1 || index[0].terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo& at = ints_.info(index[0].terms.begin()->first[0]);
    if (at.kind != AtomInfo::Kind::element || at.tensor != k->by) return std::nullopt;
    return ints_.replace(*k->scattered, {{k->source, at.args[0]}});
}

}  // namespace tw::verify
