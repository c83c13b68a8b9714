// The result of a check as a page: verdicts, and for a counterexample its run as a timeline of the roles, the two accesses, and the element
// in its picture.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tw::report {

// `result` is what `check --json` prints (docs/verifier.md). The page needs nothing else: no script, no network.
std::string check_page(const nlohmann::json& result);

}  // namespace tw::report
