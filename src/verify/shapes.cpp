#include "verify/shapes.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

constexpr std::int64_t largest = std::int64_t{1} << 40;  // of bounds and growths: beyond it nothing is claimed

std::optional<std::int64_t> small(std::int64_t v) { return v > largest || v < -largest ? std::nullopt : std::optional(v); }

// Brings a step to a multiple of its period.
bool stretch(Shape::Step& s, std::int64_t to) {
    const std::int64_t times = to / s.period;
    std::int64_t growth = 0;
    if (to > longest_shape_period || __builtin_mul_overflow(s.growth, times, &growth) || !small(growth)) return false;
    s = {to, growth};
    return true;
}

const char* too_long() { return "repeats after more than 65536"; }

// a + factor * b, atoms and bounds.
Shape sum(const Shape& a, const Shape& b, std::int64_t factor) {
    if (!a.known()) return a;
    if (!b.known()) return b;
    Shape r = a;
    for (const auto& [atom, step] : b.atoms) {
        Shape::Step scaled = step;
        if (__builtin_mul_overflow(step.growth, factor, &scaled.growth)) return no_shape("overflows");
        auto [it, fresh] = r.atoms.emplace(atom, scaled);
        if (fresh) continue;
        const std::int64_t both = std::lcm(it->second.period, scaled.period);
        if (!stretch(it->second, both) || !stretch(scaled, both)) return no_shape(too_long());
        it->second.growth += scaled.growth;
    }
    const auto low = factor >= 0 ? b.least : b.most, high = factor >= 0 ? b.most : b.least;
    r.least = a.least && low ? small(*a.least + factor * *low) : std::nullopt;
    r.most = a.most && high ? small(*a.most + factor * *high) : std::nullopt;
    return r;
}

// Both periodic: any function of the two is, with the common periods. Bounds are the caller's.
Shape together(const Shape& a, const Shape& b) {
    Shape r = sum(a, b, 1);
    if (!r.known()) return r;
    if (!a.periodic() || !b.periodic()) return no_shape("is no periodic function of what grows");
    r.least = r.most = std::nullopt;
    return r;
}

// e(x) -> floor(e(x) / q) or a permutation of the low bits of e: growths become multiples of `unit`, then are divided by `by`.
Shape aligned(Shape s, std::int64_t unit, std::int64_t by) {
    for (auto& [atom, step] : s.atoms) {
        const std::int64_t times = unit / std::gcd(step.growth, unit);
        if (!stretch(step, step.period * times)) return no_shape(too_long());
        step.growth /= by;
    }
    return s;
}

std::int64_t power_above(std::int64_t mask) {
    std::int64_t p = 1;
    while (p <= mask) p *= 2;
    return p;
}

// x - x // d * d: the d, of what is x % d written out.
std::optional<std::int64_t> written_remainder(const Expr& e) {
    const Expr& taken = e->args[1];
    if (taken.kind() != ExprKind::mul) return std::nullopt;
    for (const std::size_t side : {0u, 1u}) {
        const Expr& q = taken->args[1 - side];
        const auto d = taken->args[side].as_constant();
        if (d && *d > 0 && q.kind() == ExprKind::floor_div && q->args[1].is_constant(*d) && ir::same(q->args[0], e->args[0])) return d;
    }
    return std::nullopt;
}

bool is_comparison(ExprKind k) { return k == ExprKind::lt || k == ExprKind::le || k == ExprKind::eq || k == ExprKind::ne; }

}  // namespace

bool Shape::periodic() const {
    return known() && std::all_of(atoms.begin(), atoms.end(), [](const auto& a) { return a.second.growth == 0; });
}

Shape no_shape(std::string obstacle) {
    Shape s;
    s.obstacle = std::move(obstacle);
    return s;
}

Shape constant_shape(std::int64_t least, std::int64_t most) {
    Shape s;
    s.least = small(least), s.most = small(most);
    return s;
}

Shape atom_shape(ShapeAtom atom, std::optional<std::int64_t> least) {
    Shape s;
    s.atoms[atom] = {1, 1};
    s.least = least;
    return s;
}

Shape either(const Shape& a, const Shape& b) {
    Shape r = together(a, b);
    if (a.least && b.least) r.least = std::min(*a.least, *b.least);
    if (a.most && b.most) r.most = std::max(*a.most, *b.most);
    return r;
}

Shape ShapeReader::modulo(const Expr& e, std::int64_t d) const {
    if (d > longest_shape_period) return no_shape(too_long());
    Shape r;
    if (e.kind() == ExprKind::add || e.kind() == ExprKind::sub || e.kind() == ExprKind::mul) {
        r = together(modulo(e->args[0], d), modulo(e->args[1], d));  // the remainder of a sum or product is one of the remainders
    } else if ((e.kind() == ExprKind::bit_and || e.kind() == ExprKind::bit_xor) && (d & (d - 1)) == 0) {
        r = together(modulo(e->args[0], d), modulo(e->args[1], d));  // and the low bits are those of the low bits
    } else {
        r = aligned(of(e), d, 1);
        for (auto& [atom, step] : r.atoms) step.growth = 0;
    }
    if (r.known()) r.least = 0, r.most = d - 1;
    return r;
}

