// Which dimensions of which accesses need no test, from constants alone.
#pragma once

#include "ir/ir.h"

namespace tw::lower {

// Claims that a tile lies inside a dimension of its tensor where the grid and the loops around it, all of constant extent, leave it nowhere
// else. The verifier proves each claim, as it does those of loads without a fill.
void claim_bounds(ir::Kernel& kernel);

}  // namespace tw::lower
