// Sums of digits as text.
#pragma once

#include <string>

#include "ir/index_map.h"

namespace tw::codegen {

using ir::DigitSum, ir::SplitMap, ir::extents_of, ir::fit_digits, ir::prime_digits, ir::split;

// "x / 4 % 8 * 16 + x % 4 * 2", without the base; "0" when nothing is left. `x` is put in parentheses unless it is a name.
std::string digit_text(const ir::DigitSum& sum, const std::string& x);

}  // namespace tw::codegen
