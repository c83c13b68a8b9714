// What to make of "not proved": for each reason that a prover gives, which form of the kernel passes.
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::diagnose {

struct UnprovedReason {
    std::string phrase;   // as it stands in the reason of an obligation
    std::string meaning;  // what could not be followed, and why; {} is the name that follows the phrase
    std::string passes;   // the form that is proved
};
const std::vector<UnprovedReason>& unproved_reasons();

// The reason, followed by a line for each step in it that failed: where, what, why, and the form that passes.
std::string with_forms(const ir::Kernel& kernel, const std::string& reason);

}  // namespace tw::diagnose
