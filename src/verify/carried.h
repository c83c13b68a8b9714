// What a loop hands on: scalars and fragments that an iteration may read before it has written them, or that are read outside the loop.
// The others are an iteration's own, and nothing has to be guessed of them.
#pragma once

#include <set>

#include "ir/ir.h"

namespace tw::verify {

struct Carried {
    std::set<int> fragments, scalars;  // numbers; may be more than there are, never fewer
};

Carried carried_by(const ir::Kernel& kernel, const ir::For& loop);

}  // namespace tw::verify
