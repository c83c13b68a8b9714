// Whether two tags are the same number for all data, where no single form of both is: asked case by case.
//
//   cases     a maximum, a minimum, a magnitude and a choice by a comparison are one of two things, by the sign of a difference.
//   Differences
//             that are one term plus constants are cut at those constants: between them, and at each, everything that hangs on that term
//             is decided. The two tags have to be the same in every case.
//   fractions both are put over one denominator, a product of sums that are not 0; tanh and logarithms of fractions are taken apart first.
//   folds     two folds over one range are the same where their bodies are.
//
// Every step is an identity of the real numbers, with the conditions that Values asks of sums and products; nothing here is used of tags
// that an infinite fill may reach.
#pragma once

#include "verify/value.h"

namespace tw::verify {

bool same_in_all_cases(Values& values, Integers& ints, Prover& prover, Value a, Value b);

}  // namespace tw::verify
