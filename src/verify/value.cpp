// Tags: constructors (numbers, elements, masks, sums).
#include "verify/value_keys.h"
#include "verify/work.h"

namespace tw::verify {

double Values::identity(const std::string& op) {
    if (op == "prod") return 1;
    if (op == "max") return -infinity;
    if (op == "min") return infinity;
    return 0;
}

// A maximum is minus infinity only where all of it is, and over a range that is taken to happen nowhere but for a body that is nothing
// else: a row that is masked by coordinates has an element, one that is masked by data may have none. A choice is one of its sides, a sum
// has the infinities of its terms, and the exponential of minus infinity is 0 (`find_signs`). Everything else passes an infinity on, of
// whichever sign.
void Values::mark_infinite(ValueNode& n) const {
    bool any_low = false, any_high = false, all_low = true, all_high = true;
    for (Value a : n.args) {
        const ValueNode& m = node(a);
        any_low |= m.low, any_high |= m.high;
        all_low &= m.low, all_high &= m.high;
        n.chosen |= m.chosen;
    }
    const bool is_extreme = n.kind == Kind::extreme || n.kind == Kind::reduce, is_choice = n.kind == Kind::function && n.name == "select";
    n.chosen |= is_choice && (any_low || any_high);
    if (n.kind == Kind::reduce && node(n.args[0]).kind != Kind::number && !n.chosen) all_low = all_high = false;
    if (n.kind == Kind::number) {
        n.low = n.number.infinite() && n.number.negative();
        n.high = n.number.infinite() && !n.number.negative();
    } else if (n.kind == Kind::where) {
        n.low = any_low;
        n.high = any_high;
    } else if (is_extreme && n.name == "max") {
        n.low = all_low;
        n.high = any_high;
    } else if (is_extreme && n.name == "min") {
        n.low = any_low;
        n.high = all_high;
    } else if (is_choice) {
        n.low = node(n.args[1]).low || node(n.args[2]).low;
        n.high = node(n.args[1]).high || node(n.args[2]).high;
    } else if (n.kind == Kind::sum) {
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            const ValueNode& m = node(n.args[i]);
            n.low |= n.weights[i].negative() ? m.high : m.low;
            n.high |= n.weights[i].negative() ? m.low : m.high;
        }
    } else if (n.kind == Kind::function && n.name == "exp" && !any_high) {
        n.low = n.high = false;
    } else {
        n.low = n.high = any_low || any_high;
    }
}

Value Values::intern(ValueNode n) {
    std::string key;
    append_key(key, static_cast<std::int64_t>(n.kind));
    key += '|';
    n.number.append_key(key);
    key += '|';
    append_key(key, std::int64_t{n.id});
    key += '|' + n.name + '|';
    for (const Poly& p : n.indices) {
        key += '[';
        append_key(key, p);
        key += ']';
    }
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        key += ',';
        append_key(key, std::int64_t{n.args[i]});
        if (i < n.weights.size()) {
            key += '^';
            n.weights[i].append_key(key);
        }
    }
    if (n.kind == Kind::where) {
        key += '?';
        append_key(key, n.condition);
    }
    if (n.kind == Kind::reduce) {
        key += '#';
        append_key(key, std::int64_t{n.variable});
        key += '(';
        append_key(key, n.lo);
        key += ':';
        append_key(key, n.hi);
        key += ')';
    }
    spend(200 + 2 * key.size());
    auto [it, fresh] = by_key_.emplace(std::move(key), static_cast<Value>(nodes_.size()));
    if (!fresh) return it->second;
    int height = 0;
    n.atoms.clear();  // of a node that this one was made from
    n.chosen = n.low = n.high = false;
    n.unknown_inside = n.kind == Kind::unknown;
    for (Value a : n.args) {
        height = std::max(height, node(a).height);
        n.unknown_inside |= node(a).unknown_inside;
        n.atoms.insert(n.atoms.end(), node(a).atoms.begin(), node(a).atoms.end());
    }
    mark_infinite(n);
    for (const Poly& p : n.indices) ints_.collect(p, n.atoms);
    if (n.kind == Kind::where) ints_.collect(n.condition, n.atoms);
    if (n.kind == Kind::reduce) {
        ints_.collect(n.lo, n.atoms);
        ints_.collect(n.hi, n.atoms);
    }
    std::sort(n.atoms.begin(), n.atoms.end());
    n.atoms.erase(std::unique(n.atoms.begin(), n.atoms.end()), n.atoms.end());
    n.height = height + (n.kind == Kind::reduce ? 1 : 0);
    nodes_.push_back(std::move(n));
    return it->second;
}

std::optional<Coefficient> Values::as_number(Value v) const {
    const ValueNode& n = node(v);
    if (n.kind == Kind::number) return n.number;
    return std::nullopt;
}

Value Values::number(const Coefficient& v) {
    ValueNode n;
    n.number = v;
    return intern(std::move(n));
}

