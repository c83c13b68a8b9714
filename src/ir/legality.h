// What "the last form" means, as data: for each kind of statement, where it may stand and which of its parts must be decided.
//
// The verifier, the emulator and the code generator may rely on all of it without checking again. A violation is a bug of the
// lowering steps, never the user's: what a user can get wrong is reported earlier, in words about the source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

struct LegalityViolation {
    std::string what;
    Loc loc;
};

// Who may execute a statement.
enum class Executor : std::uint8_t { anyone, group, one_thread, block_only };

struct LegalityRule {
    std::string_view kind;  // as kind_name()
    Executor executor;
    std::string_view meaning;  // one line, for docs/ir.md
};
// One row per alternative of Operation, in its order.
const std::vector<LegalityRule>& legality_table();

std::vector<LegalityViolation> legal_last_form(const Kernel& kernel);

// What may not stand in a branch that warps take for themselves (If::vote): the first such statement, or null.
const Stmt* unfit_for_vote(const Kernel& kernel, const If& branch);

// Does the statement itself (not what is nested in it) touch a tensor that a grid launched before may still write?
bool touches_unstable_tensor(const Kernel& kernel, const Stmt& stmt);

}  // namespace tw::ir
