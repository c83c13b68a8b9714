// The difference of two texts by lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw::plan {

struct DiffLine {
    char mark = ' ';                 // ' ' in both, '-' only in the old text, '+' only in the new one
    int old_line = 0, new_line = 0;  // from 1; 0 where the line is not in that text
    std::string_view text;           // into the texts given
};

// A shortest edit script (exact while the texts differ in at most a few thousand lines; beyond that the differing middle is
// given as removed and added whole). Applying it to `before` gives `after`.
std::vector<DiffLine> line_diff(std::string_view before, std::string_view after);

// `@@ -a,b +c,d @@` hunks with `context` lines around each change; empty when the texts are equal.
std::string unified_diff(std::string_view before, std::string_view after, int context = 3);

// `before` changed by a unified diff that `unified_diff` made; nothing when it does not fit.
bool apply_unified_diff(std::string_view before, std::string_view diff, std::string& after);

}  // namespace tw::plan
