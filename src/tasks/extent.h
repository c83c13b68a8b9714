// How large the tensors of a task are.
#pragma once

#include <cstdint>
#include <string>

#include "tasks/task.h"

namespace tw::tasks {

// Of a tensor's dimension as it is written: a size, a number, or a size plus a number ("E + 1"); 0 when it means nothing.
std::int64_t extent_of(const Task& task, const std::string& dim);

}  // namespace tw::tasks
