// The lowering steps after `resolve` (lower.h lists them in order). Each takes the draft one step nearer to the last form and
// reports what the user must change; a step runs only when the ones before it reported no error.
#pragma once

#include "lower/draft.h"

namespace tw::lower {

void lower_pipelines(Draft& draft, const Context& context);
void infer_layouts(Draft& draft, const Context& context);
void lower_exchange(Draft& draft, const Context& context);
void choose_vectors(Draft& draft, const Context& context);
void lower_tma(Draft& draft, const Context& context);
void lower_wgmma(Draft& draft, const Context& context);
void elect_threads(Draft& draft, const Context& context);
void place_arena(Draft& draft, const Context& context);
void add_prologue(Draft& draft, const Context& context);
void count_slots(Draft& draft, const Context& context);
void choose_scopes(Draft& draft, const Context& context);
void fence_refills(Draft& draft, const Context& context);

// Instruction legality and resources on the kernel's target: what only the user can put right (TW04xx).
void check_target(Draft& draft, const Context& context);

}  // namespace tw::lower
