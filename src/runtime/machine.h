// What this machine has, what is missing, and how to get it.
#pragma once

#include <string>
#include <vector>

#include "runtime/driver.h"

namespace tw::runtime {

struct Finding {
    std::string part;  // "CUDA driver", "NVRTC", ...
    bool present = false;
    std::string detail;  // version and file, or why it is missing
    std::string needed_for;
    std::string fix;  // when missing
};

struct MachineReport {
    std::vector<Finding> findings;
    std::vector<DeviceFacts> gpus;
};

MachineReport examine_machine();

}  // namespace tw::runtime
