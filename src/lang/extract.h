// Kernels beside other Python: a file that imports more than tilewright is a user's program, and what is in the language of it is its
// imports of tilewright, the functions with its decorators, and the module's assignments that these use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tw::lang {

// The part of such a file that is in the language, with empty lines in place of everything else, so that places stay what they are. Nothing
// for a file that imports nothing but tilewright, or not even that: it is a kernel file as a whole. Linear in the text.
std::optional<std::string> kernels_beside_python(std::string_view text);

}  // namespace tw::lang
