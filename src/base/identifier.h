// Names that come from outside: of kernels, roles, sizes, files, tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tw {

inline bool is_identifier_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// ASCII letters, digits and underscores, no digit first; so long at most that one fits a line.
inline bool is_identifier(std::string_view text, std::size_t most = 64) {
    return !text.empty() && text.size() <= most && !(text[0] >= '0' && text[0] <= '9') &&
           std::all_of(text.begin(), text.end(), is_identifier_character);
}

}  // namespace tw
