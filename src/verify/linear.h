// Linear integer arithmetic: does `goal` follow from the facts? A refutation of the facts together with the goal's opposite, by
// Fourier-Motzkin elimination with rounding to integers, case by case over alternatives (`or`, `!=`, min, max, choices).
//
// Every product of symbols is one unknown number; a quotient by a constant is its two inequalities. What is refuted over the
// rationals, or by rounding an inequality between integers to the next integer, has no integer solution, so "yes" is a proof.
// "No" means only that none was found within the limits, which are on rows and cases and the same on every machine.
#pragma once

#include <vector>

#include "verify/integer.h"

namespace tw::verify {

bool linear_implies(const Integers& ints, const std::vector<Condition>& facts, const Condition& goal);

}  // namespace tw::verify
