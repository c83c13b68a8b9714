// What steers the order of events: the expressions that decide trip counts, conditions, slots, parities and shared addresses.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

struct Steering {
    std::vector<ir::Expr> expressions;        // they and, through assignments, all that they depend on
    std::size_t direct = 0;                   // so many of them steer themselves
    std::int64_t period = 2;                  // iterations after which slots, parities and periodic conditions repeat
    bool by_block = false;                    // block indices steer: blocks differ
    std::vector<int> tensors;                 // index tensors that steer
    // Each once: conditions over sizes and block indices alone around something that steers, and all around mere register work.
    std::vector<ir::Expr> fixed_conditions, calm_conditions;
    std::set<const ir::Stmt*> statements;     // loops and branches around something that synchronises or touches shared memory
    std::set<const ir::Stmt*> by_data;        // those branches that promised contents of index tensors decide: the runs must see both ways
    std::string obstacle;                     // the first expression that the cut-off lemma cannot handle

    bool steers(const ir::Stmt& s) const { return statements.count(&s) != 0; }
};
Steering steering_of(const ir::Kernel& kernel);

// A constant that the expression never exceeds, where its form shows one.
std::optional<std::int64_t> upper_bound(const ir::Expr& e);

}  // namespace tw::verify
