// Tags: substitution, simplification under facts, widening.
#include <set>

#include "verify/value_keys.h"
#include "verify/work.h"

namespace tw::verify {

Value Values::replace(Value v, const std::map<Atom, Poly>& with) {
    std::unordered_map<Value, Value> done;
    return replace(v, with, done);
}

Value Values::replace(Value v, const std::map<Atom, Poly>& with, std::unordered_map<Value, Value>& done) {
    if (const auto known = done.find(v); known != done.end()) return known->second;  // parts are shared
    const Value made = replace_parts(v, with, done);
    done.emplace(v, made);
    return made;
}

Value Values::replace_parts(Value v, const std::map<Atom, Poly>& with, std::unordered_map<Value, Value>& done) {
    const ValueNode& n = node(v);
    if (std::none_of(with.begin(), with.end(), [&](const auto& entry) { return mentions(v, entry.first); })) return v;
    switch (n.kind) {
        case Kind::number:
        case Kind::scalar:
        case Kind::unknown: return v;
        case Kind::element: {
            std::vector<Poly> indices;
            for (const Poly& p : n.indices) indices.push_back(ints_.replace(p, with));
            return element(n.id, std::move(indices));
        }
        case Kind::index: return index(ints_.replace(n.indices[0], with));
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], replace(n.args[i], with, done));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(replace(n.args[i], with, done), n.weights[i]);
            return product(std::move(bases));
        }
        case Kind::function: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(replace(a, with, done));
            return apply(n.name, std::move(args));
        }
        case Kind::extreme: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(replace(a, with, done));
            return extreme(n.name, std::move(args));
        }
        case Kind::where: return where(ints_.replace(n.condition, with), replace(n.args[0], with, done), replace(n.args[1], with, done));
        case Kind::reduce: {
            if (with.count(n.variable)) {
                std::map<Atom, Poly> fewer = with;
                fewer.erase(n.variable);
                return replace(v, fewer);
            }
            // Renamed where a replacement would be captured.
            const bool captures =
                std::any_of(with.begin(), with.end(), [&](const auto& entry) { return ints_.mentions(entry.second, n.variable); });
            if (!captures)
                return reduce(n.name, n.variable, ints_.replace(n.lo, with), ints_.replace(n.hi, with), replace(n.args[0], with, done));
            const Atom y = ints_.fresh("i");
            std::map<Atom, Poly> more = with;
            more[n.variable] = Poly::of(y);
            return reduce(n.name, y, ints_.replace(n.lo, with), ints_.replace(n.hi, with), replace(n.args[0], more));
        }
    }
    return v;
}

Value Values::substitute(Value v, Value from, Value to) {
    if (v == from) return to;
    const ValueNode& n = node(v);
    if (n.args.empty() || n.height < node(from).height) return v;
    std::vector<Value> args;
    for (Value a : n.args) args.push_back(substitute(a, from, to));
    if (args == n.args) return v;
    switch (n.kind) {
        case Kind::sum:
        case Kind::product: {
            std::vector<std::pair<Coefficient, Value>> terms;
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < args.size(); ++i) {
                terms.emplace_back(n.weights[i], args[i]);
                bases.emplace_back(args[i], n.weights[i]);
            }
            return n.kind == Kind::sum ? sum(n.number, std::move(terms)) : product(std::move(bases));
        }
        case Kind::function: return apply(n.name, std::move(args));
        case Kind::extreme: return extreme(n.name, std::move(args));
        case Kind::where: return where(n.condition, args[0], args[1]);
        case Kind::reduce: return v;  // not under a binder: `to` could be captured
        default: return v;
    }
}

Poly Values::absorbed(const Poly& p) {
    for (const auto kind : {AtomInfo::Kind::minimum, AtomInfo::Kind::maximum}) {
        const auto all = ints_.alternatives(p, kind);
        if (all.size() < 2) continue;
        Poly result = all.front();
        for (const Poly& one : all) result = kind == AtomInfo::Kind::minimum ? ints_.minimum(result, one) : ints_.maximum(result, one);
        return result;
    }
    return p;
}

