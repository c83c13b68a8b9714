// Synchronisation, for all sizes: no race, no deadlock, no stale phase, no missing fence, nothing in flight where it is used.
//
// The order of events in one launch does not depend on the schedule: control flow is uniform and data-independent of other
// threads, and every barrier of the language counts arrivals, so which events a wait waits for is a function of the program
// text and the trip counts alone. One run with vector clocks therefore decides all schedules *of that instance*.
//
// What remains is to go from instances to all sizes: verify/cutoff.h.
#pragma once

#include <string>
#include <vector>

#include "emulate/emulator.h"
#include "verify/cutoff.h"
#include "verify/obligation.h"

namespace tw::verify {

struct OrderResult {
    std::vector<Obligation> obligations;
    std::vector<emulate::Fault> faults;  // of the first failing instance
    Instance failing;
    std::vector<Dependence> dependences;
    int instances = 0;
};

OrderResult check_order(const ir::Kernel& kernel);

}  // namespace tw::verify
