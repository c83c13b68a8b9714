// The vocabulary of the language: which functions `tw.` has and which methods values have.
#pragma once

#include <string>
#include <vector>

#include "lower/value.h"

namespace tw::lower {

bool is_builtin(const std::string& name);
std::vector<std::string> builtin_names();
// "did you mean 'wgmma_wait'?", or nothing when no name is near.
std::string nearest_builtin_hint(const std::string& name);
bool has_method(const Value& v, const std::string& name);
std::string method_hint(const Value& v);

}  // namespace tw::lower
