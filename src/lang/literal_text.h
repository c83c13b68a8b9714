// Literals as text that reads back to the same value, in Python and in `computes`.
#pragma once

#include <string>
#include <string_view>

namespace tw::lang {

// Shortest text that reads back to the same finite double, always with a point or an exponent.
std::string float_text(double value);
// In double quotes, with escapes; one line whatever the value holds.
std::string quoted_text(std::string_view value);

}  // namespace tw::lang