// The element of an index tensor where the promises and the facts say what it is: the group of a row that lies between the offsets
// of a group, or what a permutation makes of its inverse.
std::optional<Poly> Values::promised_value(Atom a) {
    const AtomInfo info = ints_.info(a);
    const auto& promises = ints_.promises;
    if (static_cast<std::size_t>(info.tensor) >= promises.size() || info.args.size() != 1) return std::nullopt;
    const Poly& index = info.args[0];
    const auto& terms = index.terms;
    for (std::size_t t = 0; t < promises.size(); ++t) {
        if (promises[t].offsets_of == info.tensor) {
            std::vector<Atom> atoms;
            for (const Condition& f : prover_.facts()) ints_.collect(f, atoms);
            ints_.collect(index, atoms);
            std::set<Poly> groups;
            for (Atom x : atoms) {
                if (ints_.info(x).kind == AtomInfo::Kind::element && ints_.info(x).tensor == static_cast<int>(t))
                    groups.insert(ints_.info(x).args[0]);
            }
            for (const Poly& e : groups) {
                if (groups.count(e + Poly(1)) && !(e == Poly::of(a)) && prover_.holds(equals(Poly::of(a), e))) return e;
            }
        }
    }
    // In a tile of a table, every row's group is that of the first row.
    for (std::size_t t = 0; t < promises.size(); ++t) {
        if (promises[t].tile_groups != info.tensor) continue;
        std::vector<Atom> atoms;
        ints_.collect(index, atoms);
        for (Atom x : atoms) {
            if (ints_.info(x).kind != AtomInfo::Kind::element || ints_.info(x).tensor != promises[t].tile_starts || index == Poly::of(x))
                continue;
            const Poly leader = ints_.element(info.tensor, {Poly::of(x)});
            const Poly end = ints_.element(static_cast<int>(t), ints_.info(x).args);
            // The end has to be in the query for the law to be found.
            if (prover_.holds_given(less(index, end), equals(Poly::of(a), leader)) && prover_.holds(less(index, end))) return leader;
        }
    }
    if (terms.size() != 1 || terms.begin()->second != 1 || terms.begin()->first.size() != 1) return std::nullopt;
    const AtomInfo inner = ints_.info(terms.begin()->first[0]);
    if (inner.kind != AtomInfo::Kind::element || static_cast<std::size_t>(inner.tensor) >= promises.size()) return std::nullopt;
    const bool inverse = promises[static_cast<std::size_t>(info.tensor)].inverse_of == inner.tensor ||
                         promises[static_cast<std::size_t>(inner.tensor)].inverse_of == info.tensor;
    const Poly& x = inner.args[0];
    if (inverse && prover_.holds(both(at_least(x, Poly(0)), less(x, promises[static_cast<std::size_t>(inner.tensor)].dims[0])))) return x;
    return std::nullopt;
}

Poly Values::simplified(const Poly& p) {
    if (p.constant()) return p;
    const auto key = std::make_pair(prover_.state(), p);
    const auto known = simplified_polys_.find(key);
    if (known != simplified_polys_.end()) return known->second;
    Poly result = simplify(p);
    simplified_polys_.emplace(key, result);
    return result;
}

