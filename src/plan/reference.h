// The language reference (docs/language.md), whole or trimmed to what a text speaks of.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"
#include "tasks/task.h"

namespace tw::plan {

struct ReferenceSection {
    std::string title;            // "Shared memory"
    int level = 2;                // 2 for ##, 3 for ###
    std::string text;             // with its heading, ends with a newline
    std::set<std::string> names;  // what it documents: every X of `tw.X` and every word in code quotes that is an identifier
    bool core = false;            // needed for any kernel
};

// By heading; the text before the first one is a section without a title.
std::vector<ReferenceSection> split_reference(std::string_view markdown);

runtime::Result<std::vector<ReferenceSection>> load_reference();

// The sections that any kernel needs, and those that document a name that occurs as a word in one of `texts`, in their order.
// A section of level 3 brings the head of its section of level 2.
std::string trimmed_reference(const std::vector<ReferenceSection>& sections, const std::vector<std::string>& texts);

// The notes of knowledge/cute that are for this class of work, in the order of their names. Empty: there are none here.
std::string cute_notes(tasks::WorkloadClass workload);

}  // namespace tw::plan
