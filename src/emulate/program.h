// A program on the emulator: its launches in order, buffers between them, the outputs compared with the program's `computes`.
#pragma once

#include "emulate/trial.h"

namespace tw::emulate {

// `sizes`: per size of the program. Buffers start poisoned, as on a GPU nobody clears them. A launch takes the first variant of
// its kernel whose assumptions hold; none: refused. `outcome` holds the faults of the launch that stopped it.
Trial run_program(const ir::Module& module, const ir::Program& program, const std::vector<std::int64_t>& sizes,
                  const TrialOptions& options);

// The program's parameters and computes in the form of a kernel without a body: for random inputs, references and tolerances.
ir::Kernel signature_of(const ir::Program& program);

}  // namespace tw::emulate