Poly Values::simplify(const Poly& p) {
    spend(60 + 10 * p.terms.size());
    std::map<Atom, Poly> decided;
    std::vector<Atom> atoms;
    ints_.collect(p, atoms);
    std::sort(atoms.begin(), atoms.end());
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    for (Atom a : atoms) {
        const AtomInfo& info = ints_.info(a);
        if (info.kind == AtomInfo::Kind::minimum || info.kind == AtomInfo::Kind::maximum) {
            const bool less_first = prover_.holds(at_least(info.args[1], info.args[0]));
            const bool is_min = info.kind == AtomInfo::Kind::minimum;
            if (less_first) decided[a] = info.args[is_min ? 0 : 1];
            else if (prover_.holds(at_least(info.args[0], info.args[1]))) decided[a] = info.args[is_min ? 1 : 0];
        }
        if (info.kind == AtomInfo::Kind::quotient) {
            if (const auto d = info.args[1].constant(); d && *d > 0) {
                if (auto q = prover_.quotient_value(info.args[0], *d)) decided[a] = Poly(*q);
            }
        }
        if (info.kind == AtomInfo::Kind::element) {
            if (auto known = promised_value(a)) decided[a] = *known;
        }
        if (info.kind == AtomInfo::Kind::choice) {
            if (prover_.holds(info.condition)) decided[a] = info.args[0];
            else if (prover_.holds(negated(info.condition))) decided[a] = info.args[1];
        }
    }
    if (!decided.empty()) {
        const Poly next = ints_.replace(p, decided);
        return ints_.promises.empty() || next == p ? next : simplified(next);  // an element may stand inside what was decided
    }
    for (Atom a : atoms) {  // no tile, one, or one and a rest
        const AtomInfo& info = ints_.info(a);
        if (info.kind != AtomInfo::Kind::quotient) continue;
        for (int count : {0, 1, 2}) {
            if (prover_.holds(equals(Poly::of(a), Poly(count)))) return simplified(ints_.replace(p, {{a, Poly(count)}}));
        }
    }
    // No rest: b * (n // b) is n, and b * ((n + b - 1) // b) too.
    for (const auto& [monomial, coefficient] : p.terms) {
        if (monomial.size() != 1) continue;
        const AtomInfo& info = ints_.info(monomial[0]);
        if (info.kind != AtomInfo::Kind::quotient) continue;
        const auto divisor = info.args[1].constant();
        if (!divisor || *divisor <= 1 || coefficient % *divisor != 0) continue;
        const auto constant = info.args[0].terms.find({});
        const std::int64_t rest = constant == info.args[0].terms.end() ? 0 : constant->second;
        if (rest < 0 || rest >= *divisor) continue;
        const Poly whole = info.args[0] - Poly(rest);
        if (prover_.holds(equals(Poly(*divisor) * Poly::of(monomial[0]), whole)))
            return simplified(p - Poly(coefficient) * Poly::of(monomial[0]) + Poly(coefficient / *divisor) * whole);
    }
    // Whole tiles and all tiles of one size, n // b and (n + b - 1) // b: the facts may say that they are equal or one apart.
    for (Atom a : atoms) {
        for (Atom b : atoms) {
            const AtomInfo &x = ints_.info(a), &y = ints_.info(b);
            if (x.kind != AtomInfo::Kind::quotient || y.kind != AtomInfo::Kind::quotient || !(x.args[1] == y.args[1])) continue;
            const auto more = (x.args[0] - y.args[0]).constant(), divisor = y.args[1].constant();
            if (!more || !divisor || *more <= 0 || *more >= *divisor) continue;
            for (int apart : {0, 1}) {
                if (prover_.holds(equals(Poly::of(a), Poly::of(b) + Poly(apart))))
                    return ints_.replace(p, {{a, Poly::of(b) + Poly(apart)}});
            }
        }
    }
    return p;
}

Value Values::simplified(Value v) {
    if (merging_ != 0 || opening_ != 0) return simplify(v);  // constructors do less then: not what is asked for otherwise
    const auto key = static_cast<std::uint64_t>(prover_.state()) << 32 | static_cast<std::uint32_t>(v);
    const auto known = simplified_values_.find(key);
    if (known != simplified_values_.end()) return known->second;
    const Value result = simplify(v);
    simplified_values_.emplace(key, result);
    return result;
}

