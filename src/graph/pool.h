// Pooling whose windows meet: rows are folded in registers, then a line of what they gave in shared memory.
#pragma once

#include <vector>

#include "graph/product.h"
#include "graph/window.h"

namespace tw::graph {

// `positions` has the atoms of the output's dimensions (-1: a single position). `terms`: `computes` lists the taps, instead of folding over
// them. False: not for this window; nothing was written.
bool write_pool_rows(Writer& w, const std::vector<Residue>& r, const std::vector<int>& positions, bool terms);

}  // namespace tw::graph
