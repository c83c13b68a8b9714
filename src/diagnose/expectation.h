// tw.expect statements that do not hold, shown on the emulator.
//
// A condition is evaluated where a warp passes it, and a term is compared with the fp64 reference. Fields are not in the data, so
// they are measured, as provenance is: all input elements with one value of the field are changed, the kernel runs again, and
// the elements of the tile that are no longer the same have that value of the field.
#pragma once

#include <optional>
#include <set>

#include "diagnose/counterexample.h"

namespace tw::diagnose {

// The first expectation found to fail, among those on these lines of the file.
std::optional<Counterexample> refute_expectations(const ir::Kernel& kernel, const std::set<ir::Line>& lines, const SearchOptions& options);

}  // namespace tw::diagnose
