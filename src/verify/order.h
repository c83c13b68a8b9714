// Synchronisation, for all sizes: no race, no deadlock, no stale phase, no missing fence, nothing in flight where it is used.
//
// The order of events in one launch does not depend on the schedule: control flow is uniform and data-independent of other
// threads, and every barrier of the language counts arrivals, so which events a wait waits for is a function of the program
// text and the trip counts alone. One run with vector clocks therefore decides all schedules *of that instance*.
//
// What remains is to go from instances to all sizes. Sizes enter the order of events only through trip counts; slots and
// parities are counters modulo small constants. So the sequence of events of a loop is periodic in its iteration with period
// P = 2 * (the largest number of slots), and any conflict between two iterations further apart than P repeats between two
// that are not. The *periodic cut-off lemma*: if a family of instances in which each size in turn is tiny, one tile, a few
// tiles and P + 2 tiles, while the others are at one tile or at a few, is free of faults, all instances are.
// Its side conditions are checked on the text (`cutoff_obstacle`): every slot, parity, shared origin and synchronisation
// condition is built from loop variables and unit-step counters by + - * // % and comparisons that hold the same truth value
// after a shift of all iterations by P, except within P of either end of a loop. Where they fail the answer is "not proved".
#pragma once

#include <string>
#include <vector>

#include "emulate/emulator.h"
#include "verify/obligation.h"

namespace tw::verify {

struct Instance {
    std::vector<std::int64_t> sizes;
    int resident_blocks = 1;
    std::string text;                  // "M=128 N=256 K=640"
};

struct OrderResult {
    std::vector<Obligation> obligations;
    std::vector<emulate::Fault> faults;      // of the first failing instance
    Instance failing;
    std::vector<Dependence> dependences;
    int instances = 0;
};

// Instances that exercise every loop near both ends and past its period. Pre: last form. Deterministic.
std::vector<Instance> cutoff_instances(const ir::Kernel& kernel);
// Empty when the cut-off lemma applies; otherwise the first expression that it cannot handle.
std::string cutoff_obstacle(const ir::Kernel& kernel);

OrderResult check_order(const ir::Kernel& kernel);

}  // namespace tw::verify
