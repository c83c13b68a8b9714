// Where the elements of a tensor lie: two elements of an output never share an address, and no element lies before the tensor's first.
//
// All proofs of data flow speak of elements (Y[m, n] is written once); they say something of memory only where different elements are
// different places, for every size that the assumptions admit.
#pragma once

#include <vector>

#include "verify/obligation.h"

namespace tw::verify {

// One obligation for each tensor whose strides are not those of rows that follow one another; none for the others, whose elements lie
// apart by construction.
std::vector<Obligation> check_strides(const ir::Kernel& kernel);

}  // namespace tw::verify
