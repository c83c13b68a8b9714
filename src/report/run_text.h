// A run in words: one line a step while it happens, a table afterwards.
#pragma once

#include <string>
#include <vector>

#include "plan/journal.h"

namespace tw::report {

// "  3 memory     vectorise-loads      accepted   proved      412.3 us   1.84x   61% of roofline": one line, no newline, safe to print.
std::string step_line(const plan::Step& step);

// Title, state, peer and roofline, one line per step, the best kernel. Ends with a newline.
std::string run_text(const plan::RunDocument& document);

// Everything about one step: gates, message, diff, exchanges in short. Ends with a newline.
std::string step_text(const plan::Step& step);

// The table of `tilewright runs`. Ends with a newline.
std::string runs_text(const std::vector<plan::RunSummary>& runs);

// "2026-11-15 07:03:16" in UTC; empty for 0.
std::string time_text(std::int64_t unix_ms);

// The last accepted step: the kernel a run stands for. Null when no step was accepted.
const plan::Step* best_step(const plan::RunDocument& document);

// The peer's time beside the times of the steps; 0 where it was not measured. Both were timed in turn at the end, when the GPU's clock may
// have been another than during the steps: so it is the best step's time multiplied by the ratio of that run.
double peer_microseconds(const plan::RunDocument& document);

}  // namespace tw::report
