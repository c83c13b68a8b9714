// The skeleton of a kernel's synchronisation, read from its text: who writes and reads which shared tensor, and the barriers, commit
// groups, phases and fences between.
#pragma once

#include "cute/evaluate.h"

namespace tw::cute {

// Looks at every __global__ function, and at __device__ functions that synchronise.
void check_order(Evaluator& evaluator, DiagnosticSink& sink, Report& report);

}  // namespace tw::cute
