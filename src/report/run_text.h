// A run in words: one line a step while it happens, a table afterwards.
#pragma once

#include <string>
#include <vector>

#include "plan/journal.h"

namespace tw::report {

// "  3 memory      vector-width       accepted  proved      412.3 us   1.84x  61% of roofline": one line, no newline, safe to print.
std::string step_line(const plan::Step& step);

// Title, state, one line per step, the best kernel, what it cost. Ends with a newline.
std::string run_text(const plan::RunDocument& document);

// Everything about steps[i]: gates, feedback, proof, resources, diff. Ends with a newline.
std::string step_text(const plan::RunDocument& document, int i);

// The table of `tilewright runs`. Ends with a newline.
std::string runs_text(const std::vector<plan::RunEntry>& runs);

// "accepted", "rejected" (right, but not faster) or "failed".
std::string_view outcome_of(const plan::Step& step);

// Time of the first accepted, measured kernel over that of step i: medians of different runs of the clock, so a figure for orientation.
// The paired ratio against the best at that time is Step::timing.speedup. 0 when one was not measured.
double speedup_over_first(const std::vector<plan::Step>& steps, int i);

}  // namespace tw::report
