// Answers that fit a model's window: what a check found, without what only a person who looks for a bug of ours needs.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>

namespace tw::mcp {

inline constexpr std::size_t most_of_a_proof = 2000, most_of_a_violation = 4000;  // characters, as JSON

// `check --json` in short: verdict, kernels by name with their counts, what is not proved, a counterexample without its longest parts.
// Never longer than most_of_a_proof where everything is proved, most_of_a_violation otherwise.
nlohmann::json compact_check(const nlohmann::json& full);

}  // namespace tw::mcp
