// Which sizes a proof may take for at least 1.
#pragma once

#include <set>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

// With 0 of any of them no equation states anything: its output has no element, or it has no value, because it divides by the size, takes
// the maximum of nothing or reads a tensor that has no element. Numbers of sizes.
std::set<int> sizes_needed(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors);

}  // namespace tw::verify
