// Proposers by name: builtin, openai[:MODEL], anthropic[:MODEL], command:PROGRAM [ARGUMENT...].
#pragma once

#include <memory>
#include <string>

#include "plan/model.h"
#include "plan/proposer.h"
#include "runtime/failure.h"

namespace tw::plan {

// Keys come from the environment only (plan/model.h). `invariants`: the built-in proposer writes tw.expect assertions into its kernels.
runtime::Result<std::unique_ptr<Proposer>> make_proposer(const std::string& name, bool invariants = true);

struct ModelProposerOptions {
    int tool_rounds = 6;  // questions of the model that are answered before it must give its kernel
    int calls_per_round = 4;
    std::string program;  // that tools run; empty: this one
};
std::unique_ptr<Proposer> make_model_proposer(ModelOptions model, ModelProposerOptions options = {});

// Any program: the request as JSON on standard input; on standard output {"source": ..., "note": ...} or a kernel file.
std::unique_ptr<Proposer> make_command_proposer(std::vector<std::string> words, double seconds = 600);
// What the program reads (docs/proposers.md).
nlohmann::json request_json(const Request& request);

}  // namespace tw::plan
