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
};

}  // namespace tw::codegen
