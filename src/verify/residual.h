// Statements about rounding errors.
#pragma once

#include "ir/ir.h"

namespace tw::verify {

// Does an equation subtract from a value that value rounded? Proofs and references compare real numbers, where nothing is left: neither can
// say what such a kernel must store.
bool states_rounding_error(const ir::Computes& computes);

// x - T(x) as it stands: the rounding of a program follows what is left of such a difference (verify/rounding_computes.cpp).
bool subtracts_own_rounding(const ir::TermNode& t);

}  // namespace tw::verify
