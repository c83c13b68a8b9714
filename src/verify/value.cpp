#include "verify/value.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tw::verify {
namespace {

using Kind = ValueNode::Kind;
constexpr double infinity = std::numeric_limits<double>::infinity();

// log2(e) * ln(2) and the like are 1 up to the rounding of a literal; coefficients are compared on this grid.
double snapped(double c) {
    const double r = std::round(c * 5040.0) / 5040.0;
    return std::fabs(c - r) <= 2e-7 * std::max(1.0, std::fabs(c)) ? r : c;
}

std::string number_key(double v) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.9g", snapped(v) == 0 ? 0.0 : snapped(v));
    return buffer;
}

std::string poly_key(const Poly& p) {
    std::string s;
    for (const auto& [m, k] : p.terms) {
        s += std::to_string(k);
        for (Atom a : m) s += "*" + std::to_string(a);
        s += "+";
    }
    return s;
}

std::string condition_key(const Condition& c) {
    std::string s = std::to_string(static_cast<int>(c.kind)) + ":" + poly_key(c.poly) + "{";
    for (const Condition& p : c.parts) s += condition_key(p) + ",";
    return s + "}";
}

}  // namespace

double Values::identity(const std::string& op) {
    if (op == "prod") return 1;
    if (op == "max" || op == "argmax") return -infinity;
    if (op == "min" || op == "argmin") return infinity;
    return 0;
}

Value Values::intern(ValueNode n) {
    std::string key = std::to_string(static_cast<int>(n.kind)) + "|" + number_key(n.number) + "|" + std::to_string(n.id) + "|" + n.name + "|";
    for (const Poly& p : n.indices) key += "[" + poly_key(p) + "]";
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        key += "," + std::to_string(n.args[i]);
        if (i < n.weights.size()) key += "^" + number_key(n.weights[i]);
    }
    if (n.kind == Kind::where) key += "?" + condition_key(n.condition);
    if (n.kind == Kind::reduce) key += "#" + std::to_string(n.variable) + "(" + poly_key(n.lo) + ":" + poly_key(n.hi) + ")";
    auto [it, fresh] = by_key_.emplace(std::move(key), static_cast<Value>(nodes_.size()));
    if (!fresh) return it->second;
    int height = 0;
    for (Value a : n.args) height = std::max(height, node(a).height);
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
    const ValueNode n = node(v);
    if (n.kind != Kind::where) return v;
    if (n.condition == c) return under(c, n.args[holds ? 0 : 1], holds);
    const Condition opposite = negated(c);
    if (n.condition == opposite) return under(c, n.args[holds ? 1 : 0], holds);
    if (holds && c.kind == Condition::Kind::all && std::find(c.parts.begin(), c.parts.end(), n.condition) != c.parts.end()) {
        return under(c, n.args[0], holds);
    }
    return where(n.condition, under(c, n.args[0], holds), under(c, n.args[1], holds));
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
            const AtomInfo info = ints_.info(x);
            auto at = v.constant();
            if (at && info.lower && info.upper && *info.upper == *info.lower + 1) {
                auto blended = *at == *info.upper ? interpolated(otherwise, then, x, *info.lower) : interpolated(then, otherwise, x, *info.lower);
                if (blended) return *blended;
            }
        }
    }
    // One order for nested masks with the same fill: where(a, where(b, x, f), f) == where(a and b, x, f).
    if (node(then).kind == Kind::where && node(then).args[1] == otherwise) {
        const ValueNode inner = node(then);
        return where(both(c, inner.condition), inner.args[0], otherwise);
    }
    if (node(otherwise).kind == Kind::where && node(otherwise).args[0] == then) {   // where(a, x, where(b, x, f))
        const ValueNode inner = node(otherwise);
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
            const ValueNode copy = n;
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
    if (std::isinf(constant)) return number(constant);
    return merged_sums(constant, std::move(collected));
}

// Splits term = reduce(sum, ...) * others. False when there is no such factor.
bool Values::split_reduce_factor(Value term, Value& reduce, std::vector<std::pair<Value, double>>& others) {
    const ValueNode n = node(term);
    others.clear();
    if (n.kind == Kind::reduce && n.name == "sum") {
        reduce = term;
        return true;
    }
    if (n.kind != Kind::product) return false;
    bool found = false;
    for (std::size_t i = 0; i < n.args.size(); ++i) {
        const ValueNode& a = node(n.args[i]);
        if (!found && a.kind == Kind::reduce && a.name == "sum" && n.weights[i] == 1) {
            reduce = n.args[i];
            found = true;
        } else {
            others.emplace_back(n.args[i], n.weights[i]);
        }
    }
    return found;
}

