#include "verify/integer.h"

#include <algorithm>
#include <functional>

#include "verify/work.h"

namespace tw::verify {

// ------------------------------------------------------------------------------------------------------------ polynomials

std::optional<std::int64_t> Poly::constant() const {
    if (terms.empty()) return 0;
    if (terms.size() == 1 && terms.begin()->first.empty()) return terms.begin()->second;
    return std::nullopt;
}

std::int64_t Poly::constant_part() const {
    auto it = terms.find({});
    return it == terms.end() ? 0 : it->second;
}

bool Poly::mentions(Atom a) const {
    return std::any_of(terms.begin(), terms.end(),
                       [&](const auto& t) { return std::find(t.first.begin(), t.first.end(), a) != t.first.end(); });
}

std::optional<std::int64_t> Poly::linear_in(Atom a) const {
    std::int64_t c = 0;
    for (const auto& [m, k] : terms) {
        if (std::find(m.begin(), m.end(), a) == m.end()) continue;
        if (m.size() != 1) return std::nullopt;
        c = k;
    }
    return c;
}

namespace {
thread_local std::uint64_t overflows = 0;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) ++overflows;
    return r;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) ++overflows;
    return r;
}

std::uint64_t coefficient_overflows() { return overflows; }

void note_overflow() { ++overflows; }

void distrust_after_overflow(std::vector<Obligation>& obligations, std::uint64_t overflows_before) {
    if (coefficient_overflows() == overflows_before) return;
    for (Obligation& o : obligations) {
        if (o.status != Status::proved) continue;
        o.status = Status::not_proved;
        o.reason = "a factor or a constant beyond 64 bits appeared in the proof";
    }
}

std::optional<std::int64_t> Poly::minus_if_constant(const Poly& other) const {
    auto x = terms.begin(), y = other.terms.begin();
    std::int64_t difference = 0;
    if (x != terms.end() && x->first.empty()) difference = (x++)->second;  // the constant comes first
    if (y != other.terms.end() && y->first.empty()) difference = plus(difference, times(-1, (y++)->second));
    return std::equal(x, terms.end(), y, other.terms.end()) ? std::optional(difference) : std::nullopt;
}

namespace {

// a + factor * b, by merging.
Poly combined(const Poly& a, const Poly& b, std::int64_t factor) {
    Poly r;
    r.terms.reserve(a.terms.size() + b.terms.size());
    auto x = a.terms.begin(), y = b.terms.begin();
    while (x != a.terms.end() || y != b.terms.end()) {
        if (y == b.terms.end() || (x != a.terms.end() && x->first < y->first)) {
            r.terms.append(x->first, x->second);
            ++x;
        } else if (x == a.terms.end() || y->first < x->first) {
            r.terms.append(y->first, times(factor, y->second));
            ++y;
        } else {
            if (const std::int64_t k = plus(x->second, times(factor, y->second))) r.terms.append(x->first, k);
            ++x, ++y;
        }
    }
    return r;
}

}  // namespace

Poly operator+(const Poly& a, const Poly& b) { return combined(a, b, 1); }

Poly operator-(const Poly& a, const Poly& b) { return combined(a, b, -1); }

Poly operator*(const Poly& a, const Poly& b) {
    // Terms are put into a sorted row: each costs its factors, and what is behind it is moved.
    const auto factors = [](const Poly& p) { return p.terms.empty() ? 0 : p.terms.last().first.size(); };
    spend(a.terms.size() * b.terms.size() * (10 + factors(a) + factors(b) + std::max(a.terms.size(), b.terms.size()) / 4));
    Poly r;
    for (const auto& [m, k] : a.terms) {
        for (const auto& [n, l] : b.terms) {
            Monomial both = m;
            both.append(n.begin(), n.end());
            std::sort(both.begin(), both.end());
            auto [it, fresh] = r.terms.emplace(std::move(both), times(k, l));
            if (!fresh && (it->second = plus(it->second, times(k, l))) == 0) r.terms.erase(it);
        }
    }
    return r;
}

// ------------------------------------------------------------------------------------------------------------- conditions

