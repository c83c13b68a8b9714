// Tags: terms that one formula has at 0, 1, 2, ..., as one fold of it. A tree of additions or maxima through shared memory ends in such
// terms.
#include <functional>
#include <set>

#include "verify/value_keys.h"

namespace tw::verify {

namespace {

constexpr std::size_t fewest = 4, most_terms = 512, most_constants = 48;

std::int64_t constant_of(const Poly& p) {
    const auto found = p.terms.find({});
    return found == p.terms.end() ? 0 : found->second;
}

}  // namespace

// Polynomials that are p at x = 0 and q at x = 1, step by step the same.
std::optional<Poly> Values::line(const Poly& p, const Poly& q, const Poly& x) {
    const Poly step = q - p;
    if (const auto c = step.constant()) return p + Poly(*c) * x;
    // A quotient or a minimum in the place of another: step is k b - k a + c.
    std::vector<std::pair<Atom, std::int64_t>> changed;
    for (const auto& [m, k] : step.terms) {
        if (m.empty()) continue;
        if (m.size() != 1) return std::nullopt;
        changed.emplace_back(m[0], k);
    }
    if (changed.size() != 2 || changed[0].second != -changed[1].second) return std::nullopt;
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
        const auto& [a, k] = changed[first];
        const Atom b = changed[1 - first].first;
        const auto held = p.terms.find({a});
        if (held == p.terms.end() || held->second != -k) continue;
        const AtomInfo from = ints_.info(a), to = ints_.info(b);
        if (from.kind != to.kind || from.args.size() != to.args.size() || from.args.empty()) return std::nullopt;
        const auto part = [&](std::size_t i) { return line(from.args[i], to.args[i], x); };
        std::optional<Poly> between;
        if (from.kind == AtomInfo::Kind::quotient && from.args[1] == to.args[1] && from.args[1].constant()) {
            if (const auto numerator = part(0)) between = ints_.quotient(*numerator, from.args[1]);
        } else if (from.kind == AtomInfo::Kind::minimum || from.kind == AtomInfo::Kind::maximum) {
            between = part(0);
            for (std::size_t i = 1; i < from.args.size() && between; ++i) {
                const auto other = part(i);
                if (!other) between.reset();
                else between = from.kind == AtomInfo::Kind::minimum ? ints_.minimum(*between, *other) : ints_.maximum(*between, *other);
            }
        }
        if (!between) return std::nullopt;
        return p + Poly(k) * Poly::of(a) - Poly(k) * *between + Poly(constant_of(step)) * x;
    }
    return std::nullopt;
}

std::optional<Condition> Values::line(const Condition& a, const Condition& b, const Poly& x) {
    if (a == b) return a;
    if (a.kind != b.kind || a.parts.size() != b.parts.size()) return std::nullopt;
    Condition made = a;
    const auto poly = line(a.poly, b.poly, x);
    if (!poly) return std::nullopt;
    made.poly = *poly;
    for (std::size_t i = 0; i < a.parts.size(); ++i) {
        const auto part = line(a.parts[i], b.parts[i], x);
        if (!part) return std::nullopt;
        made.parts[i] = *part;
    }
    return made;
}

