// The vocabulary of the language: which functions `tw.` has and which methods values have.
#pragma once

#include <string>
#include <vector>

#include "base/identifier.h"
#include "lower/value.h"

namespace tw::lower {

bool is_builtin(const std::string& name);
std::vector<std::string> builtin_names();
// What stands for a borrowed name, or "did you mean tw.wgmma_wait?", or where all names are listed.
std::string nearest_builtin_hint(const std::string& name);
bool has_method(const Value& v, const std::string& name);
std::string method_hint(const Value& v, const std::string& name);

// Names that people bring along from Triton, PyTorch, NumPy and CUDA: what the language has in their place, or nothing.
std::string borrowed_function(const std::string& name);  // tw.NAME
std::string borrowed_name(const std::string& name);      // NAME
std::string borrowed_method(const Value& receiver, const std::string& name);
std::string keyword_hint(const std::string& name, const std::string& otherwise);  // of an argument NAME=

// Names that a file gives in strings (kernels, programs, roles, sizes) are identifiers (base/identifier.h).
std::string not_a_name(const std::string& text);
inline constexpr const char* name_hint = "a name has letters, digits and underscores, at most 64, and no digit first";

}  // namespace tw::lower