Value Values::element(int tensor, std::vector<Poly> indices) {
    ValueNode n;
    n.kind = Kind::element;
    n.id = tensor;
    n.indices = std::move(indices);
    return intern(std::move(n));
}

Value Values::scalar(int id) {
    ValueNode n;
    n.kind = Kind::scalar;
    n.id = id;
    return intern(std::move(n));
}

Value Values::index(const Poly& p) {
    if (auto c = p.constant()) return number(*c);
    ValueNode n;
    n.kind = Kind::index;
    n.indices = {p};
    return intern(std::move(n));
}

Value Values::unknown(const std::string& why) {
    ValueNode n;
    n.kind = Kind::unknown;
    n.id = ++unknowns_;
    n.name = why;
    return intern(std::move(n));
}

// ------------------------------------------------------------------------------------------------------------------ masks

// If an argument is a `where`, builds where(c, make(then), make(otherwise)) with the other arguments seen under c.
Value Values::lift(const std::vector<Value>& args, const std::function<Value(const std::vector<Value>&)>& make, bool& lifted) {
    lifted = false;
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (node(args[i]).kind != Kind::where) continue;
        lifted = true;
        if (lifting_ >= most_lifted) return unknown("more than ten masks that have nothing to do with each other");
        const Condition c = node(args[i]).condition;
        std::vector<Value> yes = args, no = args;
        for (std::size_t j = 0; j < args.size(); ++j) {
            yes[j] = under(c, args[j], true);
            no[j] = under(c, args[j], false);
        }
        ++lifting_;
        const Value a = make(yes), b = make(no);
        --lifting_;
        return where(c, a, b);
    }
    return 0;
}

// v where c is known to hold (or not): only the masks at the top of v are looked at.
Value Values::under(const Condition& c, Value v, bool holds) {
    const ValueNode& n = node(v);
    if (n.kind != Kind::where) return v;
    if (n.condition == c) return under(c, n.args[holds ? 0 : 1], holds);
    const Condition opposite = negated(c);
    if (n.condition == opposite) return under(c, n.args[holds ? 1 : 0], holds);
    if (holds && c.kind == Condition::Kind::all && std::find(c.parts.begin(), c.parts.end(), n.condition) != c.parts.end()) {
        return under(c, n.args[0], holds);
    }
    const Value then = under(c, n.args[0], holds), otherwise = under(c, n.args[1], holds);
    return then == n.args[0] && otherwise == n.args[1] ? v : where(n.condition, then, otherwise);
}

Value Values::where(const Condition& c, Value then, Value otherwise) {
    if (c.is_yes()) return then;
    if (c.is_no()) return otherwise;
    then = under(c, then, true);
    otherwise = under(c, otherwise, false);
    if (then == otherwise) return then;
    if (c.kind == Condition::Kind::zero) {  // where(x == v, a, b)
        for (const auto& [m, k] : c.poly.terms) {
            if (m.size() != 1 || (k != 1 && k != -1)) continue;
            const Atom x = m[0];
            if (ints_.info(x).kind != AtomInfo::Kind::symbol) continue;
            const Poly v = k == 1 ? Poly::of(x) - c.poly : Poly::of(x) + c.poly;
            if (ints_.mentions(v, x)) continue;
            if (merging_ < 4) {
                ++merging_;
                const bool same = replace(otherwise, {{x, v}}) == then;  // b at x = v is a: the mask says nothing
                --merging_;
                if (same) return otherwise;
            }
            const AtomInfo& info = ints_.info(x);
            auto at = v.constant();
            if (at && info.lower && info.upper && *info.upper == *info.lower + 1) {
                auto blended =
                    *at == *info.upper ? interpolated(otherwise, then, x, *info.lower) : interpolated(then, otherwise, x, *info.lower);
                if (blended) return *blended;
            }
        }
    }
    // One order for nested masks with the same fill: where(a, where(b, x, f), f) == where(a and b, x, f).
    if (node(then).kind == Kind::where && node(then).args[1] == otherwise) {
        const ValueNode& inner = node(then);
        return where(both(c, inner.condition), inner.args[0], otherwise);
    }
    if (node(otherwise).kind == Kind::where && node(otherwise).args[0] == then) {  // where(a, x, where(b, x, f))
        const ValueNode& inner = node(otherwise);
        return where(either(c, inner.condition), then, inner.args[1]);
    }
    if (const auto whole = fold_to_one_end(c, then, otherwise)) return *whole;
    ValueNode n;
    n.kind = Kind::where;
    n.condition = c;
    n.args = {then, otherwise};
    return intern(std::move(n));
}

// ------------------------------------------------------------------------------------------------------------ sums, products

// Terms of weight 0 that may not go: what is then known of the sum.
std::optional<Value> Values::taken_away(const std::map<Value, Coefficient>& terms) {
    std::vector<Value> left;
    for (const auto& [v, c] : terms) {
        if (!c.zero()) left.push_back(v);
    }
    for (const auto& [v, c] : terms) {
        if (!c.zero()) continue;
        if (has_unknown(v)) return unknown("a difference of unknown values");
        if (may_be_infinite(v)) return unknown("a difference of what a fill may make infinite");
        if (!may_cancel(v, left)) return unknown("a difference of what has a value only in places");
    }
    return std::nullopt;
}

