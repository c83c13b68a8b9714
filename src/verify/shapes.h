// How the value of an integer expression goes on as what it is made of grows.
//
// Its *shape* names, for each atom (a loop variable, a counter, a size, a block index), a period and a growth: when the atom grows by the
// period, the value grows by the growth, whatever the other atoms are. A slot or a parity has growth 0: it is periodic, and the period is
// exact for every integer operator. What has no such shape (a product of two that grow, a minimum that is overtaken, data) has an obstacle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/ir.h"

namespace tw::verify {

// size, block_index, grid_size or var, with its number.
using ShapeAtom = std::pair<ir::ExprKind, int>;

struct Shape {
    struct Step {
        std::int64_t period = 1, growth = 1;
    };
    std::map<ShapeAtom, Step> atoms;
    std::optional<std::int64_t> least, most;  // bounds of the value, where known
    std::string obstacle;                     // empty: the shape is known

    bool known() const { return obstacle.empty(); }
    bool periodic() const;  // known, and grows with nothing
};

constexpr std::int64_t longest_shape_period = 1 << 16;

Shape no_shape(std::string obstacle);
Shape constant_shape(std::int64_t least, std::int64_t most);  // anything between, fixed for a warp that runs alone
Shape atom_shape(ShapeAtom atom, std::optional<std::int64_t> least);

// `leaf` gives the shapes of variables, sizes, block indices, ...; `threshold` is asked of comparisons whose sides part as something grows:
// true where it has seen to it that the truth changes near an end of a loop only.
struct ShapeReader {
    std::function<Shape(const ir::Expr&)> leaf;
    std::function<bool(const ir::Expr&)> threshold;

    Shape of(const ir::Expr& e) const;
    Shape modulo(const ir::Expr& e, std::int64_t d) const;  // of e % d
};

// Of a value that is one of both: periodic where both are.
Shape either(const Shape& a, const Shape& b);

}  // namespace tw::verify
