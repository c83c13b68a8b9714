// Soundness cross-check: a random kernel, what the check says of it, and what the emulator finds.
#pragma once

#include <string>

#include "diagnose/random_kernel.h"

namespace tw::diagnose {

struct CrossOptions {
    // Seconds of the emulator. Most goes to what has a slip and is proved all the same: a hole, or a slip that changes nothing.
    double proved_seconds = 0.8;
    double other_seconds = 0.15;  // the rest: is the slip real, is the clean kernel right?
    int trials = 0;               // at most so many of the emulator, 0: as many as there is time for
};

struct CrossResult {
    bool proved = false;
    std::string failure;      // the emulator's, empty when none was found
    std::string open;         // the first assertion that was not proved, with the reason
    double milliseconds = 0;  // of the check

    bool unsound() const { return proved && !failure.empty(); }
};

CrossResult cross_check(const RandomKernel& random, const CrossOptions& options);

}  // namespace tw::diagnose