// The same of tags. A guess: whoever asks compares its values with the terms.
std::optional<Value> Values::line(Value a, Value b, const Poly& x) {
    if (a == b) return a;
    const ValueNode p = node(a), q = node(b);
    if (p.kind != q.kind || p.name != q.name || p.id != q.id || !(p.number == q.number) || !(p.weights == q.weights) ||
        p.args.size() != q.args.size() || p.indices.size() != q.indices.size())
        return std::nullopt;
    std::vector<Poly> indices;
    for (std::size_t i = 0; i < p.indices.size(); ++i) {
        const auto one = line(p.indices[i], q.indices[i], x);
        if (!one) return std::nullopt;
        indices.push_back(*one);
    }
    if (p.kind == Kind::reduce) {
        const Atom y = ints_.fresh("i");
        const auto body = line(replace(p.args[0], {{p.variable, Poly::of(y)}}), replace(q.args[0], {{q.variable, Poly::of(y)}}), x);
        const auto lo = line(p.lo, q.lo, x), hi = line(p.hi, q.hi, x);
        return body && lo && hi ? std::optional(reduce(p.name, y, *lo, *hi, *body)) : std::nullopt;
    }
    std::vector<Value> args;
    for (std::size_t i = 0; i < p.args.size(); ++i) {
        const auto one = line(p.args[i], q.args[i], x);
        if (!one) return std::nullopt;
        args.push_back(*one);
    }
    switch (p.kind) {
        case Kind::element: return element(p.id, std::move(indices));
        case Kind::index: return index(indices[0]);
        case Kind::function: return apply(p.name, std::move(args));
        case Kind::extreme: return extreme(p.name, std::move(args));
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < args.size(); ++i) terms.emplace_back(p.weights[i], args[i]);
            return sum(p.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < args.size(); ++i) bases.emplace_back(args[i], p.weights[i]);
            return product(std::move(bases));
        }
        case Kind::where: {
            const auto condition = line(p.condition, q.condition, x);
            return condition ? std::optional(where(*condition, args[0], args[1])) : std::nullopt;
        }
        default: return std::nullopt;
    }
}

// The constants in which values of one formula differ, in the order in which it mentions them.
void Values::constants_in(Value v, std::vector<std::int64_t>& found) const {
    const ValueNode& n = node(v);
    for (const Poly& p : n.indices) found.push_back(constant_of(p));
    for (Value a : n.args) {
        if (found.size() < most_constants) constants_in(a, found);
    }
    if (n.kind == Kind::where) found.push_back(constant_of(n.condition.poly));
    if (n.kind == Kind::reduce) found.push_back(constant_of(n.lo)), found.push_back(constant_of(n.hi));
}

// Terms that are f(0), f(1), ..., f(n - 1), each of them once, as the fold of f over [0, n).
std::optional<Value> Values::row_of(const std::string& op, const std::vector<Value>& terms) {
    if (terms.size() < fewest || terms.size() > most_terms) return std::nullopt;
    std::vector<std::pair<std::vector<std::int64_t>, Value>> sorted;
    for (Value v : terms) {
        if (has_unknown(v)) return std::nullopt;
        std::vector<std::int64_t> key;
        constants_in(v, key);
        sorted.emplace_back(std::move(key), v);
    }
    std::sort(sorted.begin(), sorted.end());
    const auto count = static_cast<std::int64_t>(terms.size());
    const Atom x = ints_.fresh("i", 0, count - 1);
    const auto formula = line(sorted[0].second, sorted[1].second, Poly::of(x));
    if (!formula) return std::nullopt;
    std::set<Value> left(terms.begin(), terms.end());
    for (std::int64_t k = 0; k < count; ++k) {
        if (left.erase(replace(*formula, {{x, Poly(k)}})) == 0) return std::nullopt;
    }
    return reduce(op, x, Poly(0), Poly(count), *formula);
}

Value Values::with_rows(Value v) {
    const std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode n = node(x);
        if (n.args.size() < fewest) return std::nullopt;
        if (n.kind == Kind::extreme) return row_of(n.name, n.args);
        if (n.kind != Kind::sum) return std::nullopt;
        std::vector<std::pair<Coefficient, std::vector<Value>>> groups;  // terms with one coefficient
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == n.weights[i]; });
            if (same == groups.end()) groups.emplace_back(n.weights[i], std::vector<Value>{n.args[i]});
            else same->second.push_back(n.args[i]);
        }
        bool found = false;
        std::vector<std::pair<Coefficient, Value>> terms;
        for (const auto& [weight, group] : groups) {
            if (const auto row = row_of("sum", group)) {
                terms.emplace_back(weight, *row);
                found = true;
            } else {
                for (Value t : group) terms.emplace_back(weight, t);
            }
        }
        return found ? std::optional(sum(n.number, std::move(terms))) : std::nullopt;
    };
    return rewritten(v, change);
}

}  // namespace tw::verify