namespace {

Condition leaf_condition(Condition::Kind kind, Poly p) {
    Condition c;
    if (auto v = p.constant()) {
        const bool holds = kind == Condition::Kind::at_least_zero ? *v >= 0 : kind == Condition::Kind::zero ? *v == 0 : *v != 0;
        c.kind = holds ? Condition::Kind::yes : Condition::Kind::no;
        return c;
    }
    // Divide by the common factor of the coefficients; an inequality rounds its constant down (integers).
    std::int64_t g = 0;
    for (const auto& [m, k] : p.terms) {
        if (!m.empty()) g = std::__gcd(g, k < 0 ? -k : k);
    }
    const std::int64_t c0 = p.constant_part();
    if (g > 1 && (kind == Condition::Kind::at_least_zero || c0 % g == 0)) {
        Poly q;
        for (const auto& [m, k] : p.terms) {
            const std::int64_t v = m.empty() ? ir::floor_div(k, g) : k / g;
            if (v) q.terms[m] = v;
        }
        p = std::move(q);
    }
    if (kind != Condition::Kind::at_least_zero && !p.terms.empty() && p.terms.last().second < 0) p = Poly(-1) * p;
    c.kind = kind;
    c.poly = std::move(p);
    return c;
}

Condition combined(Condition::Kind kind, const Condition& a, const Condition& b) {
    const auto neutral = kind == Condition::Kind::all ? Condition::Kind::yes : Condition::Kind::no;
    const auto absorbing = kind == Condition::Kind::all ? Condition::Kind::no : Condition::Kind::yes;
    if (a.kind == neutral) return b;
    if (b.kind == neutral) return a;
    Condition c;
    if (a.kind == absorbing || b.kind == absorbing) {
        c.kind = absorbing;
        return c;
    }
    c.kind = kind;
    for (const Condition* x : {&a, &b}) {
        if (x->kind == kind) c.parts.insert(c.parts.end(), x->parts.begin(), x->parts.end());
        else c.parts.push_back(*x);
    }
    std::sort(c.parts.begin(), c.parts.end());
    c.parts.erase(std::unique(c.parts.begin(), c.parts.end()), c.parts.end());
    return c.parts.size() == 1 ? c.parts.front() : c;
}

}  // namespace

Condition at_least(const Poly& a, const Poly& b) { return leaf_condition(Condition::Kind::at_least_zero, a - b); }
Condition less(const Poly& a, const Poly& b) { return at_least(b, a + Poly(1)); }
Condition equals(const Poly& a, const Poly& b) { return leaf_condition(Condition::Kind::zero, a - b); }
Condition both(const Condition& a, const Condition& b) { return combined(Condition::Kind::all, a, b); }
Condition either(const Condition& a, const Condition& b) { return combined(Condition::Kind::any, a, b); }

Condition negated(const Condition& c) {
    Condition r;
    switch (c.kind) {
        case Condition::Kind::yes: r.kind = Condition::Kind::no; return r;
        case Condition::Kind::no: return r;
        case Condition::Kind::at_least_zero: return at_least(Poly(-1), c.poly);
        case Condition::Kind::zero: return leaf_condition(Condition::Kind::nonzero, c.poly);
        case Condition::Kind::nonzero: return leaf_condition(Condition::Kind::zero, c.poly);
        case Condition::Kind::all:
            r.kind = Condition::Kind::no;
            for (const Condition& p : c.parts) r = either(r, negated(p));
            return r;
        case Condition::Kind::any:
            for (const Condition& p : c.parts) r = both(r, negated(p));
            return r;
    }
    return r;
}

// ------------------------------------------------------------------------------------------------------------------ atoms

Atom Integers::intern(AtomInfo info) {
    std::string key = std::to_string(static_cast<int>(info.kind)) + "|" + info.name + "|" + std::to_string(info.tensor);
    auto add = [&](const Poly& p) {
        key += "(";
        for (const auto& [m, k] : p.terms) {
            key += std::to_string(k);
            for (Atom a : m) key += "*" + std::to_string(a);
            key += "+";
        }
        key += ")";
    };
    for (const Poly& p : info.args) add(p);
    // Of its form, not of its text: what stands for ever more by naming others has a text without end.
    const std::function<void(const Condition&)> add_condition = [&](const Condition& c) {
        key += "?" + std::to_string(static_cast<int>(c.kind));
        add(c.poly);
        key += "{";
        for (const Condition& part : c.parts) add_condition(part);
        key += "}";
    };
    if (info.kind == AtomInfo::Kind::choice) add_condition(info.condition);
    auto [it, fresh] = by_key_.emplace(key, static_cast<Atom>(atoms_.size()));
    if (!fresh) return it->second;
    for (const Poly& p : info.args) collect(p, info.inside);
    if (info.kind == AtomInfo::Kind::choice) collect(info.condition, info.inside);
    std::sort(info.inside.begin(), info.inside.end());
    info.inside.erase(std::unique(info.inside.begin(), info.inside.end()), info.inside.end());
    atoms_.push_back(std::move(info));
    return it->second;
}

