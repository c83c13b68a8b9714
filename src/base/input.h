// Reading what comes from outside: JSON and TOML of a bounded depth, counts that cannot overflow, fields that may have any type.
//
// Files are read by read_file (base/text.h), which takes plain files of a bounded size only. Both libraries that parse for us work
// recursively somewhere (to copy, to print, to destroy), so text that is nested deeper than any honest one must not reach them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace tw {

constexpr int kInputDepth = 100;  // levels of {} and [] in JSON and TOML, parts of a dotted key

bool json_is_deeper(std::string_view text, int levels = kInputDepth);
bool toml_is_deeper(std::string_view text, int levels = kInputDepth);

// The first byte beyond ASCII that stands in no string and no comment: TOML has none there, and its library takes that for granted.
std::optional<std::size_t> toml_stray_byte(std::string_view text);

// The value, or a discarded one when the text is not JSON or is nested deeper than `levels`.
nlohmann::json parse_json(std::string_view text, int levels = kInputDepth);

// A count that somebody else reports: 0 for what is missing, negative or no number; what 64 bits cannot hold is the largest number.
std::int64_t count_in(const nlohmann::json& object, const char* key);
// The sum, or the largest or smallest number where it does not fit.
std::int64_t saturating_sum(std::int64_t a, std::int64_t b);

// A member, or `otherwise` when the value is no object, has no such member, or that has another type.
std::string text_in(const nlohmann::json& object, const char* key, std::string otherwise = {});
double number_in(const nlohmann::json& object, const char* key, double otherwise = 0);
// Numbers are rounded towards zero and brought into [low, high].
std::int64_t integer_in(const nlohmann::json& object, const char* key, std::int64_t otherwise, std::int64_t low, std::int64_t high);
bool flag_in(const nlohmann::json& object, const char* key, bool otherwise = false);
// `otherwise` says the type: an object, an array.
nlohmann::json part_in(const nlohmann::json& object, const char* key, nlohmann::json otherwise);

}  // namespace tw
