// How large the values of a kernel's text may become. Names stand for whole expressions and tuples, so a few lines that use a name twice
// (`a = a * a + 1`, `t = (t, t)`) double them each time; everything that follows walks them.
#pragma once

#include <cstddef>

#include "lower/value.h"

namespace tw::lower {

inline constexpr std::size_t kMaxExpressionNodes = 10'000;
inline constexpr int kMaxDegree = 12;           // factors of a product of run-time integers: indices of tensors have at most 8 dimensions
inline constexpr std::size_t kMaxItems = 4096;  // of a tuple, nested ones included

// An empty text, or what is too large about it.
const char* size_problem(const ir::Expr& expression);
const char* size_problem(const Value& value);

}  // namespace tw::lower
