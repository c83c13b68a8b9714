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

// What a statement of a kernel stores to a tensor, where that is one part of a number (rounding_value.h, Parts).
struct StoredPart {
    int number = -1;  // of the value that was split: -1: what is stored is no part
    int level = 0;
    double unit = 0;
    std::uint64_t place = 0;  // equal: the same elements of a tensor of the same shape
    friend bool operator==(const StoredPart&, const StoredPart&) = default;
};
// By tensor, in the order of the statements.
using StoredParts = std::map<int, std::vector<StoredPart>>;
StoredParts stored_parts(const ir::Kernel& kernel);

// Why the bound is not within what is allowed; empty: it is.
std::string beyond_allowance(const Bound& actual, const Bound& allowed, ir::DType output);

// The obligation of an output.
Obligation precision_obligation(const ir::Tensor& output, const ir::Loc& loc, const Bound& actual, const Bound& allowed,
                                const Trips& trips);

}  // namespace tw::verify
