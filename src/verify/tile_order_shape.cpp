#include "verify/tile_order_shape.h"

#include <algorithm>
#include <cstdlib>

namespace tw::verify {

bool TileOrderShape::moves(Atom a) const {
    if (loops_.count(a)) return true;
    const AtomInfo& i = ints_.info(a);
    return std::any_of(i.inside.begin(), i.inside.end(), [&](Atom inner) { return loops_.count(inner) > 0; });
}

TileOrderShape::Degrees TileOrderShape::degrees(Atom a) const {
    if (given_.count(a)) return {};
    const AtomInfo& i = ints_.info(a);
    Degrees most;
    auto join = [&](const Poly& p) {
        for (const auto& [size, n] : degrees(p)) most[size] = std::max(most[size], n);
    };
    switch (i.kind) {
        case AtomInfo::Kind::symbol:
            if (std::find(sizes_.begin(), sizes_.end(), a) != sizes_.end() || loops_.count(a)) most[a] = 1;
            break;
        case AtomInfo::Kind::quotient: join(i.args[0]); break;
        case AtomInfo::Kind::minimum:  // bounded: it does not grow
            if (std::any_of(i.args.begin(), i.args.end(), [&](const Poly& p) { return degrees(p).empty(); })) break;
            [[fallthrough]];
        case AtomInfo::Kind::maximum:
            for (const Poly& p : i.args) join(p);
            break;
        default: break;
    }
    return most;
}

TileOrderShape::Degrees TileOrderShape::degrees(const Poly& p) const {
    Degrees most;
    for (const auto& [m, k] : p.terms) {
        Degrees here;
        for (Atom a : m) {
            for (const auto& [size, n] : degrees(a)) here[size] += n;
        }
        for (const auto& [size, n] : here) most[size] = std::max(most[size], n);
    }
    return most;
}

// x - d (x // d): less than d, whatever x is.
bool TileOrderShape::is_remainder(const Poly& p, Atom quotient) const {
    const Poly rest = p + ints_.info(quotient).args[1] * Poly::of(quotient);
    return std::none_of(rest.terms.begin(), rest.terms.end(),
                        [&](const auto& term) { return std::find(term.first.begin(), term.first.end(), quotient) != term.first.end(); });
}

std::int64_t TileOrderShape::magnitude(const Monomial& product, std::int64_t coefficient) const {
    std::int64_t out = std::abs(coefficient);
    for (const Atom a : product) {
        const auto found = std::find(sizes_.begin(), sizes_.end(), a);
        if (found != sizes_.end()) out /= factors_[static_cast<std::size_t>(found - sizes_.begin())];
    }
    return out;
}

void TileOrderShape::look(const Poly& p, std::int64_t scale, std::int64_t chain, const Degrees& divided) {
    for (const auto& [m, k] : p.terms) {
        const std::int64_t c = (magnitude(m, k) + scale - 1) / scale;
        if (c > 1) constants_.insert(c);
        for (Atom a : m) {  // elements, not tiles
            const auto found = std::find(sizes_.begin(), sizes_.end(), a);
            if (found != sizes_.end() && units_[static_cast<std::size_t>(found - sizes_.begin())] > 1) by_element_.insert(a);
        }
        Degrees of_sizes;
        for (Atom a : m) {
            if (!moves(a)) {
                for (const auto& [size, n] : degrees(a)) {
                    if ((of_sizes[size] += n) > 1) refuse("the tile order has a power of a size");
                }
            }
            const bool remainder = ints_.info(a).kind == AtomInfo::Kind::quotient && is_remainder(p, a);
            look(a, remainder ? 1 : chain, remainder ? Degrees{} : divided);
        }
    }
}

// (size + a) // d, which changes with whole tiles, or with equal parts of one: where they begin, or an element later.
bool TileOrderShape::in_tiles(const Poly& over, const Poly& by) {
    const auto d = by.constant();
    Atom size{};
    std::int64_t shift = 0;
    bool one = false;
    for (const auto& [m, k] : over.terms) {
        if (m.empty()) {
            shift = k;
            continue;
        }
        if (one || m.size() != 1 || k != 1 || std::find(sizes_.begin(), sizes_.end(), *m.begin()) == sizes_.end()) return false;
        one = true;
        size = *m.begin();
    }
    if (!one || !d || *d <= 0) return false;
    const std::int64_t unit = units_[static_cast<std::size_t>(std::find(sizes_.begin(), sizes_.end(), size) - sizes_.begin())];
    const std::int64_t part = *d % unit == 0 ? unit : unit % *d == 0 ? *d : 0;
    if (part == 0 || (ir::floor_mod(shift, part) != 0 && ir::floor_mod(shift, part) != part - 1)) return false;
    const std::int64_t c = (std::abs(shift) + unit - 1) / unit;
    if (c > 1) constants_.insert(c);
    if (part < unit) parts_[size].insert(part);
    return true;
}

void TileOrderShape::look(Atom a, std::int64_t chain, const Degrees& divided) {
    if (given_.count(a) || !seen_.emplace(a, chain).second) return;
    const AtomInfo i = ints_.info(a);
    if (i.kind == AtomInfo::Kind::minimum || i.kind == AtomInfo::Kind::maximum) {
        for (const Poly& arg : i.args) look(arg, 1, chain, divided);
    }
    if (i.kind != AtomInfo::Kind::quotient) return;
    const Poly &over = i.args[0], &by = i.args[1];
    // What is made of sizes alone counts elements: constants in tiles.
    std::int64_t unit = 1;
    bool plain = !over.terms.empty();
    for (const auto& [m, k] : over.terms) {
        for (Atom inner : m) {
            const auto at = std::find(sizes_.begin(), sizes_.end(), inner);
            plain = plain && at != sizes_.end();
            if (at != sizes_.end()) unit = std::max(unit, units_[static_cast<std::size_t>(at - sizes_.begin())]);
        }
    }
    const std::int64_t scale = plain ? unit : 1;
    if (!by.constant() && !moves(a)) refuse("the tile order divides a size by a size");
    std::int64_t most = 1;
    Degrees deeper = divided;
    for (const auto& [m, k] : by.terms) {
        const std::int64_t c = (magnitude(m, k) + scale - 1) / scale;
        most = std::max(most, c);
        if (c > (1 << 20) || chain > (1 << 20)) return refuse("the tile order divides by too large a number");
        if (c * chain > 1) constants_.insert(c * chain);
    }
    for (const auto& [size, n] : degrees(by)) {
        if (loops_.count(size)) refuse("the tile order divides by something that grows with the tile's number");
        if ((deeper[size] += n) > 1) refuse("the tile order divides by a power of a size");
    }
    if (!in_tiles(over, by)) look(over, scale, most * chain, deeper);
    look(by, scale, 1, {});
}

}  // namespace tw::verify
