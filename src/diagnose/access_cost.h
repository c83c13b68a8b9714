// What a kernel's memory accesses cost, from its exact layouts: bank conflicts, sectors per request, and a guess at registers.
//
// These are remarks on speed, never on correctness: no verdict and no exit code depends on them. Indices that move (ring slots,
// tiles, blocks) are taken at their first place; sizes at a large multiple of 128, so that rows start aligned and nothing is masked.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

struct AccessRemark {
    std::string code;  // TW3001 bank conflict, TW3002 scattered sectors
    std::string message;
    std::string hint;
    std::string statement;  // printed IR
    ir::Loc loc;
    int cost = 0, ideal = 0;  // passes through the banks, or 32-byte sectors, of all of a group's warps together; the fewest possible
    std::string unit;         // "passes" or "sectors"
};

struct AccessReport {
    std::vector<AccessRemark> remarks;             // in program order
    int shared_accesses = 0, global_accesses = 0;  // statements that were looked at
    int registers = 0;                             // per thread, estimated: live fragments of the fullest place and what is always there
};

AccessReport access_report(const ir::Kernel& kernel);

}  // namespace tw::diagnose
