// Kernels of one name are variants of one function: a launch takes the first whose assumptions hold.
#pragma once

#include <vector>

#include "lower/draft.h"

namespace tw::lower {

// Reports variants that differ in their parameters or in what they compute. Post: false where it has reported one.
bool variants_agree(const std::vector<ir::Kernel>& kernels, const Context& context);

}  // namespace tw::lower