Atom Integers::symbol(const std::string& name, std::optional<std::int64_t> lower, std::optional<std::int64_t> upper) {
    AtomInfo info;
    info.name = name;
    info.lower = lower;
    info.upper = upper;
    return intern(std::move(info));
}

Atom Integers::fresh(const std::string& prefix, std::optional<std::int64_t> lower, std::optional<std::int64_t> upper) {
    const Atom a = symbol(prefix + "'" + std::to_string(++fresh_), lower, upper);
    atoms_[static_cast<std::size_t>(a)].fresh = true;
    return a;
}

// a / b, where b is one term that divides every term of a.
std::optional<Poly> divided(const Poly& a, const Poly& b) {
    if (b.terms.size() != 1) return std::nullopt;
    const auto& [factors, coefficient] = *b.terms.begin();
    Poly result;
    for (const auto& [m, k] : a.terms) {
        Monomial rest;
        std::set_difference(m.begin(), m.end(), factors.begin(), factors.end(), std::back_inserter(rest));
        if (k % coefficient != 0 || rest.size() + factors.size() != m.size()) return std::nullopt;
        result.terms[rest] = k / coefficient;
    }
    return result;
}

Atom Integers::digit(const std::string& name, const Poly& below) {
    const auto end = below.constant();
    const Atom a = symbol(name, 0, end ? std::optional(*end - 1) : std::nullopt);
    atoms_[static_cast<std::size_t>(a)].below = below;
    return a;
}

// By its form alone: sizes, digits and quotients of such by constants, added and multiplied.
bool Integers::never_negative(const Poly& p) const {
    return std::all_of(p.terms.begin(), p.terms.end(), [&](const auto& term) {
        return term.second > 0 && std::all_of(term.first.begin(), term.first.end(), [&](Atom a) {
                   const AtomInfo& i = info(a);
                   return i.lower.value_or(-1) >= 0 ||
                          (i.kind == AtomInfo::Kind::quotient && i.args[1].constant().value_or(0) > 0 && never_negative(i.args[0]));
               });
    });
}

bool Integers::counts_below(const Poly& p, const Poly& bound) const {
    for (const auto& [m, k] : p.terms) {
        for (Atom a : m) {
            const auto& below = info(a).below;
            const auto step = below ? divided(bound, *below) : std::nullopt;  // a is the highest digit: it counts in steps of `step`
            if (!step || !never_negative(*step)) continue;
            const Poly rest = p - *step * Poly::of(a);
            if (rest.terms.empty() || (rest.terms.size() < p.terms.size() && counts_below(rest, *step))) return true;
        }
    }
    return false;
}

Poly Integers::quotient(const Poly& a, const Poly& b) {
    if (auto d = b.constant(); d && *d != 0) {
        if (auto n = a.constant()) return Poly(ir::floor_div(*n, *d));
        if (*d == 1) return a;
        if (*d > 0) {
            // a = d * q + r with the divisible coefficients in q: floor(a / d) = q + floor(r / d).
            Poly q, r;
            for (const auto& [m, k] : a.terms) {
                const std::int64_t whole = ir::floor_div(k, *d), rest = ir::floor_mod(k, *d);
                if (whole) q.terms[m] = whole;
                if (rest) r.terms[m] = rest;
            }
            if (r.terms.empty()) return q;
            // Constant bounds may show that r / d is a constant.
            std::int64_t lo = 0, hi = 0;
            bool bounded = true;
            for (const auto& [m, k] : r.terms) {
                if (m.empty()) {
                    lo += k;
                    hi += k;
                } else if (m.size() == 1 && info(m[0]).lower && info(m[0]).upper) {
                    lo += k * *info(m[0]).lower;  // k > 0 after floor_mod
                    hi += k * *info(m[0]).upper;
                } else {
                    bounded = false;
                }
            }
            if (bounded && ir::floor_div(lo, *d) == ir::floor_div(hi, *d)) return q + Poly(ir::floor_div(lo, *d));
            AtomInfo info;
            info.kind = AtomInfo::Kind::quotient;
            info.args = {r, b};
            return q + Poly::of(intern(std::move(info)));
        }
    }
    if (a == b) return Poly(1);                                // b != 0 is the launch's business: division by zero has no value anywhere
    if (b.terms.size() == 1 && b.terms.begin()->second > 0) {  // q * b + r with r a number of digits below b
        Poly q, r;
        for (const auto& [m, k] : a.terms) {
            Poly term;
            term.terms[m] = k;
            const auto whole = divided(term, b);
            (whole ? q : r) = (whole ? q : r) + (whole ? *whole : term);
        }
        if (r.terms.empty() || counts_below(r, b)) return q;
    }
    AtomInfo info;
    info.kind = AtomInfo::Kind::quotient;
    info.args = {a, b};
    return Poly::of(intern(std::move(info)));
}

