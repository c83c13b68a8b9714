// How the threads of a group share the lines of a scan. A function of the form, with one answer or none.
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "ir/ir.h"

namespace tw::device {

struct ScanPlan {
    using Run = std::vector<int>;  // slots of neighbours, in the order of the scan
    // Of each line that a thread has elements of, its runs in the order of the scan. Between two of them lie those of the other lanes.
    std::vector<std::vector<Run>> lines;
    int lanes = 1, apart = 1;  // that hold neighbouring runs: number / apart % lanes
};
Expected<ScanPlan, std::string> scan_plan(const ir::Kernel& kernel, const ir::Scan& op);

}  // namespace tw::device
