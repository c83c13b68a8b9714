// Programs: several launches with buffers between them, verified as one.
//
// Every kernel of a program is proved to do what its own `computes` says. What is left is a matter of terms: put the equation
// of each buffer in the place of its elements, launch after launch, and what results for the program's outputs must be what
// the program's `computes` says. A buffer's state between launches is its equation.
#pragma once

#include <vector>

#include "verify/obligation.h"

namespace tw::verify {

// One obligation per output of the program. It presupposes that the kernels are proved: see `used`.
std::vector<Obligation> check_program(const ir::Module& module, const ir::Program& program);

}  // namespace tw::verify
