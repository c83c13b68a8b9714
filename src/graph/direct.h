// Convolutions in f32 registers: few channels, or few taps for each result, leave the matrix unit mostly idle (docs/performance/graph.md).
#pragma once

#include <vector>

#include "graph/product.h"
#include "graph/window.h"

namespace tw::graph {

// Whether a convolution is better computed directly, by counts of what either way multiplies and moves.
bool direct_is_better(const Primitives& p, const Group& g);

// The positions of one remainder of the strides; `positions` has the atoms of the dimensions (-1: a single one). `pack`: the weights are
// not packed yet. False: not for this convolution; nothing was written.
bool write_direct_phase(Writer& w, const std::vector<Residue>& r, const std::vector<int>& positions, bool pack);

}  // namespace tw::graph