Value Values::simplify(Value v) {
    spend(60);
    const ValueNode& n = node(v);
    switch (n.kind) {
        case Kind::where: {
            if (prover_.holds(n.condition)) return simplified(n.args[0]);
            if (prover_.holds(negated(n.condition))) return simplified(n.args[1]);
            if (n.condition.kind == Condition::Kind::all) {  // drop the parts that hold
                Condition rest;
                for (const Condition& p : n.condition.parts) {
                    if (!prover_.holds(p)) rest = both(rest, p);
                }
                prover_.push();
                prover_.assume(rest);
                const Value then = simplified(n.args[0]);
                prover_.pop();
                return where(rest, then, simplified(n.args[1]));
            }
            prover_.push();
            prover_.assume(n.condition);
            const Value then = simplified(n.args[0]);
            prover_.pop();
            prover_.push();
            prover_.assume(negated(n.condition));
            const Value otherwise = simplified(n.args[1]);
            prover_.pop();
            return where(n.condition, then, otherwise);
        }
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], simplified(n.args[i]));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(simplified(n.args[i]), n.weights[i]);
            return product(std::move(bases));
        }
        case Kind::function: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(simplified(a));
            return apply(n.name, std::move(args));
        }
        case Kind::extreme: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(simplified(a));
            return extreme(n.name, std::move(args));
        }
        case Kind::reduce: {
            const Poly lo = simplified(n.lo), hi = simplified(n.hi);
            if (prover_.holds(at_least(lo, hi))) return number(identity(n.name));
            // The bound variable speaks for itself, unless a fact or an end of the range speaks of another one of that name. A name
            // that stays lets what was found out about the body be found again.
            const bool taken = prover_.mentions(n.variable) || ints_.mentions(lo, n.variable) || ints_.mentions(hi, n.variable);
            const Atom y = taken ? ints_.fresh("i") : n.variable;
            Value body = taken ? replace(n.args[0], {{n.variable, Poly::of(y)}}) : n.args[0];
            prover_.push();
            prover_.assume(at_least(Poly::of(y), lo));
            prover_.assume(less(Poly::of(y), hi));
            body = simplified(body);
            prover_.pop();
            return reduce(n.name, y, lo, hi, body);
        }
        case Kind::index: return index(simplified(n.indices[0]));
        case Kind::element: {
            std::vector<Poly> indices;
            for (const Poly& p : n.indices) indices.push_back(simplified(p));
            return element(n.id, std::move(indices));
        }
        default: return v;
    }
}

// max(0, min(b, n - b k)), the part of n that the k-th of pieces of b holds, summed over the k from `first` on: max(0, min(n - b first, b
// (k - first))).
std::optional<Poly> Values::counted_before(const Poly& count, Atom k, const Poly& first) const {
    const std::vector<Poly> clipped = ints_.alternatives(count, AtomInfo::Kind::maximum);
    if (clipped.size() != 2 || (clipped[0].constant() != 0 && clipped[1].constant() != 0)) return std::nullopt;
    const std::vector<Poly> ends = ints_.alternatives(clipped[clipped[0].constant() == 0 ? 1 : 0], AtomInfo::Kind::minimum);
    if (ends.size() != 2) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
        const auto piece = ends[static_cast<std::size_t>(side)].constant();
        const Poly& left = ends[static_cast<std::size_t>(1 - side)];
        if (!piece || *piece <= 0 || left.linear_in(k) != -*piece) continue;
        const Poly all = left + Poly(*piece) * Poly::of(k);
        if (ints_.mentions(all, k)) continue;
        return ints_.maximum(Poly(0), ints_.minimum(all - Poly(*piece) * first, Poly(*piece) * (Poly::of(k) - first)));
    }
    return std::nullopt;
}

namespace {

bool falls_with(const Integers& ints, const Poly& p, Atom k) {
    for (const auto& [monomial, coefficient] : p.terms) {
        if (monomial == Monomial{k}) return coefficient < 0;
        for (Atom a : monomial) {
            const AtomInfo& info = ints.info(a);
            if (info.kind != AtomInfo::Kind::minimum && info.kind != AtomInfo::Kind::maximum) continue;
            if (coefficient > 0 && std::any_of(info.args.begin(), info.args.end(), [&](const Poly& x) { return falls_with(ints, x, k); }))
                return true;
        }
    }
    return false;
}

}  // namespace

Value Values::widened(Value v, Atom k, const Poly& first) {
    const ValueNode& n = node(v);
    const std::map<Atom, Poly> before = {{k, Poly::of(k) - Poly(1)}}, start = {{k, first}};
    switch (n.kind) {
        case Kind::reduce: {
            const Atom y = ints_.fresh("i");
            const Value body = widened(replace(n.args[0], {{n.variable, Poly::of(y)}}), k, first);
            // A loop that goes through its range from the end: what it has seen reaches from where it was to where it began.
            if (falls_with(ints_, n.lo, k)) return reduce(n.name, y, ints_.replace(n.lo, before), ints_.replace(n.hi, start), body);
            const bool grows = ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k);
            return reduce(n.name, y, grows ? ints_.replace(n.lo, start) : n.lo, ints_.replace(n.hi, before), body);
        }
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], widened(n.args[i], k, first));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(widened(n.args[i], k, first), n.weights[i]);
            return product(std::move(bases));
        }
        case Kind::function: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(widened(a, k, first));
            return apply(n.name, std::move(args));
        }
        case Kind::extreme: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(widened(a, k, first));
            return extreme(n.name, std::move(args));
        }
        case Kind::where: return where(ints_.replace(n.condition, before), widened(n.args[0], k, first), widened(n.args[1], k, first));
        case Kind::index:
            if (const auto counted = counted_before(n.indices[0], k, first)) return index(*counted);
            return replace(v, before);
        default: return replace(v, before);
    }
}