// rest + min(a, b) is min(a + rest, b + rest): the expressions whose minimum (or maximum) p is.
std::vector<Poly> Integers::alternatives(const Poly& p, AtomInfo::Kind kind) const {
    for (const auto& [monomial, coefficient] : p.terms) {
        if (monomial.size() != 1 || coefficient != 1 || info(monomial[0]).kind != kind) continue;
        const Poly rest = p - Poly::of(monomial[0]);
        std::vector<Poly> all;
        for (const Poly& arg : info(monomial[0]).args) {
            for (Poly& one : alternatives(arg + rest, kind)) all.push_back(std::move(one));
        }
        if (all.size() <= 6) return all;  // two of them in one expression multiply
        break;
    }
    return {p};
}

// One form for a minimum of several: sorted, none of them superfluous by a constant, nested to the right.
Poly Integers::extreme(AtomInfo::Kind kind, const Poly& a, const Poly& b) {
    std::vector<Poly> all = alternatives(a, kind), kept;
    for (Poly& p : alternatives(b, kind)) all.push_back(std::move(p));
    for (const Poly& p : all) {
        bool superfluous = false;
        for (Poly& other : kept) {
            const auto d = (p - other).constant();
            if (!d) continue;
            superfluous = true;
            if (kind == AtomInfo::Kind::minimum ? *d < 0 : *d > 0) other = p;
        }
        if (!superfluous) kept.push_back(p);
    }
    std::sort(kept.begin(), kept.end());
    Poly result = kept.back();
    for (std::size_t i = kept.size() - 1; i-- > 0;) {
        AtomInfo info;
        info.kind = kind;
        info.args = {kept[i], result};
        result = Poly::of(intern(std::move(info)));
    }
    return result;
}

Poly Integers::minimum(const Poly& a, const Poly& b) { return extreme(AtomInfo::Kind::minimum, a, b); }

Poly Integers::maximum(const Poly& a, const Poly& b) { return extreme(AtomInfo::Kind::maximum, a, b); }

Poly Integers::element(int tensor, std::vector<Poly> indices) {
    if (meaning) {
        if (auto p = meaning(tensor, indices)) return *p;
    }
    AtomInfo info;
    info.kind = AtomInfo::Kind::element;
    info.tensor = tensor;
    info.args = std::move(indices);
    return Poly::of(intern(std::move(info)));
}

Poly Integers::choice(const Condition& c, const Poly& then, const Poly& otherwise) {
    if (c.is_yes() || then == otherwise) return then;
    if (c.is_no()) return otherwise;
    AtomInfo info;
    info.kind = AtomInfo::Kind::choice;
    info.args = {then, otherwise};
    info.condition = c;
    return Poly::of(intern(std::move(info)));
}

