// Tags: constructors (numbers, elements, masks, sums, products, functions).
#include "verify/value_keys.h"

namespace tw::verify {

double Values::identity(const std::string& op) {
    if (op == "prod") return 1;
    if (op == "max") return -infinity;
    if (op == "min") return infinity;
    return 0;
}

// A maximum is minus infinity only where all of it is, and over a range that is taken to happen nowhere but for a body that is nothing
// else: a masked row has an element. Everything else passes an infinity on, of whichever sign.
void Values::mark_infinite(ValueNode& n) const {
    bool any_low = false, any_high = false, all_low = true, all_high = true;
    for (Value a : n.args) {
        const ValueNode& m = node(a);
        any_low |= m.low, any_high |= m.high;
        all_low &= m.low, all_high &= m.high;
    }
    const bool is_extreme = n.kind == Kind::extreme || n.kind == Kind::reduce;
    if (n.kind == Kind::reduce && node(n.args[0]).kind != Kind::number) all_low = all_high = false;
    if (n.kind == Kind::number) {
        n.low = n.number == -infinity;
        n.high = n.number == infinity;
    } else if (n.kind == Kind::where) {
        n.low = any_low;
        n.high = any_high;
    } else if (is_extreme && n.name == "max") {
        n.low = all_low;
        n.high = any_high;
    } else if (is_extreme && n.name == "min") {
        n.low = any_low;
        n.high = all_high;
    } else {
        n.low = n.high = any_low || any_high;
    }
}

Value Values::intern(ValueNode n) {
    std::string key;
    append_key(key, static_cast<std::int64_t>(n.kind));
    key += '|' + number_key(n.number) + '|';
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
        if (i < n.weights.size()) key += '^' + number_key(n.weights[i]);
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
    auto [it, fresh] = by_key_.emplace(std::move(key), static_cast<Value>(nodes_.size()));
    if (!fresh) return it->second;
    int height = 0;
    n.atoms.clear();   // of a node that this one was made from
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

std::optional<double> Values::as_number(Value v) const {
    const ValueNode& n = node(v);
    if (n.kind == Kind::number) return n.number;
    return std::nullopt;
}

Value Values::number(double v) {
    ValueNode n;
    n.number = snapped(v);
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
    if (auto c = p.constant()) return number(static_cast<double>(*c));
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
        const Condition c = node(args[i]).condition;
        std::vector<Value> yes = args, no = args;
        for (std::size_t j = 0; j < args.size(); ++j) {
            yes[j] = under(c, args[j], true);
            no[j] = under(c, args[j], false);
        }
        const Value a = make(yes), b = make(no);
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
    if (c.kind == Condition::Kind::zero) {   // where(x == v, a, b)
        for (const auto& [m, k] : c.poly.terms) {
            if (m.size() != 1 || (k != 1 && k != -1)) continue;
            const Atom x = m[0];
            if (ints_.info(x).kind != AtomInfo::Kind::symbol) continue;
            const Poly v = k == 1 ? Poly::of(x) - c.poly : Poly::of(x) + c.poly;
            if (ints_.mentions(v, x)) continue;
            if (merging_ < 4) {
                ++merging_;
                const bool same = replace(otherwise, {{x, v}}) == then;   // b at x = v is a: the mask says nothing
                --merging_;
                if (same) return otherwise;
            }
            const AtomInfo& info = ints_.info(x);
            auto at = v.constant();
            if (at && info.lower && info.upper && *info.upper == *info.lower + 1) {
                auto blended = *at == *info.upper ? interpolated(otherwise, then, x, *info.lower) : interpolated(then, otherwise, x, *info.lower);
                if (blended) return *blended;
            }
        }
    }
    // One order for nested masks with the same fill: where(a, where(b, x, f), f) == where(a and b, x, f).
    if (node(then).kind == Kind::where && node(then).args[1] == otherwise) {
        const ValueNode& inner = node(then);
        return where(both(c, inner.condition), inner.args[0], otherwise);
    }
    if (node(otherwise).kind == Kind::where && node(otherwise).args[0] == then) {   // where(a, x, where(b, x, f))
        const ValueNode& inner = node(otherwise);
        return where(either(c, inner.condition), then, inner.args[1]);
    }
    ValueNode n;
    n.kind = Kind::where;
    n.condition = c;
    n.args = {then, otherwise};
    return intern(std::move(n));
}

// ------------------------------------------------------------------------------------------------------------ sums, products

Value Values::sum(double constant, std::vector<std::pair<double, Value>> terms) {
    std::vector<Value> args;
    for (const auto& t : terms) args.push_back(t.second);
    bool lifted = false;
    const Value masked = lift(args, [&](const std::vector<Value>& a) {
        std::vector<std::pair<double, Value>> list;
        for (std::size_t i = 0; i < a.size(); ++i) list.emplace_back(terms[i].first, a[i]);
        return sum(constant, std::move(list));
    }, lifted);
    if (lifted) return masked;
    std::map<Value, double> collected;
    Poly integer;   // integer indices add up as polynomials
    bool has_integer = false;
    std::function<void(double, Value)> add = [&](double c, Value v) {
        const ValueNode& n = node(v);
        if (c == 0) return;
        if (n.kind == Kind::number) {
            constant += c * n.number;
        } else if (n.kind == Kind::sum) {
            const ValueNode& copy = n;
            constant += c * copy.number;
            for (std::size_t i = 0; i < copy.args.size(); ++i) add(c * copy.weights[i], copy.args[i]);
        } else if (n.kind == Kind::index && c == std::round(c) && std::fabs(c) < 1e9) {
            integer = integer + Poly(static_cast<std::int64_t>(c)) * n.indices[0];
            has_integer = true;
        } else {
            collected[v] += c;
        }
    };
    for (const auto& [c, v] : terms) add(c, v);
    if (has_integer) {
        constant += static_cast<double>(integer.constant_part());
        integer = integer - Poly(integer.constant_part());
        if (!integer.terms.empty()) {
            ValueNode n;
            n.kind = Kind::index;
            n.indices = {integer};
            collected[intern(std::move(n))] += 1;
        }
    }
    for (const auto& [v, c] : collected) {
        if (has_unknown(v) && (snapped(c) == 0 || std::isinf(constant))) return unknown("a difference of unknown values");
        if (snapped(c) == 0 && may_be_infinite(v)) return unknown("a difference of what a fill may make infinite");
    }
    if (std::isinf(constant)) return number(constant);
    return merged_sums(constant, std::move(collected));
}

// Two tags of one shape whose integers differ by constants, as one tag in x: the first at x = zero, the second at zero + 1.
std::optional<Value> Values::interpolated(Value a, Value b, Atom x, std::int64_t zero) {
    if (a == b) return a;
    const ValueNode &m = node(a), &n = node(b);
    if (m.kind != n.kind || m.name != n.name || m.id != n.id || m.weights != n.weights || m.args.size() != n.args.size() || m.indices.size() != n.indices.size()) return std::nullopt;
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

Value Values::product(std::vector<std::pair<Value, double>> bases) {
    std::vector<Value> args;
    for (const auto& b : bases) args.push_back(b.first);
    bool lifted = false;
    const Value masked = lift(args, [&](const std::vector<Value>& a) {
        std::vector<std::pair<Value, double>> list;
        for (std::size_t i = 0; i < a.size(); ++i) list.emplace_back(a[i], bases[i].second);
        return product(std::move(list));
    }, lifted);
    if (lifted) return masked;
    double coefficient = 1;
    bool zero = false;   // an empty sum: whatever it is multiplied with (a power of an empty maximum, say) stays empty
    bool infinite = false;
    std::map<Value, double> collected;
    std::function<void(Value, double)> multiply = [&](Value v, double p) {
        const ValueNode& n = node(v);
        if (p == 0) return;
        if (n.kind == Kind::number) {
            zero |= n.number == 0 && p > 0;
            infinite |= std::isinf(n.number) && p > 0;
            coefficient *= std::pow(n.number, p);
        } else if (n.kind == Kind::product) {
            for (std::size_t i = 0; i < n.args.size(); ++i) multiply(n.args[i], p * n.weights[i]);
        } else if (n.kind == Kind::sum && n.args.size() == 1 && n.number == 0) {
            coefficient *= std::pow(n.weights[0], p);
            multiply(n.args[0], p);
        } else if (const Poly* i = n.kind == Kind::index && p == std::round(p) ? &n.indices[0] : nullptr; i && i->terms.size() == 1 && !(i->terms.begin()->second == 1 && i->terms.begin()->first.size() == 1)) {
            coefficient *= std::pow(static_cast<double>(i->terms.begin()->second), p);   // 8 * M * N as its factors: a count cancels part of another
            for (Atom a : i->terms.begin()->first) multiply(index(Poly::of(a)), p);
        } else {
            collected[v] += p;
        }
    };
    for (const auto& [v, p] : bases) multiply(v, p);
    if (zero || coefficient == 0) {
        // Of an unknown factor not even finiteness is known: 0 * NaN is NaN, and so is 0 times an infinite fill.
        for (const auto& [v, p] : collected) {
            if (has_unknown(v)) return v;
        }
        return infinite ? unknown("0 times infinity") : number(0);
    }
    for (const auto& [v, p] : collected) {
        if (has_unknown(v) && snapped(p) == 0) return unknown("a quotient of unknown values");
        if (snapped(p) == 0 && may_be_infinite(v)) return unknown("a quotient of what a fill may make infinite or zero");
    }
    // A sum times anything else is spread out, so that sums of products have one form; powers of sums up to 2 as well.
    for (auto it = collected.begin(); it != collected.end(); ++it) {
        const ValueNode& s = node(it->first);
        // An integer likewise where one of its terms may cancel: (N - n) / N is 1 - n / N.
        const bool integer = s.kind == Kind::index && s.indices[0].terms.size() > 1 && std::any_of(collected.begin(), collected.end(), [&](const auto& other) {
            if (other.second >= 0 || node(other.first).kind != Kind::index) return false;
            const auto& size = node(other.first).indices[0].terms;
            return size.size() == 1 && size.begin()->first.size() == 1 && s.indices[0].mentions(size.begin()->first[0]);
        });
        if (!(s.kind == Kind::sum || integer) || !(it->second == 1 || it->second == 2) || (collected.size() == 1 && it->second == 1)) continue;
        std::vector<std::pair<Value, double>> rest;
        for (const auto& [v, p] : collected) {
            if (v != it->first) rest.emplace_back(v, p);
        }
        if (it->second == 2) rest.emplace_back(it->first, 1);
        std::vector<std::pair<double, Value>> spread;
        const Value others = product(rest);
        if (integer) {
            for (const auto& [factors, times] : s.indices[0].terms) {
                std::vector<std::pair<Value, double>> one{{others, 1}};
                for (Atom a : factors) one.emplace_back(index(Poly::of(a)), 1);
                spread.emplace_back(coefficient * static_cast<double>(times), product(std::move(one)));
            }
            return sum(0, std::move(spread));
        }
        for (std::size_t i = 0; i < s.args.size(); ++i) spread.emplace_back(coefficient * s.weights[i], product({{s.args[i], 1}, {others, 1}}));
        if (s.number != 0) spread.emplace_back(coefficient * s.number, others);
        return sum(0, std::move(spread));
    }
    while (unite_products(collected)) {
    }
    ValueNode n;
    n.kind = Kind::product;
    for (const auto& [v, p] : collected) {
        if (snapped(p) == 0) continue;
        n.args.push_back(v);
        n.weights.push_back(snapped(p));
    }
    Value result;
    if (n.args.empty()) return number(coefficient);
    if (std::all_of(n.args.begin(), n.args.end(), [&](Value v) { return node(v).kind == Kind::index; }) && std::all_of(n.weights.begin(), n.weights.end(), [](double p) { return p == std::round(p) && p > 0 && p < 8; })) {
        Poly whole(1);   // and an integer again where nothing else is left
        for (std::size_t i = 0; i < n.args.size(); ++i) {
            for (int times = 0; times < static_cast<int>(n.weights[i]); ++times) whole = whole * node(n.args[i]).indices[0];
        }
        result = index(whole);
    } else if (n.args.size() == 1 && n.weights[0] == 1) result = n.args[0];
    else result = intern(std::move(n));
    if (snapped(coefficient) == 1) return result;
    return sum(0, {{coefficient, result}});
}

// exp(number + sum c t) == e^number * product exp(t)^c, with exp(t) an atomic base.
Value Values::exponential(Value a) {
    const ValueNode& n = node(a);
    if (n.kind == Kind::number) return number(std::exp(n.number));
    std::vector<std::pair<Value, double>> bases;
    double scale = 1;
    auto base = [&](Value t) {
        const ValueNode& tn = node(t);
        if (tn.kind == Kind::function && tn.name == "log") return tn.args[0];
        ValueNode e;
        e.kind = Kind::function;
        e.name = "exp";
        e.args = {t};
        return intern(std::move(e));
    };
    if (n.kind == Kind::sum) {
        scale = std::exp(n.number);
        for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(base(n.args[i]), n.weights[i]);
    } else {
        bases.emplace_back(base(a), 1);
    }
    if (scale != 1) bases.emplace_back(number(scale), 1);
    return product(std::move(bases));
}

Value Values::logarithm(Value a) {
    const ValueNode& n = node(a);
    auto log_of = [&](Value v) {
        const ValueNode& vn = node(v);
        if (vn.kind == Kind::function && vn.name == "exp") return vn.args[0];
        ValueNode e;
        e.kind = Kind::function;
        e.name = "log";
        e.args = {v};
        return intern(std::move(e));
    };
    if (n.kind == Kind::number) return number(std::log(n.number));
    if (n.kind == Kind::product) {
        std::vector<std::pair<double, Value>> terms;
        for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], log_of(n.args[i]));
        return sum(0, std::move(terms));
    }
    if (n.kind == Kind::sum && n.args.size() == 1 && n.number == 0 && n.weights[0] > 0) {
        return sum(std::log(n.weights[0]), {{1, logarithm(n.args[0])}});
    }
    return log_of(a);
}

Condition Values::condition_of(Value v, bool& ok) {
    const ValueNode& n = node(v);
    Condition c;
    ok = true;
    if (n.kind == Kind::number) {
        c.kind = n.number != 0 ? Condition::Kind::yes : Condition::Kind::no;
        return c;
    }
    if (n.kind == Kind::where) {   // where(c, 1, 0) and its like
        bool yes = true, no = true;
        const Condition a = condition_of(n.args[0], yes), b = condition_of(n.args[1], no);
        if (yes && no) return either(both(n.condition, a), both(negated(n.condition), b));
    }
    ok = false;
    return c;
}

Value Values::apply(const std::string& f, std::vector<Value> a) {
    if (f == "cast") return a[0];
    if (f == "add") return sum(0, {{1, a[0]}, {1, a[1]}});
    if (f == "sub") return sum(0, {{1, a[0]}, {-1, a[1]}});
    if (f == "neg") return sum(0, {{-1, a[0]}});
    if (f == "fma") return sum(0, {{1, product({{a[0], 1}, {a[1], 1}})}, {1, a[2]}});
    if (f == "select") {
        bool ok = true;
        const Condition c = condition_of(a[0], ok);
        if (ok) return where(c, a[1], a[2]);
        if (a[1] == a[2]) return a[1];
    }
    if (f == "mul") return product({{a[0], 1}, {a[1], 1}});
    if (f == "div") return product({{a[0], 1}, {a[1], -1}});
    if (f == "rcp") return product({{a[0], -1}});
    if (f == "sqrt") return product({{a[0], 0.5}});
    if (f == "rsqrt") return product({{a[0], -0.5}});
    if (f == "pow") {
        if (auto p = as_number(a[1])) return product({{a[0], *p}});
    }
    bool lifted = false;
    const Value masked = lift(a, [&](const std::vector<Value>& b) { return apply(f, b); }, lifted);
    if (lifted) return masked;
    if (f == "exp") return exponential(a[0]);
    if (f == "exp2") return exponential(scaled(std::log(2.0), a[0]));
    if (f == "log") return logarithm(a[0]);
    if (f == "log2") return scaled(1 / std::log(2.0), logarithm(a[0]));
    if (f == "sigmoid") return product({{sum(1, {{1, exponential(scaled(-1, a[0]))}}), -1}});
    if (f == "max" || f == "min") return extreme(f, a);
    if (const auto x = a.size() == 1 ? as_number(a[0]) : std::nullopt; x && (f == "abs" || f == "floor" || f == "ceil")) return number(f == "abs" ? std::fabs(*x) : f == "floor" ? std::floor(*x) : std::ceil(*x));
    // Comparisons of integers are conditions; of data they stay functions.
    auto integer = [&](Value v, Poly& p) {
        const ValueNode& n = node(v);
        if (n.kind == Kind::number && n.number == std::round(n.number) && std::fabs(n.number) < 1e15) {
            p = Poly(static_cast<std::int64_t>(n.number));
            return true;
        }
        if (n.kind == Kind::index) {
            p = n.indices[0];
            return true;
        }
        if (n.kind == Kind::sum && n.number == std::round(n.number)) {
            Poly r(static_cast<std::int64_t>(n.number));
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                const ValueNode& t = node(n.args[i]);
                if (t.kind != Kind::index || n.weights[i] != std::round(n.weights[i])) return false;
                r = r + Poly(static_cast<std::int64_t>(n.weights[i])) * t.indices[0];
            }
            p = r;
            return true;
        }
        return false;
    };
    if (a.size() == 2) {
        Poly p, q;
        if (integer(a[0], p) && integer(a[1], q)) {
            const Value one = number(1), zero = number(0);
            if (f == "lt") return where(less(p, q), one, zero);
            if (f == "le") return where(at_least(q, p), one, zero);
            if (f == "gt") return where(less(q, p), one, zero);
            if (f == "ge") return where(at_least(p, q), one, zero);
            if (f == "eq") return where(equals(p, q), one, zero);
            if (f == "ne") return where(negated(equals(p, q)), one, zero);
            if (f == "mod") return index(ints_.remainder(p, q));
        }
    }
    if (f == "ge" && as_number(a[1]) == -std::numeric_limits<double>::infinity()) return number(1);
    if (f == "le" && as_number(a[1]) == std::numeric_limits<double>::infinity()) return number(1);
    if (f == "eq" && a[0] == a[1] && !has_unknown(a[0])) return number(1);
    if (f == "and" || f == "or") {
        auto x = as_number(a[0]), y = as_number(a[1]);
        for (std::size_t i = 0; i < 2; ++i) {
            const auto known = i == 0 ? x : y;
            if (known) return (*known != 0) == (f == "and") ? a[1 - i] : number(f == "or");
        }
    }
    if (f == "not") {
        if (auto x = as_number(a[0])) return number(*x == 0);
    }
    ValueNode n;
    n.kind = Kind::function;
    n.name = f;
    n.args = std::move(a);
    const Value made = intern(std::move(n));
    if (f == "select") {
        if (const auto place = place_in_whole(made)) return *place;
    }
    return made;
}

}  // namespace tw::verify