Value Values::sum(Coefficient constant, std::vector<std::pair<Coefficient, Value>> terms) {
    std::vector<Value> args;
    for (const auto& t : terms) args.push_back(t.second);
    bool lifted = false;
    const Value masked = lift(
        args,
        [&](const std::vector<Value>& a) {
            std::vector<std::pair<Coefficient, Value>> list;
            for (std::size_t i = 0; i < a.size(); ++i) list.emplace_back(terms[i].first, a[i]);
            return sum(constant, std::move(list));
        },
        lifted);
    if (lifted) return masked;
    std::map<Value, Coefficient> collected;
    Poly integer;  // integer indices add up as polynomials
    bool has_integer = false;
    std::function<void(const Coefficient&, Value)> add = [&](const Coefficient& c, Value v) {
        const ValueNode& n = node(v);
        if (n.kind == Kind::number && !c.zero()) {
            constant += c * n.number;
        } else if (n.kind == Kind::sum) {
            const ValueNode& copy = n;
            constant += c * copy.number;
            for (std::size_t i = 0; i < copy.args.size(); ++i) add(c * copy.weights[i], copy.args[i]);
        } else if (n.kind == Kind::index && c.small_integer() && std::abs(c.as_integer()) < 1000000000) {
            integer = integer + Poly(c.as_integer()) * n.indices[0];
            has_integer = true;
        } else {
            collected[v] += c;
        }
    };
    for (const auto& [c, v] : terms) add(c, v);
    if (has_integer) {
        constant += Coefficient(integer.constant_part());
        integer = integer - Poly(integer.constant_part());
        if (!integer.terms.empty()) {
            ValueNode n;
            n.kind = Kind::index;
            n.indices = {integer};
            collected[intern(std::move(n))] += 1;
        }
    }
    for (const auto& [v, c] : collected) {
        if (has_unknown(v) && constant.infinite()) return unknown("a difference of unknown values");
    }
    if (const auto why = taken_away(collected)) return *why;
    std::erase_if(collected, [](const auto& term) { return term.second.zero(); });
    if (constant.infinite()) return number(constant);
    if (constant.is_nan()) return unknown("infinity less infinity");
    if (has_integer && collected.size() == 1 && constant.small_integer()) {  // an integer is one, with its constant
        const auto& [only, factor] = *collected.begin();
        if (node(only).kind == Kind::index && factor == 1) return index(node(only).indices[0] + Poly(constant.as_integer()));
    }
    return merged_sums(constant, std::move(collected));
}

// Two tags of one shape whose integers differ by constants, as one tag in x: the first at x = zero, the second at zero + 1.
std::optional<Value> Values::interpolated(Value a, Value b, Atom x, std::int64_t zero) {
    if (a == b) return a;
    const ValueNode &m = node(a), &n = node(b);
    if (m.kind != n.kind || m.name != n.name || m.id != n.id || m.weights != n.weights || m.args.size() != n.args.size() ||
        m.indices.size() != n.indices.size())
        return std::nullopt;
    if (m.number != n.number) return std::nullopt;
    bool ok = true;
    auto blend = [&](const Poly& p, const Poly& q) {
        auto d = (q - p).constant();
        if (!d) ok = false;
        return ok && *d ? p + Poly(*d) * (Poly::of(x) - Poly(zero)) : p;
    };
    std::vector<Value> args;
    for (std::size_t i = 0; i < m.args.size(); ++i) {
        auto v = interpolated(m.args[i], n.args[i], x, zero);
        if (!v) return std::nullopt;
        args.push_back(*v);
    }
    std::vector<Poly> indices;
    for (std::size_t i = 0; i < m.indices.size(); ++i) indices.push_back(blend(m.indices[i], n.indices[i]));
    if (!ok) return std::nullopt;
    switch (m.kind) {
        case Kind::element: return element(m.id, indices);
        case Kind::index: return index(indices[0]);
        case Kind::function: return apply(m.name, args);
        case Kind::where: {
            if (m.condition.kind != n.condition.kind || m.condition.parts.size() != n.condition.parts.size()) return std::nullopt;
            Condition c;
            auto part = [&](const Condition& p, const Condition& q) {
                if (p.kind != q.kind || !p.parts.empty() || !q.parts.empty()) ok = false;
                const Poly r = blend(p.poly, q.poly);
                Condition out = p;
                out.poly = r;
                return out;
            };
            if (m.condition.parts.empty()) c = part(m.condition, n.condition);
            else {
                for (std::size_t i = 0; i < m.condition.parts.size(); ++i) c = both(c, part(m.condition.parts[i], n.condition.parts[i]));
            }
            if (!ok) return std::nullopt;
            return where(c, args[0], args[1]);
        }
        default: return std::nullopt;
    }
}

}  // namespace tw::verify