Poly Integers::from(const ir::Expr& e, const Leaf& leaf) {
    using K = ir::ExprKind;
    auto arg = [&](std::size_t i) { return from(e->args[i], leaf); };
    switch (e.kind()) {
        case K::constant: return Poly(e->value);
        case K::size:
        case K::var:
        case K::block_index:
        case K::grid_size:
        case K::cluster_rank: return leaf(e.node());
        case K::element: {
            std::vector<Poly> indices;
            for (std::size_t i = 0; i < e->args.size(); ++i) indices.push_back(arg(i));
            return element(tensor_names ? (*tensor_names)[static_cast<std::size_t>(e->id)] : e->id, std::move(indices));
        }
        case K::add: return arg(0) + arg(1);
        case K::sub: return arg(0) - arg(1);
        case K::mul: return arg(0) * arg(1);
        case K::floor_div: return quotient(arg(0), arg(1));
        case K::mod: return remainder(arg(0), arg(1));
        case K::min: return minimum(arg(0), arg(1));
        case K::max: return maximum(arg(0), arg(1));
        case K::select: return choice(condition_from(e->args[0], leaf), arg(1), arg(2));
        case K::lt:
        case K::le:
        case K::eq:
        case K::ne:
        case K::logic_and:
        case K::logic_or:
        case K::logic_not: return choice(condition_from(e, leaf), Poly(1), Poly(0));
        case K::bit_and:
            if (auto m = e->args[1].as_constant(); m && *m >= 0 && ((*m + 1) & *m) == 0) return remainder(arg(0), Poly(*m + 1));
            break;
        case K::shift_left:
            if (auto s = e->args[1].as_constant(); s && *s >= 0 && *s < 62) return arg(0) * Poly(std::int64_t{1} << *s);
            break;
        case K::shift_right:
            if (auto s = e->args[1].as_constant(); s && *s >= 0 && *s < 62) return quotient(arg(0), Poly(std::int64_t{1} << *s));
            break;
        default: break;
    }
    AtomInfo info;
    info.kind = AtomInfo::Kind::opaque;
    info.name = "op" + std::to_string(static_cast<int>(e.kind()));
    for (std::size_t i = 0; i < e->args.size(); ++i) info.args.push_back(arg(i));
    if (e.kind() == K::bit_xor || e.kind() == K::bit_and) {  // bits of numbers that are not negative
        const auto no_sign = [&](const Poly& p) { return never_negative(p); };
        const bool any = std::any_of(info.args.begin(), info.args.end(), no_sign);
        if (any && (e.kind() == K::bit_and || std::all_of(info.args.begin(), info.args.end(), no_sign))) info.lower = 0;
    }
    return Poly::of(intern(std::move(info)));
}

Condition Integers::condition_from(const ir::Expr& e, const Leaf& leaf) {
    using K = ir::ExprKind;
    auto arg = [&](std::size_t i) { return from(e->args[i], leaf); };
    switch (e.kind()) {
        case K::lt: return less(arg(0), arg(1));
        case K::le: return at_least(arg(1), arg(0));
        case K::eq: return equals(arg(0), arg(1));
        case K::ne: return negated(equals(arg(0), arg(1)));
        case K::logic_and: return both(condition_from(e->args[0], leaf), condition_from(e->args[1], leaf));
        case K::logic_or: return either(condition_from(e->args[0], leaf), condition_from(e->args[1], leaf));
        case K::logic_not: return negated(condition_from(e->args[0], leaf));
        default: return negated(equals(from(e, leaf), Poly(0)));
    }
}

Poly Integers::replace(const Poly& p, const std::map<Atom, Poly>& with) {
    if (!mentions_any(p, with)) return p;
    Poly result;
    for (const auto& [m, k] : p.terms) {
        Poly product(k);
        for (Atom a : m) {
            auto it = with.find(a);
            if (it != with.end()) {
                product = product * it->second;
                continue;
            }
            const AtomInfo& i = info(a);
            Poly value = Poly::of(a);
            if (!i.args.empty()) {
                std::vector<Poly> args;
                bool changed = false;
                for (const Poly& q : i.args) {
                    args.push_back(replace(q, with));
                    changed |= !(args.back() == q);
                }
                Condition c = i.condition;
                if (i.kind == AtomInfo::Kind::choice) {
                    c = replace(i.condition, with);
                    changed |= !(c == i.condition);
                }
                if (changed) {
                    switch (i.kind) {
                        case AtomInfo::Kind::quotient: value = quotient(args[0], args[1]); break;
                        case AtomInfo::Kind::minimum: value = minimum(args[0], args[1]); break;
                        case AtomInfo::Kind::maximum: value = maximum(args[0], args[1]); break;
                        case AtomInfo::Kind::element: value = element(i.tensor, args); break;
                        case AtomInfo::Kind::choice: value = choice(c, args[0], args[1]); break;
                        default: {
                            AtomInfo n = i;
                            n.args = args;
                            value = Poly::of(intern(std::move(n)));
                        }
                    }
                }
            }
            product = product * value;
        }
        result = result + product;
    }
    return result;
}

Condition Integers::replace(const Condition& c, const std::map<Atom, Poly>& with) {
    if (!mentions_any(c, with)) return c;
    switch (c.kind) {
        case Condition::Kind::yes:
        case Condition::Kind::no: return c;
        case Condition::Kind::at_least_zero: return at_least(replace(c.poly, with), Poly(0));
        case Condition::Kind::zero: return equals(replace(c.poly, with), Poly(0));
        case Condition::Kind::nonzero: return negated(equals(replace(c.poly, with), Poly(0)));
        case Condition::Kind::all:
        case Condition::Kind::any: {
            Condition r;
            if (c.kind == Condition::Kind::any) r.kind = Condition::Kind::no;
            for (const Condition& p : c.parts) r = c.kind == Condition::Kind::all ? both(r, replace(p, with)) : either(r, replace(p, with));
            return r;
        }
    }
    return c;
}

