// Do a kernel's uniform integers fit the 32 bits in which the emitted text computes them?
//
// Proofs take them for whole numbers without bound (ir/expr.h). The launcher knows the sizes, and with them an interval for every block
// index, loop variable and scalar: what it cannot bound below 2^31 it refuses, before anything is computed with a number that wrapped.
//
// Intervals know nothing of conditions, and an element of an index tensor has the range that is promised of it. Of one without a promise,
// of scalars that a loop changes, and of what is computed from them nothing is known, and nothing is refused. Strides are not looked at:
// they are computed in 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

// The first expression, as text, that may not fit; nothing where all do. `sizes` by number, `grid` as it is launched at most.
std::optional<std::string> beyond_32_bits(const Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::int64_t (&grid)[3]);

}  // namespace tw::ir