Value Values::with_elements(Value v, const std::function<std::optional<Value>(int, const std::vector<Poly>&)>& replaced) {
    return rewritten(v, [&](Value x) -> std::optional<Value> {
        const ValueNode& n = node(x);
        return n.kind == Kind::element ? replaced(n.id, n.indices) : std::nullopt;
    });
}

Value Values::with_digits_apart(Value v) {
    std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode n = node(x);
        const auto lo = n.lo.constant(), hi = n.hi.constant();
        if (n.kind != Kind::reduce || !lo || !hi || (n.name != "sum" && n.name != "max" && n.name != "min")) return std::nullopt;
        std::int64_t by = 0;  // the smallest number that divides the variable
        for (const Atom a : node(n.args[0]).atoms) {
            const AtomInfo& info = ints_.info(a);
            if (info.kind != AtomInfo::Kind::quotient || !info.args[0].linear_in(n.variable).value_or(0)) continue;
            const auto d = info.args[1].constant();
            const std::int64_t step = *info.args[0].linear_in(n.variable);
            if (!d || *d < 2 || step < 1 || *d % step != 0 || *d == step) continue;
            if (const std::int64_t each = *d / step; *lo % each == 0 && *hi % each == 0 && (by == 0 || each < by)) by = each;
        }
        if (by == 0 || *hi - *lo <= by) return std::nullopt;
        const Atom high = ints_.fresh("i", *lo / by, *hi / by - 1), low = ints_.fresh("i", 0, by - 1);
        const Value body = rewritten(replace(n.args[0], {{n.variable, Poly(by) * Poly::of(high) + Poly::of(low)}}), change);
        return reduce(n.name, high, Poly(*lo / by), Poly(*hi / by), reduce(n.name, low, Poly(0), Poly(by), body));
    };
    return rewritten(v, change);
}

Value Values::with_extremes(Value v) {
    std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode& n = node(x);
        if (n.kind != Kind::function || n.name != "select" || n.args.size() != 3) return std::nullopt;
        const ValueNode& c = node(n.args[0]);
        if (c.kind != Kind::function || c.args.size() != 2) return std::nullopt;
        const bool above = c.name == "gt" || c.name == "ge", below = c.name == "lt" || c.name == "le";
        const bool straight = c.args[0] == n.args[1] && c.args[1] == n.args[2], turned = c.args[0] == n.args[2] && c.args[1] == n.args[1];
        if ((!above && !below) || (!straight && !turned) || may_be_infinite(x)) return std::nullopt;
        const std::string op = above == straight ? "max" : "min";
        const Value a = rewritten(n.args[1], change), b = rewritten(n.args[2], change);
        return extreme(op, {a, b});
    };
    return rewritten(v, change);
}

// Folds of a constant, small number of elements as the sum or extreme value of those; the whole value as it was where that makes it long.
Value Values::written_out(Value v, std::int64_t longest, std::int64_t most) {
    std::int64_t written = 0;
    std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode& n = node(x);
        if (n.kind != Kind::reduce || (n.name != "sum" && n.name != "max" && n.name != "min")) return std::nullopt;
        auto count = n.hi.minus_if_constant(n.lo);
        if (!count &&
            prover_.holds(both(at_least(n.hi, n.lo), at_least(n.lo + Poly(4), n.hi)))) {  // an edge leaves a number that only the facts say
            for (std::int64_t c = 0; c <= 4 && !count; ++c) {
                if (prover_.holds(equals(n.hi, n.lo + Poly(c)))) count = c;
            }
        }
        if (count == 0) return number(identity(n.name));
        if (!count || *count < 1 || *count > longest || (written += *count) > most) return std::nullopt;
        std::vector<Value> terms;
        const Poly first = n.lo.constant() ? n.hi - Poly(*count) : n.lo;  // in terms of the index that the elements have
        for (std::int64_t i = 0; i < *count; ++i) terms.push_back(rewritten(replace(n.args[0], {{n.variable, first + Poly(i)}}), change));
        if (n.name != "sum") return extreme(n.name, std::move(terms));
        std::vector<std::pair<Coefficient, Value>> added;
        for (Value t : terms) added.emplace_back(1.0, t);
        return sum(0, std::move(added));
    };
    const Value result = rewritten(v, change);
    return written > most ? v : result;
}

