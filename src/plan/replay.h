// Replays: candidates judged by what was measured before instead of by the gates.
//
// A table (scripts/learning_table.py makes it from journals) holds, per task, the sketch of every candidate that ever went through the
// gates on a GPU, with its time or the class of its failure. A loop that is given one walks inside the table: kernels that were never
// measured are not candidates. It shows what another order of choices would have found among the kernels that are known, and nothing about
// the others.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/expected.h"
#include "plan/gates.h"

namespace tw::plan {

// What is known about a source; nothing when it is not in the table.
using Recorded = std::function<std::optional<Judgement>(const std::string& source)>;

// The table's part about a task; a failure when the file is none or has nothing about it.
Expected<Recorded, std::string> load_recorded(const std::filesystem::path& path, const std::string& task);

}  // namespace tw::plan
