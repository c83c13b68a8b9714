#include "plan/proposers.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/diagnostic.h"
#include "base/text.h"

namespace tw::plan {

runtime::Result<std::unique_ptr<Proposer>> make_proposer(const std::string& name, bool invariants) {
    using runtime::FailureKind;
    const auto colon = name.find(':');
    const std::string kind = name.substr(0, colon), rest = colon == std::string::npos ? std::string() : name.substr(colon + 1);
    if (kind == "builtin") return make_builtin_proposer(invariants);
    if (kind == "openai" || kind == "anthropic") {
        auto model = model_from_environment(kind == "openai" ? Wire::openai : Wire::anthropic, rest);
        if (!model)
            return runtime::fail(FailureKind::bad_input, model.error(),
                                 "keys are read from the environment only; docs/proposers.md lists the variables");
        return make_model_proposer(std::move(*model));
    }
    if (kind == "command") {
        auto words = split_words(rest);
        if (words.empty())
            return runtime::fail(FailureKind::bad_input, "no program is named", "write --proposer \"command:PROGRAM ARGUMENT...\"");
        double seconds = 600;
        if (const std::string stated = environment("TILEWRIGHT_COMMAND_SECONDS"); !stated.empty()) {
            char* end = nullptr;
            seconds = std::strtod(stated.c_str(), &end);
            if (*end != 0 || !(seconds >= 1 && seconds <= 600))
                return runtime::fail(FailureKind::bad_input,
                                     fmt::format("TILEWRIGHT_COMMAND_SECONDS is '{}', not a number from 1 to 600", printable(stated)),
                                     "unset it: a program then has ten minutes for an answer");
        }
        return make_command_proposer(std::move(words), seconds);
    }
    return runtime::fail(FailureKind::bad_input, fmt::format("there is no proposer '{}'", printable(name)),
                         "the proposers are builtin, openai[:MODEL], anthropic[:MODEL], command:PROGRAM");
}

}  // namespace tw::plan
