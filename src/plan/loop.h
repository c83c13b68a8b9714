// The optimisation loop: one kernel evolves, one technique a step, every candidate through the gates, the best never lost.
#pragma once

#include <functional>
#include <string>

#include "plan/gates.h"
#include "plan/journal.h"
#include "plan/knowledge.h"
#include "plan/memory.h"
#include "plan/proposer.h"
#include "plan/replay.h"

namespace tw::plan {

struct Budget {
    int candidates = 40;
    double seconds = 0;  // 0: none, here and below
    std::int64_t tokens = 0;
    double dollars = 0;
};

// What makes no sense as a budget (not a number, infinite, negative, no candidates); nothing when it does.
std::optional<std::string> budget_problem(const Budget& budget);

struct LoopOptions {
    Budget budget;
    double stop_share = 0.94;  // of the roofline
    int plateau = 14;          // candidates without a gain
    int repairs = 2;           // of one failing candidate, by proposers that can repair
    std::uint64_t seed = 1;
    // Ablations.
    bool use_knowledge = true;    // false: no priors, no text, no order of stages
    bool use_memory = true;       // false: beliefs of earlier runs are not asked
    bool delay_profiling = true;  // false: bottleneck and metrics from the first candidate on
    std::string profile_after;    // overrides the table: a stage
    std::string memory_path;      // where `memory` lies; recorded, so that a resumed run asks the same one
    GateOptions gates;
    Recorded recorded;                               // instead of the gates, when it is set: a replay
    std::function<void(const Step&)> on_step;        // as it happens
    std::function<void(const std::string&)> on_run;  // the run's id
};

struct LoopOutcome {
    std::string run, reason;
    int candidates = 0, accepted = 0;
    int best_step = -1;
    std::string best_source;
    std::optional<double> microseconds, first_microseconds, roofline_share;
    std::string statement;  // what was proved, what was measured, what was not
};

// The stage after which profiling is shown, by workload class.
Stage profiling_stage(tasks::WorkloadClass workload);

// Runs the task, or goes on with `resume` (a run's id in the journal).
Result<LoopOutcome> optimize(const tasks::Task& task, Proposer& proposer, Journal& journal, Memory& memory, const Knowledge& knowledge,
                             const LoopOptions& options, const std::string& resume = {});

}  // namespace tw::plan
