// What a Shuffle does to a register tile. Every value slot of a thread receives the same slot of another lane of its warp; the tile keeps
// its distribution, so an element of the result is an element of the source at another coordinate: the one that the other lane holds in
// that slot.
#pragma once

#include <optional>
#include <vector>

#include "ir/ir.h"
#include "target/warp.h"

namespace tw::ir {

// The thread of the group whose values thread `t` receives.
int shuffle_source(const Shuffle& op, int t);

// Whether all threads that hold copies of an element receive the same element, so that the result is a tile again.
bool keeps_copies(const Distribution& d, const Shuffle& op);

// The digits of the lane number: digit = (coordinate[dim] / step) % extent, lane = sum of digit * place. dim -1: copies.
struct LaneDigit {
    int place = 1, extent = 1, dim = -1, step = 0;
};
// Nothing where a digit straddles the warp or the coordinate does not determine it.
std::optional<std::vector<LaneDigit>> lane_digits(const Distribution& d);

}  // namespace tw::ir
