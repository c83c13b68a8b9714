// Index tensors as functions of which only the promises are known: their laws, instantiated at the elements that a query mentions.
#include <algorithm>

#include "verify/integer.h"

namespace tw::verify {

std::vector<Condition> Integers::promised(const std::vector<Atom>& atoms) const {
    std::vector<Atom> elements;
    for (Atom a : atoms) {
        const AtomInfo& i = info(a);
        const bool about = i.kind == AtomInfo::Kind::element && static_cast<std::size_t>(i.tensor) < promises.size() &&
                           promises[static_cast<std::size_t>(i.tensor)].any();
        if (about && std::find(elements.begin(), elements.end(), a) == elements.end()) elements.push_back(a);
    }
    // Leaving laws out is always sound; the square of a dozen is what a query can bear.
    if (elements.size() > 12) elements.resize(12);
    std::vector<Condition> laws;
    auto promise = [&](Atom a) -> const ContentPromise& { return promises[static_cast<std::size_t>(info(a).tensor)]; };
    auto in_bounds = [&](Atom a) {
        Condition c;
        const AtomInfo& i = info(a);
        for (std::size_t d = 0; d < i.args.size(); ++d)
            c = both(c, both(at_least(i.args[d], Poly(0)), less(i.args[d], promise(a).dims[d])));
        return c;
    };
    auto law = [&](const Condition& given, const Condition& then) { laws.push_back(either(negated(given), then)); };
    for (Atom a : elements) {
        const ContentPromise& p = promise(a);
        const Condition inside = in_bounds(a);
        const Poly value = Poly::of(a);
        if (p.range) law(inside, both(at_least(value, p.range->first), less(value, p.range->second)));
        if (p.offsets_of >= 0) {  // the first offset is 0, the last one the number of rows
            const Poly& index = info(a).args[0];
            law(equals(index, Poly(0)), equals(value, Poly(0)));
            if (p.range) law(equals(index, p.dims[0] - Poly(1)), equals(value, p.range->second - Poly(1)));
        }
        for (Atom b : elements) {
            if (a == b) continue;
            const Poly& i = info(a).args.back();
            const Poly& j = info(b).args.back();
            const Condition both_inside = both(inside, in_bounds(b));
            if (p.sorted && info(a).tensor == info(b).tensor) {
                Condition same_row;
                for (std::size_t d = 0; d + 1 < info(a).args.size(); ++d)
                    same_row = both(same_row, equals(info(a).args[d], info(b).args[d]));
                law(both(both(both_inside, same_row), at_least(j, i)), at_least(Poly::of(b), value));
            }
            if (p.distinct && a < b && info(a).tensor == info(b).tensor) {
                Condition same_row;
                for (std::size_t d = 0; d + 1 < info(a).args.size(); ++d)
                    same_row = both(same_row, equals(info(a).args[d], info(b).args[d]));
                law(both(both(both_inside, same_row), both(at_least(value, Poly(0)), equals(value, Poly::of(b)))), equals(i, j));
            }
            // Row p lies before the offset of group e exactly when its group does: p < starts[e] <=> group[p] < e.
            if (p.offsets_of == info(b).tensor) {
                law(both(both_inside, less(j, value)), less(Poly::of(b), i));
                law(both(both_inside, less(Poly::of(b), i)), less(j, value));
            }
            if (p.inverse_of == info(b).tensor) {  // this[i] == j <=> other[j] == i
                law(both(both_inside, equals(value, j)), equals(Poly::of(b), i));
                law(both(both_inside, equals(Poly::of(b), i)), equals(value, j));
            }
            // A permutation takes no value twice.
            const bool permutation = p.inverse_of >= 0 || std::any_of(promises.begin(), promises.end(), [&](const ContentPromise& q) {
                                         return q.inverse_of == info(a).tensor;
                                     });
            if (permutation && a < b && info(a).tensor == info(b).tensor) law(both(both_inside, equals(value, Poly::of(b))), equals(i, j));
        }
    }
    // The rows of one tile are in one group.
    for (Atom end : elements) {
        const ContentPromise& p = promise(end);
        if (p.tile_starts < 0) continue;
        for (Atom start : elements) {
            if (info(start).tensor != p.tile_starts || !(info(start).args[0] == info(end).args[0])) continue;
            auto in_tile = [&](const Poly& row) {
                return both(at_least(row, Poly::of(start)),
                            both(less(row, Poly::of(end)), less(row, Poly::of(start) + Poly(p.tile_width))));
            };
            for (Atom a : elements) {
                for (Atom b : elements) {
                    if (a >= b || info(a).tensor != p.tile_groups || info(b).tensor != p.tile_groups) continue;
                    const Condition inside = both(both(in_bounds(start), in_bounds(a)), in_bounds(b));
                    law(both(inside, both(in_tile(info(a).args[0]), in_tile(info(b).args[0]))), equals(Poly::of(a), Poly::of(b)));
                }
            }
        }
    }
    return laws;
}

}  // namespace tw::verify