// Do the ranges meet exactly? [a, b) and [b, d); or both cut off at one end E: [a, min(b, E)) and [b, min(d, E)), b <= d.
bool Values::adjacent(const ValueNode& a, const ValueNode& b) {
    // An empty range that ends before it starts would make the union too long or too short.
    auto forwards = [&](const Poly& from, const Poly& to) { return prover_.holds(at_least(to, from)); };
    if (a.hi == b.lo || simplified(a.hi) == simplified(b.lo)) return forwards(a.lo, b.lo) && forwards(b.lo, b.hi);
    auto cut = [&](const Poly& p) -> std::optional<std::vector<Poly>> {
        if (p.terms.size() != 1 || p.terms.begin()->first.size() != 1 || p.terms.begin()->second != 1) return std::nullopt;
        const AtomInfo& i = ints_.info(p.terms.begin()->first[0]);
        if (i.kind != AtomInfo::Kind::minimum) return std::nullopt;
        return i.args;
    };
    auto x = cut(a.hi), y = cut(b.hi);
    if (!x || !y) return false;
    for (std::size_t i = 0; i < 2; ++i) {
        if (!((*x)[i] == b.lo)) continue;
        const Poly& end = (*x)[1 - i];
        for (std::size_t j = 0; j < 2; ++j) {
            if ((*y)[j] == end && forwards(b.lo, (*y)[1 - j]) && forwards(a.lo, b.lo)) return true;
        }
    }
    return false;
}

