// Is the kernel wrong? Asked of the emulator alone, with other data and other schedules than the check's own search.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

struct TrialSearch {
    double seconds = 1.0;  // of processor time: a busy machine must not change the answer
    int trials =
        0;  // at most so many, 0: as many as there is time for. With a number, and time enough, the answer is the same on every machine
    std::uint64_t seed = 1;
    std::vector<std::vector<std::int64_t>> first;  // sizes to try before those near the edges of tiles and rings
};

// The first failing trial in one line (sizes, schedule, what went wrong); empty when none was found.
std::string failing_trial(const ir::Kernel& kernel, const TrialSearch& search);
// The same of a program: the sizes of `search.first` and random ones.
std::string failing_program_trial(const ir::Module& module, const ir::Program& program, const TrialSearch& search);

}  // namespace tw::diagnose
