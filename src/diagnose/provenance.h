// Which input elements an output element is made of: as `computes` says, and as the kernel really does.
//
// The kernel's side is measured: inputs are changed a slab at a time and the emulator is run again; an element that makes
// no difference to the output has no part in it. Bisection over slabs keeps the number of runs near the number of findings.
#pragma once

#include <string>
#include <vector>

#include "emulate/trial.h"

namespace tw::diagnose {

struct Provenance {
    std::string expected;   // "A[0, 0:64], B[3, 0:64]"
    std::string actual;
};

Provenance provenance_of(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const emulate::TrialOptions& options, int tensor,
                         const std::vector<std::int64_t>& where);

}  // namespace tw::diagnose