void Integers::collect(const Poly& p, std::vector<Atom>& out) const {
    for (const auto& [m, k] : p.terms) {
        for (Atom a : m) {
            out.push_back(a);
            const std::vector<Atom>& inside = info(a).inside;
            out.insert(out.end(), inside.begin(), inside.end());
        }
    }
}

void Integers::collect(const Condition& c, std::vector<Atom>& out) const {
    collect(c.poly, out);
    for (const Condition& p : c.parts) collect(p, out);
}

bool Integers::mentions(const Poly& p, Atom a) const {
    for (const auto& [m, k] : p.terms) {
        for (Atom x : m) {
            if (x == a) return true;
            const std::vector<Atom>& inside = info(x).inside;
            if (std::binary_search(inside.begin(), inside.end(), a)) return true;
        }
    }
    return false;
}

bool Integers::mentions(const Condition& c, Atom a) const {
    return mentions(c.poly, a) || std::any_of(c.parts.begin(), c.parts.end(), [&](const Condition& p) { return mentions(p, a); });
}

bool Integers::mentions_any(const Poly& p, const std::map<Atom, Poly>& of) const {
    return std::any_of(of.begin(), of.end(), [&](const auto& entry) { return mentions(p, entry.first); });
}

bool Integers::mentions_any(const Condition& c, const std::map<Atom, Poly>& of) const {
    return mentions_any(c.poly, of) || std::any_of(c.parts.begin(), c.parts.end(), [&](const Condition& p) { return mentions_any(p, of); });
}

std::string Integers::text(const Poly& p) const {
    if (p.terms.empty()) return "0";
    const BoundedText room;
    std::string s;
    for (const auto& [m, k] : p.terms) {
        if (room.full()) return s + "...";
        const std::int64_t size = k < 0 ? -k : k;
        s += s.empty() ? (k < 0 ? "-" : "") : (k < 0 ? " - " : " + ");
        if (m.empty()) {
            s += std::to_string(size);
            continue;
        }
        if (size != 1) s += std::to_string(size) + "*";
        for (std::size_t i = 0; i < m.size(); ++i) {
            const AtomInfo& a = info(m[i]);
            if (i) s += "*";
            switch (a.kind) {
                case AtomInfo::Kind::symbol: s += a.name; break;
                case AtomInfo::Kind::quotient: s += "((" + text(a.args[0]) + ") // (" + text(a.args[1]) + "))"; break;
                case AtomInfo::Kind::minimum: s += "min(" + text(a.args[0]) + ", " + text(a.args[1]) + ")"; break;
                case AtomInfo::Kind::maximum: s += "max(" + text(a.args[0]) + ", " + text(a.args[1]) + ")"; break;
                case AtomInfo::Kind::choice:
                    s += "(" + text(a.args[0]) + " if " + text(a.condition) + " else " + text(a.args[1]) + ")";
                    break;
                case AtomInfo::Kind::element:
                case AtomInfo::Kind::opaque: {
                    const auto tensor = static_cast<std::size_t>(a.tensor);
                    s += (a.kind != AtomInfo::Kind::element ? a.name
                          : tensor < tensors.size()         ? tensors[tensor]
                                                            : "tensor" + std::to_string(a.tensor)) +
                         "[";
                    for (std::size_t j = 0; j < a.args.size(); ++j) s += (j ? ", " : "") + text(a.args[j]);
                    s += "]";
                    break;
                }
            }
        }
    }
    return s;
}

std::string Integers::text(const Condition& c) const {
    const BoundedText room;
    if (room.full()) return "...";
    switch (c.kind) {
        case Condition::Kind::yes: return "true";
        case Condition::Kind::no: return "false";
        case Condition::Kind::at_least_zero: return text(c.poly) + " >= 0";
        case Condition::Kind::zero: return text(c.poly) + " == 0";
        case Condition::Kind::nonzero: return text(c.poly) + " != 0";
        case Condition::Kind::all:
        case Condition::Kind::any: {
            std::string s = "(";
            for (std::size_t i = 0; i < c.parts.size(); ++i)
                s += (i ? (c.kind == Condition::Kind::all ? " and " : " or ") : "") + text(c.parts[i]);
            return s + ")";
        }
    }
    return "?";
}

}  // namespace tw::verify
