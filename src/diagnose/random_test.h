// Plain random testing on the emulator, beside the check: what does one find who only runs the kernel?
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

// Sizes that the assumptions admit, small enough to be emulated in no time; empty when none were found.
std::vector<std::int64_t> random_sizes(const ir::Kernel& kernel, std::mt19937_64& random);

struct RandomTests {
    int trials = 5;        // each with its own shape and data
    bool hostile = false;  // false: one fair schedule, copies land at once, nobody looks at races or proxies.
                           // true: another hostile schedule in every trial, with the race detector
    std::uint64_t seed = 1;
};

// Does a trial fail? Everything that the emulator refuses counts, which is generous: a GPU does not report most of it.
bool random_tests_notice(const ir::Kernel& kernel, const RandomTests& tests);

}  // namespace tw::diagnose
