// Device functions that emitted CuTe text brings along, each only where it is used. Internal to codegen/cute.
#pragma once

#include <set>
#include <string>

namespace tw::codegen::cute {

// A name among the helpers that stands for no function: the text takes matrix products whose widths CuTe declares only when asked.
inline constexpr const char* all_wgmma_widths = "all_wgmma_widths";

// The headers that text with these helpers includes.
std::string include_text(const std::string& arch, const std::set<std::string>& names);

// The text of the named helpers and of those they use, in an order that compiles; empty for none. Pre: the names exist.
std::string helper_text(const std::set<std::string>& names);

}  // namespace tw::codegen::cute
