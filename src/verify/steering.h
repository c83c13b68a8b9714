// What steers the order of events: the expressions that decide trip counts, conditions, slots, parities and shared addresses.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::verify {

// A loop whose trip count is not a constant, around something that steers.
struct SteeringLoop {
    const ir::For* loop = nullptr;
    std::int64_t period = 1;     // iterations after which slots, phases and periodic conditions in it repeat
    std::int64_t reach = 0;      // iterations from its start or end at which a condition may change
    std::int64_t own_reach = 0;  // the same, of conditions on its own variable or trip count
    std::int64_t distance = 1;   // iterations between two that may use one place, and the reach
    std::int64_t own_part = 0;   // of the distance: what counts its own iterations
    bool by_own = false;         // its own variable decides something, or where its iterations end
    bool by_inner = true;        // it repeats only because loops inside it advance counters
    std::int64_t cap = 2;        // a longer run is like one that is shorter by a period: trip counts up to this one decide all
};

// A loop whose trip count changes with the iteration of the loop around it in no way that is followed: it is taken to be anything.
struct IrregularLoop {
    const ir::Stmt* stmt = nullptr;
    const ir::For* around = nullptr;
    ir::Expr trips;  // variables that have one definition written out
};

struct Steering {
    std::vector<ir::Expr> expressions;  // they and, through assignments, all that they depend on
    std::size_t direct = 0;             // so many of them steer themselves
    std::int64_t period = 2;            // iterations after which slots, parities and periodic conditions repeat: the longest of all loops
    std::map<const ir::Stmt*, SteeringLoop> loops;
    std::vector<IrregularLoop> irregular;
    std::vector<ir::Expr> counts;          // of sizes: what trip counts must agree with besides one another (the messages of a team)
    std::map<int, std::int64_t> residues;  // by size: places and conditions follow its remainder by this
    std::map<int, std::set<std::pair<std::int64_t, std::int64_t>>>
        remainders;                              // by size: (divisor, remainder) next to which a condition turns
    std::map<int, std::int64_t> block_residues;  // by axis: places and conditions follow the block's index modulo this
    std::set<int> falls;                         // sizes with which a trip count may get smaller
    bool by_block = false;                       // block indices steer: blocks differ
    bool tiles_decide_inside = false;            // a loop inside of one over tiles follows what the number of tiles follows
    std::vector<int> tensors;                    // index tensors that steer
    // Each once: conditions over sizes and block indices alone around something that steers, and all around mere register work.
    std::vector<ir::Expr> fixed_conditions, calm_conditions;
    std::vector<ir::Expr> unlike_conditions;  // of the fixed ones: those that may differ between the blocks of a cluster
    std::set<const ir::Stmt*> statements;     // loops and branches around something that synchronises or touches shared memory
    std::set<const ir::Stmt*> by_data;        // those branches that promised contents of index tensors decide: the runs must see both ways
    std::string obstacle;                     // the first expression that the cut-off lemma cannot handle

    bool steers(const ir::Stmt& s) const { return statements.count(&s) != 0; }
};
Steering steering_of(const ir::Kernel& kernel);

// A constant that the expression never exceeds, where its form shows one.
std::optional<std::int64_t> upper_bound(const ir::Expr& e);

}  // namespace tw::verify
