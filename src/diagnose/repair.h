// Hints that were tried: small changes to a failing kernel, each run on the instance that fails.
//
// A hint is worth something when it is right. So what could be meant is not guessed from the kind of failure alone: changes of the kind
// that people forget (a barrier, a wait, `<` for `<=`, a start value, a divisor) are applied to the last form, nearest to the failure
// first, and the failing instance runs again, then others. A change after which all of them pass is told, with what was tried; where
// none is found, nothing is said.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulate/trial.h"
#include "ir/ir.h"

namespace tw::diagnose {

// What the failing run points at; from explain_value and explain_fault.
struct Suspects {
    bool order = false;               // a fault of synchronisation, not of values
    bool proxy = false;               // ... that a fence is for
    const ir::Stmt* first = nullptr;  // the two accesses, in the order of their issue; a deadlock: the wait
    const ir::Stmt* second = nullptr;
    std::set<const ir::Stmt*> slice;        // values: the statements that had a part in the wrong element
    bool fill = false;                      // a constant takes part
    bool scaled = false, relative = false;  // as TagDifference::Kind
};

struct Repair {
    ir::Loc loc;
    std::string text;     // what to change, with the line
    int passed = 0;       // trials that pass with it, the failing one among them
    bool proved = false;  // with it the whole kernel is proved
};

// A change that could be meant. Lower ranks are tried first.
struct Candidate {
    int rank = 0;
    ir::Loc loc;
    std::string text;
    std::function<void(ir::Kernel&)> apply;
};
std::vector<Candidate> repair_candidates(const ir::Kernel& kernel, const Suspects& suspects);

struct RepairTrial {
    std::vector<std::int64_t> sizes;
    emulate::TrialOptions options;
};
// `trials`: what fails first, then what must pass too. `prove`: whether a kernel is proved, asked of few; nothing: it takes too long.
std::optional<Repair> find_repair(const ir::Kernel& kernel, const Suspects& suspects, std::vector<RepairTrial> trials, double seconds,
                                  const std::function<std::optional<bool>(const ir::Kernel&)>& prove);

}  // namespace tw::diagnose
