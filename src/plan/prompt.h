// Prompts are files (prompts/*.md), versioned in their first line, with {{name}} where a value goes and {{#name}} ... {{/name}} around what
// is left out when that value is empty.
#pragma once

#include <map>
#include <string>

#include "plan/proposer.h"
#include "runtime/failure.h"

namespace tw::plan {

using PromptValues = std::map<std::string, std::string>;

// Values are put in as they are and are not looked at again, so a kernel source that holds {{...}} is harmless.
// An unknown name is left empty. The version line is removed.
std::string fill_prompt(const std::string& text, const PromptValues& values);

// "optimise-1" of a text's first line; empty when it has none.
std::string prompt_version(const std::string& text);

struct Prompt {
    std::string system, user;
    std::string version;  // "system-1 optimise-1"
};

// The prompt for a request: first, optimise or repair, with the reference trimmed to what the task, the technique and the sources speak of.
runtime::Result<Prompt> prompt_for(const Request& request, int tool_rounds);

}  // namespace tw::plan
