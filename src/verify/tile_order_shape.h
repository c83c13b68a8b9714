// What a formula of tiles must look like for small grids to speak for all: see docs/verifier.md, "Stores".
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "verify/integer.h"

namespace tw::verify {

// Numbers that grow with the grid enter a tile order as whole tiles a side, as their products (each side once), and as quotients and
// remainders by those. Then where one side of a minimum overtakes the other, or a quotient leaves 0, is a matter of the formula's
// constants.
class TileOrderShape {
public:
    // `sizes`: of the tiled dimensions, with the extents of their tiles; `loops`: the variables of the tile loops; `given`: atoms that are
    // enumerated like sizes and stand for a number. `factors`: by what each size is multiplied wherever it stands (factor_of_size); the
    // formula is then one in the product.
    TileOrderShape(const Integers& ints, const std::vector<Atom>& sizes, const std::vector<std::int64_t>& units,
                   const std::vector<std::int64_t>& factors, const std::set<Atom>& loops, const std::set<Atom>& given)
        : ints_(ints), sizes_(sizes), units_(units), factors_(factors), loops_(loops), given_(given) {}

    // Pre: `p` is in terms of loops, sizes and `given` alone.
    void look(const Poly& p) { look(p, 1, 1, {}); }

    // Every constant that decides where something changes, in tiles; constants of quotients of quotients are multiplied.
    const std::set<std::int64_t>& constants() const { return constants_; }
    // Sizes that enter element by element, and equal parts of a tile by which others do.
    const std::set<Atom>& by_element() const { return by_element_; }
    const std::map<Atom, std::set<std::int64_t>>& parts() const { return parts_; }
    // Why small grids do not speak for all; empty where they do.
    const std::string& obstacle() const { return obstacle_; }

private:
    using Degrees = std::map<Atom, int>;  // how often a size is a factor

    void look(const Poly& p, std::int64_t scale, std::int64_t chain, const Degrees& divided);
    void look(Atom a, std::int64_t chain, const Degrees& divided);
    Degrees degrees(const Poly& p) const;
    Degrees degrees(Atom a) const;
    bool moves(Atom a) const;  // with a loop
    bool is_remainder(const Poly& p, Atom quotient) const;
    bool in_tiles(const Poly& over, const Poly& by);
    // The coefficient of a product of atoms, in terms of the sizes with their factors.
    std::int64_t magnitude(const Monomial& product, std::int64_t coefficient) const;
    void refuse(const std::string& why) {
        if (obstacle_.empty()) obstacle_ = why;
    }

    const Integers& ints_;
    const std::vector<Atom>& sizes_;
    const std::vector<std::int64_t>&units_, &factors_;
    const std::set<Atom>&loops_, &given_;
    std::set<std::int64_t> constants_;
    std::set<Atom> by_element_;
    std::map<Atom, std::set<std::int64_t>> parts_;
    std::set<std::pair<Atom, std::int64_t>> seen_;
    std::string obstacle_;
};

}  // namespace tw::verify
