// Device functions that emitted CuTe text brings along, each only where it is used. Internal to codegen/cute.
#pragma once

#include <set>
#include <string>

namespace tw::codegen::cute {

// The text of the named helpers and of those they use, in an order that compiles; empty for none. Pre: the names exist.
std::string helper_text(const std::set<std::string>& names);

}  // namespace tw::codegen::cute
