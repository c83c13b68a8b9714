// Small syntactic facts about integer expressions, enough for shapes and vector widths. Conservative: "not known" is always
// a legal answer, and the verifier proves the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tw::lower {

// b - a when it is the same constant for all values of the leaves: (w + 1) * 64 - w * 64 is 64.
std::optional<std::int64_t> constant_difference(const ir::Expr& a, const ir::Expr& b);

// The largest power of two up to 2^20 that is known to divide an expression (0 counts as 2^20).
class Multiples {
public:
    // Reads assumptions of the form `size % c == 0` (also inside `and`), loop bounds and every assignment to a variable.
    explicit Multiples(const ir::Kernel& kernel);
    std::int64_t of(const ir::Expr& e) const;

private:
    std::vector<std::int64_t> sizes_, vars_;
};

}  // namespace tw::lower