// Two tags of one shape whose integers differ by constants, as one tag in x: the first at x = zero, the second at zero + 1.
std::optional<Value> Values::interpolated(Value a, Value b, Atom x, std::int64_t zero) {
    if (a == b) return a;
    const ValueNode m = node(a), n = node(b);
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

// Unites sums over neighbouring ranges: c * f * sum[a,b) + c * f * sum[b,d) == c * f * sum[a,d).
Value Values::merged_sums(double constant, std::map<Value, double> terms) {
    auto unite_two = [&] {
        for (auto i = terms.begin(); i != terms.end(); ++i) {
            Value r1 = 0, r2 = 0;
            std::vector<std::pair<Value, double>> o1, o2;
            if (i->second == 0 || !split_reduce_factor(i->first, r1, o1)) continue;
            for (auto j = terms.begin(); j != terms.end(); ++j) {
                if (i == j || snapped(i->second) != snapped(j->second) || !split_reduce_factor(j->first, r2, o2) || o1 != o2) continue;
                const ValueNode a = node(r1), b = node(r2);
                if (a.args[0] != b.args[0] || a.variable != b.variable) continue;
                if (!adjacent(a, b)) continue;
                ++merging_;
                ValueNode whole = a;
                whole.hi = b.hi;
                const double c = i->second;
                const Value first = i->first, second = j->first;
                auto bases = o1;
                bases.emplace_back(intern(std::move(whole)), 1.0);
                const Value united = product(std::move(bases));
                terms.erase(first);
                terms.erase(second);
                terms[united] += c;
                --merging_;
                return true;
            }
        }
        return false;
    };
    // f(b) joins the sum of f over [a, b).
    auto unite_one = [&] {
        for (auto i = terms.begin(); i != terms.end(); ++i) {
            Value r = 0;
            std::vector<std::pair<Value, double>> others;
            if (i->second == 0 || !split_reduce_factor(i->first, r, others) || !others.empty()) continue;
            const ValueNode a = node(r);
            ++merging_;
            const Value next = replace(a.args[0], {{a.variable, a.hi}});
            --merging_;
            auto j = terms.find(next);
            if (j == terms.end() || snapped(j->second) != snapped(i->second) || !prover_.holds(at_least(a.hi, a.lo))) continue;
            ValueNode whole = a;
            whole.hi = a.hi + Poly(1);
            const double c = i->second;
            terms.erase(r);
            terms.erase(next);
            terms[intern(std::move(whole))] += c;
            return true;
        }
        return false;
    };
    while (merging_ < 8 && (unite_two() || unite_one())) {
    }
    ValueNode n;
    n.kind = Kind::sum;
    n.number = snapped(constant);
    for (const auto& [v, c] : terms) {
        if (snapped(c) == 0) continue;
        n.args.push_back(v);
        n.weights.push_back(snapped(c));
    }
    if (n.args.empty()) return number(n.number);
    if (n.args.size() == 1 && n.weights[0] == 1 && n.number == 0) return n.args[0];
    return intern(std::move(n));
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
        const ValueNode n = node(v);
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
    // A sum times anything else is spread out, so that sums of products have one form; powers of sums up to 2 as well.
    for (auto it = collected.begin(); it != collected.end(); ++it) {
        const ValueNode s = node(it->first);
        if (s.kind != Kind::sum || !(it->second == 1 || it->second == 2) || (collected.size() == 1 && it->second == 1)) continue;
        std::vector<std::pair<Value, double>> rest;
        for (const auto& [v, p] : collected) {
            if (v != it->first) rest.emplace_back(v, p);
        }
        if (it->second == 2) rest.emplace_back(it->first, 1);
        std::vector<std::pair<double, Value>> spread;
        const Value others = product(rest);
        for (std::size_t i = 0; i < s.args.size(); ++i) spread.emplace_back(coefficient * s.weights[i], product({{s.args[i], 1}, {others, 1}}));
        if (s.number != 0) spread.emplace_back(coefficient * s.number, others);
        return sum(0, std::move(spread));
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
    if (n.args.size() == 1 && n.weights[0] == 1) result = n.args[0];
    else result = intern(std::move(n));
    if (snapped(coefficient) == 1) return result;
    return sum(0, {{coefficient, result}});
}

// exp(number + sum c t) == e^number * product exp(t)^c, with exp(t) an atomic base.
Value Values::exponential(Value a) {
    const ValueNode n = node(a);
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
    const ValueNode n = node(a);
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

Value Values::extreme(const std::string& op, std::vector<Value> args) {
    std::vector<Value> flat;
    double constant = identity(op);
    for (Value v : args) {
        const ValueNode n = node(v);
        if (n.kind == Kind::number) constant = op == "max" ? std::max(constant, n.number) : std::min(constant, n.number);
        else if (n.kind == Kind::extreme && n.name == op) flat.insert(flat.end(), n.args.begin(), n.args.end());
        else flat.push_back(v);
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
                // c * reduce: the coefficient must agree
                auto core = [&](Value v, double& c) {
                    const ValueNode& n = node(v);
                    c = 1;
                    if (n.kind == Kind::sum && n.args.size() == 1 && n.number == 0) {
                        c = n.weights[0];
                        return n.args[0];
                    }
                    return v;
                };
                double c1 = 1, c2 = 1;
                const Value v1 = core(flat[i], c1), v2 = core(flat[j], c2);
                const ValueNode a = node(v1), b = node(v2);
                if (a.kind != Kind::reduce || b.kind != Kind::reduce || a.name != op || b.name != op || c1 != c2) continue;
                if (a.args[0] != b.args[0] || a.variable != b.variable) continue;
                const bool meet = adjacent(a, b);
                if (!meet && !(a.lo == b.lo && prover_.holds(at_least(a.hi, b.hi)))) continue;
                ValueNode whole = a;
                if (meet) whole.hi = b.hi;
                Value united = intern(std::move(whole));
                if (c1 != 1) united = sum(0, {{c1, united}});
                flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
                flat.erase(flat.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
                flat.push_back(united);
                std::sort(flat.begin(), flat.end());
                changed = true;
            }
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

Condition Values::condition_of(Value v, bool& ok) {
    const ValueNode n = node(v);
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
    if (f == "and" || f == "or") {
        auto x = as_number(a[0]), y = as_number(a[1]);
        if (x && y) return number(f == "and" ? (*x != 0 && *y != 0) : (*x != 0 || *y != 0));
    }
    if (f == "not") {
        if (auto x = as_number(a[0])) return number(*x == 0);
    }
    ValueNode n;
    n.kind = Kind::function;
    n.name = f;
    n.args = std::move(a);
    return intern(std::move(n));
}

// ---------------------------------------------------------------------------------------------------------------- reductions

Value Values::reduce(const std::string& op, Atom x, Poly lo, Poly hi, Value body) {
    if (auto extent = (hi - lo).constant(); extent && *extent <= 0) return number(identity(op));
    const ValueNode n = node(body);
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
        for (int side = 0; side < 2; ++side) {   // a mask whose other side is the identity clips the range
            const Condition c = side == 0 ? n.condition : negated(n.condition);
            const Value kept = n.args[static_cast<std::size_t>(side)], dropped = n.args[static_cast<std::size_t>(1 - side)];
            if (dropped != id) continue;
            sort_parts(c);
            Poly a = lo, b = hi;
            if (!clip(inside, a, b)) continue;
            return where(gather(outside), reduce(op, x, a, b, kept), id);
        }
        sort_parts(n.condition);
        if (!inside.empty() && !outside.empty()) {   // the part that does not depend on the variable comes out
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
        if (!mentions(body, x)) {   // hi - lo equal terms
            const Poly count = simplified(ints_.maximum(hi - lo, Poly(0)));
            return product({{index(count), 1}, {body, 1}});
        }
        if (n.kind == Kind::sum) {
            std::vector<std::pair<double, Value>> parts;
            for (std::size_t i = 0; i < n.args.size(); ++i) parts.emplace_back(n.weights[i], reduce(op, x, lo, hi, n.args[i]));
            if (n.number != 0) parts.emplace_back(1.0, reduce(op, x, lo, hi, number(n.number)));
            return sum(0, std::move(parts));
        }
        if (n.kind == Kind::product) {
            std::vector<std::pair<Value, double>> outside, inside;
            for (std::size_t i = 0; i < n.args.size(); ++i) (mentions(n.args[i], x) ? inside : outside).emplace_back(n.args[i], n.weights[i]);
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
        } else if (n.kind == Kind::sum) {
            std::vector<std::pair<double, Value>> outside, inside;
            for (std::size_t i = 0; i < n.args.size(); ++i) (mentions(n.args[i], x) ? inside : outside).emplace_back(n.weights[i], n.args[i]);
            if (inside.size() == 1 && inside[0].first > 0 && (inside[0].first != 1 || !outside.empty() || n.number != 0)) {
                outside.emplace_back(inside[0].first, reduce(op, x, lo, hi, inside[0].second));
                return sum(n.number, std::move(outside));
            }
        }
    }
    // The variable becomes the index it stands for: shift by what stands beside it in the first element that mentions it.
    std::function<std::optional<Poly>(Value)> beside = [&](Value v) -> std::optional<Poly> {
        const ValueNode& m = node(v);
        if (m.kind == Kind::element || m.kind == Kind::index) {
            for (const Poly& p : m.indices) {
                if (p.linear_in(x) == 1) {
                    const Poly rest = p - Poly::of(x);
                    if (!ints_.mentions(rest, x)) return rest;
                }
            }
        }
        const std::vector<Value> args = m.args;
        const bool binds = m.kind == Kind::reduce;
        const Atom bound_here = m.variable;
        for (Value a : args) {
            auto p = beside(a);
            if (p && !(binds && ints_.mentions(*p, bound_here))) return p;   // never shift by a variable bound further in
        }
        return std::nullopt;
    };
    if (auto offset = beside(body); offset && !offset->terms.empty()) {
        const Atom y = ints_.fresh("i");
        const Value shifted = replace(body, {{x, Poly::of(y) - *offset}});
        return reduce(op, y, lo + *offset, hi + *offset, shifted);
    }
    // Two digits of one index: sum_u sum_v f(u * n + v), v < n, is one sum.
    if (n.kind == Kind::reduce && n.name == op) {
        const ValueNode inner = n;
        // Inner range [c + x*w, c + x*w + w), perhaps cut off at an end that does not move with x, with the body free of x
        // otherwise: consecutive x tile a longer range.
        Poly end = inner.hi;
        std::optional<Poly> cut;
        if (inner.hi.terms.size() == 1 && inner.hi.terms.begin()->first.size() == 1 && inner.hi.terms.begin()->second == 1) {
            const AtomInfo info = ints_.info(inner.hi.terms.begin()->first[0]);
            if (info.kind == AtomInfo::Kind::minimum) {
                for (std::size_t i = 0; i < 2; ++i) {
                    if ((info.args[i] - inner.lo).constant() && !ints_.mentions(info.args[1 - i], x)) {
                        end = info.args[i];
                        cut = info.args[1 - i];
                    }
                }
            }
        }
        auto width = (end - inner.lo).constant();
        if (width && *width > 0 && inner.lo.linear_in(x) == *width && !mentions(inner.args[0], x)) {
            const Poly base = inner.lo - Poly(*width) * Poly::of(x);
            if (!ints_.mentions(base, x)) {
                const Atom y = ints_.fresh("i");
                Poly far = base + Poly(*width) * hi;
                if (cut) far = ints_.minimum(far, *cut);
                return reduce(op, y, base + Poly(*width) * lo, far, replace(inner.args[0], {{inner.variable, Poly::of(y)}}));
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
    if (n.kind == Kind::reduce && n.name == op && merging_ == 0 && !ints_.mentions(n.lo, x) && ints_.mentions(n.hi, x)) {
        // The inner end is a strided clip, min(E, (A - x) // m + 1): as a mask again, A - x - m*i >= 0, the folds can change places.
        const ValueNode inner = n;
        const Poly absorbed_hi = absorbed(inner.hi);
        std::vector<Poly> ends = {absorbed_hi};
        if (absorbed_hi.terms.size() == 1 && absorbed_hi.terms.begin()->first.size() == 1) {
            const AtomInfo info = ints_.info(absorbed_hi.terms.begin()->first[0]);
            if (info.kind == AtomInfo::Kind::minimum) ends = info.args;
        }
        if (ends.size() == 1) ends.insert(ends.begin(), ints_.replace(ends[0], {{x, lo}}));   // the furthest of them, if it falls with x (checked below)
        if (ends.size() == 2 && ints_.mentions(ends[0], x)) std::swap(ends[0], ends[1]);
        if (ends.size() == 2 && !ints_.mentions(ends[0], x)) {
            const Poly q = ends[1] - Poly(1);
            // q = whole + one quotient atom
            for (const auto& [m, k] : q.terms) {
                if (m.size() != 1 || k != 1 || ints_.info(m[0]).kind != AtomInfo::Kind::quotient) continue;
                const AtomInfo info = ints_.info(m[0]);
                auto step = info.args[1].constant();
                const Poly whole_part = q - Poly::of(m[0]);
                if (!step || *step <= 0) continue;
                const Poly numerator = info.args[0] + Poly(*step) * whole_part;
                auto slope = numerator.linear_in(x);
                if (!slope || *slope >= 0) continue;
                const Atom y = ints_.fresh("i");
                ++merging_;
                const Value masked = where(at_least(numerator - Poly(*step) * Poly::of(y), Poly(0)), replace(inner.args[0], {{inner.variable, Poly::of(y)}}), number(identity(op)));
                const Value within = reduce(op, x, lo, hi, masked);
                const Value whole = reduce(op, y, inner.lo, ends[0], within);
                --merging_;
                if (node(whole).height <= node(body).height) return whole;
                break;
            }
        }
    }
    if (n.kind == Kind::reduce && n.name == op && merging_ == 0 && !ints_.mentions(n.lo, x) && !ints_.mentions(n.hi, x)) {
        // sum_c sum_i f(n*i + c): folded the other way round the two may join.
        const ValueNode inner = n;
        const Atom y = ints_.fresh("i");
        ++merging_;
        const Value within = reduce(op, x, lo, hi, replace(inner.args[0], {{inner.variable, Poly::of(y)}}));
        const Value whole = reduce(op, y, inner.lo, inner.hi, within);
        --merging_;
        if (node(whole).height <= node(body).height) return whole;
    }
    ValueNode r;
    r.kind = Kind::reduce;
    r.name = op;
    r.lo = absorbed(simplified(absorbed(lo)));
    r.hi = absorbed(simplified(absorbed(hi)));
    const Atom bound = ints_.symbol("#" + std::to_string(node(body).height));
    r.args = {bound == x ? body : replace(body, {{x, Poly::of(bound)}})};
    r.variable = bound;
    return intern(std::move(r));
}

// ------------------------------------------------------------------------------------------------------------------ rewriting

Value Values::replace(Value v, const std::map<Atom, Poly>& with) {
    const ValueNode n = node(v);
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
            std::vector<std::pair<double, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], replace(n.args[i], with));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, double>> bases;
            for (std::size_t i = 0; i < n.args.size(); ++i) bases.emplace_back(replace(n.args[i], with), n.weights[i]);
            return product(std::move(bases));
        }
        case Kind::function: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(replace(a, with));
            return apply(n.name, std::move(args));
        }
        case Kind::extreme: {
            std::vector<Value> args;
            for (Value a : n.args) args.push_back(replace(a, with));
            return extreme(n.name, std::move(args));
        }
        case Kind::where: return where(ints_.replace(n.condition, with), replace(n.args[0], with), replace(n.args[1], with));
        case Kind::reduce: {
            if (with.count(n.variable)) {
                std::map<Atom, Poly> fewer = with;
                fewer.erase(n.variable);
                return replace(v, fewer);
            }
            // Renamed while its surroundings change, so that a replacement cannot be captured.
            const Atom y = ints_.fresh("i");
            std::map<Atom, Poly> more = with;
            more[n.variable] = Poly::of(y);
            return reduce(n.name, y, ints_.replace(n.lo, with), ints_.replace(n.hi, with), replace(n.args[0], more));
        }
    }
    return v;
}

Poly Values::absorbed(const Poly& p) {
    for (const auto& [m, k] : p.terms) {
        if (m.size() != 1 || k != 1 || p.terms.size() == 1) continue;
        const AtomInfo info = ints_.info(m[0]);
        if (info.kind != AtomInfo::Kind::minimum && info.kind != AtomInfo::Kind::maximum) continue;
        const Poly rest = p - Poly::of(m[0]);
        const Poly a = info.args[0] + rest, b = info.args[1] + rest;
        return info.kind == AtomInfo::Kind::minimum ? ints_.minimum(a, b) : ints_.maximum(a, b);
    }
    return p;
}

Poly Values::simplified(const Poly& p) {
    std::map<Atom, Poly> decided;
    std::vector<Atom> atoms;
    ints_.collect(p, atoms);
    std::sort(atoms.begin(), atoms.end());
    atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
    for (Atom a : atoms) {
        const AtomInfo info = ints_.info(a);
        if (info.kind == AtomInfo::Kind::minimum || info.kind == AtomInfo::Kind::maximum) {
            const bool less_first = prover_.holds(at_least(info.args[1], info.args[0]));
            const bool is_min = info.kind == AtomInfo::Kind::minimum;
            if (less_first) decided[a] = info.args[is_min ? 0 : 1];
            else if (prover_.holds(at_least(info.args[0], info.args[1]))) decided[a] = info.args[is_min ? 1 : 0];
        }
        if (info.kind == AtomInfo::Kind::choice) {
            if (prover_.holds(info.condition)) decided[a] = info.args[0];
            else if (prover_.holds(negated(info.condition))) decided[a] = info.args[1];
        }
    }
    if (decided.empty()) return p;
    return ints_.replace(p, decided);
}

Value Values::simplified(Value v) {
    const ValueNode n = node(v);
    switch (n.kind) {
        case Kind::where: {
            if (prover_.holds(n.condition)) return simplified(n.args[0]);
            if (prover_.holds(negated(n.condition))) return simplified(n.args[1]);
            if (n.condition.kind == Condition::Kind::all) {   // drop the parts that hold
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
            std::vector<std::pair<double, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], simplified(n.args[i]));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, double>> bases;
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
            const Atom y = ints_.fresh("i");
            Value body = replace(n.args[0], {{n.variable, Poly::of(y)}});
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

Value Values::widened(Value v, Atom k, const Poly& first) {
    const ValueNode n = node(v);
    const std::map<Atom, Poly> before = {{k, Poly::of(k) - Poly(1)}}, start = {{k, first}};
    switch (n.kind) {
        case Kind::reduce: {
            const Atom y = ints_.fresh("i");
            const Value body = widened(replace(n.args[0], {{n.variable, Poly::of(y)}}), k, first);
            const bool grows = ints_.mentions(n.lo, k) || ints_.mentions(n.hi, k);
            return reduce(n.name, y, grows ? ints_.replace(n.lo, start) : n.lo, ints_.replace(n.hi, before), body);
        }
        case Kind::sum: {
            std::vector<std::pair<double, Value>> terms;
            for (std::size_t i = 0; i < n.args.size(); ++i) terms.emplace_back(n.weights[i], widened(n.args[i], k, first));
            return sum(n.number, std::move(terms));
        }
        case Kind::product: {
            std::vector<std::pair<Value, double>> bases;
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
        default: return replace(v, before);
    }
}

bool Values::mentions(Value v, Atom a) {
    const ValueNode& n = node(v);
    for (const Poly& p : n.indices) {
        if (ints_.mentions(p, a)) return true;
    }
    if (n.kind == Kind::where && ints_.mentions(n.condition, a)) return true;
    if (n.kind == Kind::reduce && (ints_.mentions(n.lo, a) || ints_.mentions(n.hi, a))) return true;
    for (Value x : n.args) {
        if (mentions(x, a)) return true;
    }
    return false;
}

bool Values::has_unknown(Value v) {
    const ValueNode& n = node(v);
    if (n.kind == Kind::unknown) return true;
    return std::any_of(n.args.begin(), n.args.end(), [&](Value a) { return has_unknown(a); });
}

Value Values::from(const ir::Term& t, const Integers::Leaf& leaf, std::map<int, Poly>& bound) {
    const Integers::Leaf inner = [&](const ir::ExprNode& n) -> Poly {
        if (n.kind == ir::ExprKind::var) {
            auto it = bound.find(n.id);
            if (it != bound.end()) return it->second;
        }
        return leaf(n);
    };
    switch (t->kind) {
        case ir::TermKind::constant: return number(t->number);
        case ir::TermKind::scalar: return scalar(t->id);
        case ir::TermKind::index: return index(ints_.from(t->indices[0], inner));
        case ir::TermKind::element: {
            std::vector<Poly> indices;
            for (const ir::Expr& e : t->indices) indices.push_back(ints_.from(e, inner));
            return element(t->id, std::move(indices));
        }
        case ir::TermKind::cast: return from(t->args[0], leaf, bound);
        case ir::TermKind::apply: {
            std::vector<Value> args;
            for (const ir::Term& a : t->args) args.push_back(from(a, leaf, bound));
            return apply(t->name, std::move(args));
        }
        case ir::TermKind::reduce: {
            const Atom x = ints_.fresh("j");
            const Poly lo = ints_.from(t->indices[0], inner), hi = ints_.from(t->indices[1], inner);
            auto saved = bound.find(t->id) != bound.end() ? std::optional(bound[t->id]) : std::nullopt;
            bound[t->id] = Poly::of(x);
            prover_.push();
            prover_.assume(at_least(Poly::of(x), lo));
            prover_.assume(less(Poly::of(x), hi));
            const Value body = simplified(from(t->args[0], leaf, bound));
            prover_.pop();
            if (saved) bound[t->id] = *saved;
            else bound.erase(t->id);
            return reduce(t->name, x, lo, hi, body);
        }
    }
    return number(0);
}

std::string Values::text(Value v, const std::function<std::string(int)>& tensor) const {
    const ValueNode& n = node(v);
    auto arg = [&](std::size_t i) { return text(n.args[i], tensor); };
    std::string s;
    switch (n.kind) {
        case Kind::number: return number_key(n.number);
        case Kind::scalar: return "scalar" + std::to_string(n.id);
        case Kind::index: return "(" + ints_.text(n.indices[0]) + ")";
        case Kind::unknown: return "?" + n.name;
        case Kind::element:
            s = tensor(n.id) + "[";
            for (std::size_t i = 0; i < n.indices.size(); ++i) s += (i ? ", " : "") + ints_.text(n.indices[i]);
            return s + "]";
        case Kind::sum:
            s = "(" + (n.number != 0 ? number_key(n.number) : std::string());
            for (std::size_t i = 0; i < n.args.size(); ++i) {
                s += (s.size() > 1 ? " + " : "") + (n.weights[i] == 1 ? std::string() : number_key(n.weights[i]) + "*") + arg(i);
            }
            return s + ")";
        case Kind::product:
            for (std::size_t i = 0; i < n.args.size(); ++i) s += (i ? "*" : "") + arg(i) + (n.weights[i] == 1 ? "" : "^" + number_key(n.weights[i]));
            return s;
        case Kind::function:
        case Kind::extreme:
            s = n.name + "(";
            for (std::size_t i = 0; i < n.args.size(); ++i) s += (i ? ", " : "") + arg(i);
            return s + ")";
        case Kind::reduce: return n.name + "(" + ints_.info(n.variable).name + " in " + ints_.text(n.lo) + ":" + ints_.text(n.hi) + ", " + arg(0) + ")";
        case Kind::where: return "where(" + ints_.text(n.condition) + ", " + arg(0) + ", " + arg(1) + ")";
    }
    return "?";
}

}  // namespace tw::verify
