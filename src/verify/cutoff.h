// From instances to all sizes: which instances decide the order of events, and whether they do.
//
// Sizes, block indices and the contents of index tensors enter the order of events through trip counts, conditions, slots,
// parities and places in shared memory only (`steering` expressions). The *periodic cut-off theorem* (docs/verifier.md) says that instances
// with trip counts up to a cap speak for all, provided that
//   1. every slot, parity, byte count, barrier number and place in shared memory is periodic in each loop variable, counter, size and
//      block index that it is made of (verify/shapes.h); in a loop that strides over the blocks of a launch it follows no variable of that
//      loop;
//   2. every condition that changes along a loop does so periodically, or near the loop's start or end;
//   3. a condition that is fixed for a block (sizes, block indices) goes both ways in instances of its own: it is *forced*;
//   4. a trip count is fixed for a block, or changes periodically or linearly along one loop around it, or is taken to be anything;
//      it depends on data only where the launcher promises the data's range: then contents are sampled from it;
//   5. the instances that ran did reach every loop with its cap of iterations, and every condition both ways.
// 1 to 4 are read off the text, 5 is seen in the runs; where one fails the answer is "not proved".
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emulate/contents.h"
#include "emulate/emulator.h"

namespace tw::verify {

struct Instance {
    std::vector<std::int64_t> sizes;
    int resident_blocks = 1;
    std::string text;                                        // "M=128 N=256 K=640"
    std::optional<emulate::Spread> contents = std::nullopt;  // of its index tensors; otherwise some of every kind
};

struct Cutoff {
    std::string obstacle;     // why the lemma does not apply; empty when it does
    std::int64_t period = 2;  // in iterations
    std::vector<Instance> instances;
    // Outermost loops with one trip count for all warps and nothing of weight after them: a run of many iterations in step speaks for all
    // shorter ones.
    std::set<const ir::For*> in_step;
    // Loops inside those whose trip count is taken to be anything, and the counts of one run, iteration by iteration: all pairs in all
    // states of the rings.
    std::set<const ir::For*> irregular;
    std::vector<std::int64_t> any_trips;
    std::optional<Instance> any_trips_in;  // with as many iterations around
    std::vector<ir::Expr> forced;          // conditions that are fixed for a block
    std::vector<ir::Expr> unlike;          // of those: where the blocks of a cluster may go different ways
    bool one_block = false;                // all blocks (clusters) do the same: one is enough
    std::vector<int> steering_tensors;     // index tensors on whose contents the order of events depends
};
// `in_step`: long runs may speak for short ones; otherwise every trip count has instances of its own.
Cutoff cutoff(const ir::Kernel& kernel, bool in_step = true);

// For loops that the first instances did not run long enough, since contents of tensors bound them: one size after the other with so many
// tiles and all rows in one group, the others with one tile and with as many as their own loops need.
std::vector<Instance> grown_instances(const ir::Kernel& kernel, std::int64_t tiles);
// The same with all sizes grown, where that was not enough; `round` counts from 1.
std::vector<Instance> longer_instances(const ir::Kernel& kernel, int round);

// Adds to `cutoff.forced` the conditions around mere register work that the runs did not see both ways.
void force_untried(const ir::Kernel& kernel, const emulate::CoverageMap& coverage, Cutoff& cutoff);

// What the runs did not reach. `coverage` is the union over the runs.
struct CoverageGap {
    enum class Kind : std::uint8_t { none, loop, condition } kind = Kind::none;
    std::string text;
    std::int64_t trips = 0;  // that the loop needs
};
CoverageGap coverage_gap(const ir::Kernel& kernel, const Cutoff& cutoff, const emulate::CoverageMap& coverage);

// Sizes near the edges of tiles and rings, all of them varied in turn, that the assumptions admit. Deterministic.
std::vector<Instance> edge_instances(const ir::Kernel& kernel);

}  // namespace tw::verify
