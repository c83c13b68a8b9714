// Step `refills` for a kernel that has been lowered before and was changed since.
#pragma once

#include "ir/ir.h"

namespace tw::lower {

void fence_refills(ir::Kernel& kernel);

}  // namespace tw::lower
