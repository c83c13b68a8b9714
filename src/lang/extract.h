// Kernels beside other Python: a file that imports more than tilewright is a user's program, and what is in the language of it is its
// imports of tilewright, the functions with its decorators, and the module's assignments that these use.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tw::lang {

// Names of modules, as an import says them.
using ModuleNames = std::set<std::string, std::less<>>;

// The part of such a file that is in the language, with empty lines in place of everything else, so that places stay what they are. Nothing
// for a file that imports nothing but tilewright and `kernel_files`, or not even that: it is a kernel file as a whole. Linear in the text.
// `foreign`: gets the names that other imports bind, and their modules.
std::optional<std::string> kernels_beside_python(std::string_view text, const ModuleNames& kernel_files = {},
                                                 std::map<std::string, std::string>* foreign = nullptr);

// The modules that a text imports, as names without dots, in order, each once; tilewright among them.
std::vector<std::string> imported_modules(std::string_view text);

}  // namespace tw::lang
