// What the last form takes for granted of its own shape, shown again for all sizes: vector accesses are aligned and contiguous, shared
// layouts are one to one, the grid is a whole number of clusters.
//
// The lowering chooses the widths; here they are shown again from the last form alone, by congruences: of every integer a
// number that divides it, from constants, assumptions of the form `size % c == 0` and all assignments to a variable.
#pragma once

#include <vector>

#include "verify/obligation.h"

namespace tw::verify {

// One obligation for the whole kernel; none when it has no access of several elements.
std::vector<Obligation> check_widths(const ir::Kernel& kernel);

// A cluster is whole or does not start. An obligation stands for it only where it is not shown.
std::vector<Obligation> check_grid(const ir::Kernel& kernel);

// Shared layouts are one to one: what is written to one element is not what another one holds. All proofs of data flow lean on it; an
// obligation stands for it only where it fails.
std::vector<Obligation> check_buffers(const ir::Kernel& kernel);

}  // namespace tw::verify
