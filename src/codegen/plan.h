// The launch plan: everything a launcher needs to know of an emitted kernel, as JSON.
//
// Integer expressions are text over the sizes in Python's spelling (`//` is floor division), so that any host language can
// evaluate them without knowing the IR.
#pragma once

#include <nlohmann/json.hpp>

#include "codegen/emit.h"

namespace tw::codegen {

nlohmann::json plan(const ir::Kernel& kernel, const EmittedKernel& emitted);

}  // namespace tw::codegen