std::optional<Value> Values::turned(Value v) {
    const ValueNode outer = node(v);
    if (outer.kind != Kind::reduce || (outer.name != "sum" && outer.name != "max" && outer.name != "min")) return std::nullopt;
    const ValueNode inner = node(outer.args[0]);
    if (inner.kind != Kind::reduce || inner.name != outer.name || ints_.mentions(inner.lo, outer.variable) ||
        ints_.mentions(inner.hi, outer.variable))
        return std::nullopt;
    const Atom x = ints_.fresh("i"), y = ints_.fresh("i");
    const Value body = replace(inner.args[0], {{inner.variable, Poly::of(y)}, {outer.variable, Poly::of(x)}});
    return reduce(outer.name, y, inner.lo, inner.hi, reduce(outer.name, x, outer.lo, outer.hi, body));
}

std::set<Poly> Values::ends(Value v) const {
    std::set<Poly> found;
    std::set<Atom> bound;
    std::set<Value> seen;
    std::function<void(Value)> look = [&](Value x) {
        if (!seen.insert(x).second) return;
        const ValueNode& n = node(x);
        if (n.kind == Kind::reduce) {
            found.insert(n.hi);
            bound.insert(n.variable);
        }
        for (Value a : n.args) look(a);
    };
    look(v);
    std::erase_if(found,
                  [&](const Poly& p) { return std::any_of(bound.begin(), bound.end(), [&](Atom a) { return ints_.mentions(p, a); }); });
    return found;
}

Value Values::with_ends(Value v, const std::map<Poly, Poly>& with) {
    std::function<std::optional<Value>(Value)> change = [&](Value x) -> std::optional<Value> {
        const ValueNode& n = node(x);
        if (n.kind != Kind::reduce || !with.count(n.hi)) return std::nullopt;
        const Atom y = ints_.fresh("i");
        return reduce(n.name, y, n.lo, with.at(n.hi), rewritten(replace(n.args[0], {{n.variable, Poly::of(y)}}), change));
    };
    return rewritten(v, change);
}

Value Values::rewritten(Value v, const std::function<std::optional<Value>(Value)>& change) {
    if (const auto changed = change(v)) return *changed;
    const ValueNode& n = node(v);
    auto inner = [&](Value x) { return rewritten(x, change); };
    switch (n.kind) {
        case Kind::sum: {
            std::vector<std::pair<Coefficient, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], inner(n.args[i]));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, Coefficient>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(inner(n.args[i]), n.weights[i]);
            return product(std::move(bases));
        }
        case Kind::function:
        case Kind::extreme: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(inner(a));
            return n.kind == Kind::function ? apply(n.name, std::move(args)) : extreme(n.name, std::move(args));
        }
        case Kind::where: {
            prover_.push();
            prover_.assume(n.condition);
            const Value then = inner(n.args[0]);
            prover_.pop();
            prover_.push();
            prover_.assume(negated(n.condition));
            const Value otherwise = inner(n.args[1]);
            prover_.pop();
            return where(n.condition, then, otherwise);
        }
        case Kind::reduce: {
            const auto low = n.lo.constant(), end = n.hi.constant();
            const bool bounded = low && end && *low < *end;  // quotients of it may then be settled where they are made
            const Atom y = bounded ? ints_.fresh("i", *low, *end - 1) : ints_.fresh("i");
            prover_.push();
            prover_.assume(at_least(Poly::of(y), n.lo));
            prover_.assume(less(Poly::of(y), n.hi));
            const Value body = inner(replace(n.args[0], {{n.variable, Poly::of(y)}}));
            prover_.pop();
            return reduce(n.name, y, n.lo, n.hi, body);
        }
        default: return v;
    }
}

bool Values::mentions(Value v, Atom a) const {
    const std::vector<Atom>& atoms = node(v).atoms;
    return std::binary_search(atoms.begin(), atoms.end(), a);
}

}  // namespace tw::verify
