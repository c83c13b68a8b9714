// Names that come from outside: of kernels, roles, sizes, files, tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tw {

// ASCII letters, digits and underscores, no digit first; so long at most that one fits a line.
inline bool is_identifier(std::string_view text, std::size_t most = 64) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !text.empty() && text.size() <= most && letter(text[0]) &&
           std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace tw
