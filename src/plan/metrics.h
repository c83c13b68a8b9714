// Counters of a kernel that bear on the choice at hand.
//
// A profile has hundreds of figures; one decision needs a handful. Which ones depends on what the workload class is bound by and on the
// stage whose techniques are being chosen: traffic while copies are decided, stalls while the pipeline is, pipes and registers while
// instructions are, occupancy while constants are.
#pragma once

#include <vector>

#include "plan/proposer.h"
#include "plan/stage.h"
#include "runtime/profile.h"
#include "tasks/task.h"

namespace tw::plan {

// What to ask ncu for: all that any stage of the class may show.
std::vector<runtime::MetricMeaning> metrics_of(tasks::WorkloadClass workload);

// The figures of a profile (runtime::profile) that the stage's choice needs, in units a person reads (us, MB, GB/s, %). Empty when the
// profile has no counters.
std::vector<Metric> shown_metrics(const nlohmann::json& profile, tasks::WorkloadClass workload, Stage stage);

}  // namespace tw::plan
