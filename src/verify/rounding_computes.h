// What `computes` says about rounding: the bound that its casts allow, and the comparison with a kernel's.
#pragma once

#include "verify/obligation.h"
#include "verify/rounding_value.h"

namespace tw::verify {

// Is f64 stated anywhere?
bool states_f64(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors);

// What tensors hold already, by number; those that are not listed are exact.
struct Held {
    Bound bound;
    Exact exact;    // the type that holds it without rounding
    Rounded whole;  // with its parts, by the numbers of the computation that made it; not known: nothing more than the bound
    std::vector<std::int64_t> place;  // the index variables of the element that `whole` is
};
using TensorBounds = std::map<int, Held>;

// The rounding that an equation states, that of storing its value included. `launch` tells the elements and scalars of one launch from
// those of another.
Held stated_rounding(RoundingArithmetic& arithmetic, const ir::Equation& equation, const std::vector<ir::Tensor>& tensors,
                     const TensorBounds& holds = {}, std::int64_t launch = 0);

// Why the bound is not within what is allowed; empty: it is.
std::string beyond_allowance(const Bound& actual, const Bound& allowed, ir::DType output);

// The obligation of an output.
Obligation precision_obligation(const ir::Tensor& output, const ir::Loc& loc, const Bound& actual, const Bound& allowed,
                                const Trips& trips);

}  // namespace tw::verify
