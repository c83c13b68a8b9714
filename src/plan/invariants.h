// Invariant synthesis: tw.expect lines that say, close to each data movement, what the data must be.
#pragma once

#include <string>

#include "tasks/task.h"

namespace tw::plan {

// The kernel with assertions added where the skeleton's data movement allows one to be stated. A kernel it does not know comes
// back unchanged.
std::string with_invariants(const tasks::Task& task, const std::string& source);

}  // namespace tw::plan
