// What everything of a kernel in its device form is called in the text: the user's names where they can stand, each once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/device.h"

namespace tw::codegen {

struct Names {
    explicit Names(const ir::Kernel& kernel);

    std::vector<std::string> sizes, tensors, maps, scalars, vars, fragments, buffers, barriers, teams;
    std::map<int, ir::RingCounter> rings;  // by the counter
    std::map<int, int> counter_of;         // of slots and phases

    // A counter of a ring starts at 0, or goes up by 1: the statements, slot and phase included. `declare`: here they are declared.
    std::string ring_start(int counter, bool declare) const;
    std::vector<std::string> ring_step(int counter) const;
};

}  // namespace tw::codegen
