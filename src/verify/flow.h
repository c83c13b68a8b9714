// Data flow, for all sizes: every output element is made from exactly the input elements that `computes` names.
// (The ideas are told in flow_engine.h and in docs/verifier.md.)
#pragma once

#include "verify/obligation.h"

namespace tw::verify {

struct FlowInputs {
    std::vector<Dependence> dependences;  // who wrote what a shared read finds (verify/order)
    bool follow_swizzles = true;          // false, in negative controls only: where TMA puts its box is compared without the swizzles
    bool track_covers = true;             // false, in negative controls only: which indices a fold has taken in is not compared
};

struct FlowResult {
    std::vector<Obligation> obligations;
    std::map<std::string, int>
        questions;  // integer conditions that came up, each once under the same facts: how many each prover settled; "none": nobody did
};

// Only ever answers proved, not_proved or vacuous: violations are shown concretely by diagnose/.
FlowResult check_flow(const ir::Kernel& kernel, const FlowInputs& inputs);

}  // namespace tw::verify
