// From instances to all sizes: which instances decide the order of events, and whether they do.
//
// Sizes, block indices and the contents of index tensors enter the order of events through trip counts, conditions, slots,
// parities and places in shared memory only (`steering` expressions). The *periodic cut-off lemma* says that instances with
// trip counts from 0 past the period P speak for all, provided that
//   1. every slot, parity, byte count, barrier number and place in shared memory is bounded and periodic: loop variables and
//      counters whose range is not a constant stand under `% constant` there. P is the least common multiple of what they need;
//   2. every condition that changes along a loop does so periodically, or within P iterations of the loop's start or end;
//   3. a condition that is fixed for a block (sizes, block indices) goes both ways in instances of its own: it is *forced*;
//   4. trip counts do not depend on data, unless the launcher promises the data's range: then contents are sampled from it;
//   5. the instances that ran did reach every loop with more than P iterations, and every condition both ways.
// 1, 2 and 4 are read off the text, 5 is seen in the runs; where one fails the answer is "not proved".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulate/contents.h"
#include "emulate/emulator.h"

namespace tw::verify {

struct Instance {
    std::vector<std::int64_t> sizes;
    int resident_blocks = 1;
    std::string text;                  // "M=128 N=256 K=640"
    std::optional<emulate::Spread> contents = std::nullopt;   // of its index tensors; otherwise some of every kind
};

struct Cutoff {
    std::string obstacle;                         // why the lemma does not apply; empty when it does
    std::int64_t period = 2;                      // in iterations
    std::vector<Instance> instances;
    std::vector<ir::Expr> forced;                 // conditions that are fixed for a block
    bool one_block = false;                       // all blocks (clusters) do the same: one is enough
    std::vector<int> steering_tensors;            // index tensors on whose contents the order of events depends
};
Cutoff cutoff(const ir::Kernel& kernel);

// Larger instances of the same kind, for loops that the first ones did not run long enough; `round` counts from 1.
std::vector<Instance> longer_instances(const ir::Kernel& kernel, int round);

// Adds to `cutoff.forced` the conditions around mere register work that the runs did not see both ways.
void force_untried(const ir::Kernel& kernel, const emulate::CoverageMap& coverage, Cutoff& cutoff);

// What the runs did not reach; empty when they reached everything. `coverage` is the union over the runs.
std::string coverage_gap(const ir::Kernel& kernel, const Cutoff& cutoff, const emulate::CoverageMap& coverage);

// Sizes near the edges of tiles and rings, all of them varied in turn, that the assumptions admit. Deterministic.
std::vector<Instance> edge_instances(const ir::Kernel& kernel);

}  // namespace tw::verify