Shape ShapeReader::of(const Expr& e) const {
    const auto& args = e->args;
    auto constant = [&](std::size_t i) { return args[i].as_constant(); };
    switch (e.kind()) {
        case ExprKind::constant: return constant_shape(e->value, e->value);
        case ExprKind::size:
        case ExprKind::var:
        case ExprKind::block_index:
        case ExprKind::grid_size:
        case ExprKind::cluster_rank:
        case ExprKind::element: return leaf(e);
        case ExprKind::add: return sum(of(args[0]), of(args[1]), 1);
        case ExprKind::sub:
            if (const auto d = written_remainder(e)) return modulo(args[0], *d);
            return sum(of(args[0]), of(args[1]), -1);
        case ExprKind::mul:
        case ExprKind::shift_left: {
            if (const auto c = constant(1); c && e.kind() == ExprKind::shift_left) {
                return *c >= 0 && *c < 40 ? sum(constant_shape(0, 0), of(args[0]), std::int64_t{1} << *c) : no_shape("is shifted too far");
            }
            for (std::size_t i : {0u, 1u}) {
                if (const auto c = constant(i); c && e.kind() == ExprKind::mul) return sum(constant_shape(0, 0), of(args[1 - i]), *c);
            }
            const Shape a = of(args[0]), b = of(args[1]);
            Shape r = together(a, b);
            if (r.known() && a.least && b.least && a.most && b.most && *a.least >= 0 && *b.least >= 0) {
                if (e.kind() == ExprKind::mul && *a.most < 1 << 20 && *b.most < 1 << 20)
                    r.least = *a.least * *b.least, r.most = *a.most * *b.most;
                if (e.kind() == ExprKind::shift_left && *a.most < 1 << 10 && *b.most < 20) r.least = 0, r.most = *a.most << *b.most;
            }
            return r;
        }
        case ExprKind::floor_div:
        case ExprKind::shift_right: {
            auto q = constant(1);
            if (q && e.kind() == ExprKind::shift_right) q = *q >= 0 && *q < 40 ? std::optional(std::int64_t{1} << *q) : std::nullopt;
            if (!q || *q <= 0) return together(of(args[0]), of(args[1]));
            Shape r = aligned(of(args[0]), *q, *q);
            if (r.least) r.least = ir::floor_div(*r.least, *q);
            if (r.most) r.most = ir::floor_div(*r.most, *q);
            return r;
        }
        case ExprKind::mod: {
            if (const auto d = constant(1); d && *d > 0) return modulo(args[0], *d);
            const Shape b = of(args[1]);
            Shape r = together(of(args[0]), b);
            if (r.known() && b.least && *b.least > 0 && b.most) r.least = 0, r.most = *b.most - 1;
            return r;
        }
        case ExprKind::bit_and:
        case ExprKind::bit_xor: {
            for (std::size_t i : {0u, 1u}) {
                const auto c = constant(i);
                if (!c || *c >= largest || *c <= -largest) continue;
                const Expr& x = args[1 - i];
                const std::int64_t mask = *c >= 0 ? *c : ~*c, unit = power_above(mask);
                Shape low = modulo(x, unit);
                if (e.kind() == ExprKind::bit_and) {
                    if (low.known()) low.most = mask;
                    return *c >= 0 ? low : sum(of(x), low, -1);  // x & ~m is x less its bits in m
                }
                Shape r = aligned(of(x), unit, 1);
                if (*c < 0) return sum(constant_shape(-1, -1), r, -1);  // x ^ ~m is ~(x ^ m)
                if (r.known() && r.least && *r.least >= 0)
                    r.least = 0, r.most = r.most ? std::optional(std::max(power_above(*r.most), unit) - 1) : std::nullopt;
                else r.least = r.most = std::nullopt;
                return r;
            }
            const Shape a = of(args[0]), b = of(args[1]);
            Shape r = together(a, b);
            if (r.known() && a.least && b.least && *a.least >= 0 && *b.least >= 0 && a.most && b.most)
                r.least = 0, r.most = power_above(std::max(*a.most, *b.most)) - 1;
            return r;
        }
        case ExprKind::min:
        case ExprKind::max: {
            const Shape a = of(args[0]), b = of(args[1]);
            Shape r = together(a, b);
            if (!r.known()) return r;
            const bool low = e.kind() == ExprKind::min;
            auto pick = [&](const std::optional<std::int64_t>& x, const std::optional<std::int64_t>& y,
                            bool one_is_enough) -> std::optional<std::int64_t> {
                if (x && y) return low ? std::min(*x, *y) : std::max(*x, *y);
                return one_is_enough ? (x ? x : y) : std::nullopt;
            };
            r.least = pick(a.least, b.least, !low);
            r.most = pick(a.most, b.most, low);
            return r;
        }
        case ExprKind::select: {
            const Shape c = of(args[0]), r = either(of(args[1]), of(args[2]));
            Shape all = together(c, r);
            all.least = r.least, all.most = r.most;
            return all;
        }
        case ExprKind::logic_and:
        case ExprKind::logic_or:
        case ExprKind::logic_not: {
            Shape r = of(args[0]);
            if (args.size() > 1) r = together(r, of(args[1]));
            r.least = 0, r.most = 1;
            return r;
        }
        default: break;
    }
    if (!is_comparison(e.kind())) return no_shape("is not understood");
    Shape d = sum(of(args[0]), of(args[1]), -1);
    if (!d.known() || !d.periodic()) {
        if (!threshold(e)) return no_shape(d.known() ? "may change its truth in the middle of a loop" : d.obstacle);
        Shape yes_or_no;  // what is periodic in it, near the threshold
        yes_or_no.least = 0, yes_or_no.most = 1;
        for (const auto& [atom, step] : d.atoms) yes_or_no.atoms[atom] = {step.period, 0};
        return yes_or_no;
    }
    d.least = 0, d.most = 1;
    return d;
}

}  // namespace tw::verify
