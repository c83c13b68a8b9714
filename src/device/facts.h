// What is known of integers from the text of a kernel: signs, divisors, counters. Never wrong, seldom all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/ir.h"

namespace tw::device {

class Facts {
public:
    explicit Facts(const ir::Kernel& kernel);  // keeps a reference to it

    bool non_negative(const ir::Expr& e) const;
    std::int64_t multiple(const ir::Expr& e) const;  // a number that divides e; 0: e is 0
    // limit = origin + (end - origin) // n * n with n a multiple of `width`: vectors from the origin on never lie across it, and it is not
    // beyond the end.
    bool whole_vectors(const ir::Expr& limit, const ir::Expr& origin, const ir::Expr& end, int width) const;
    // The period of a counter that only starts at 0 and goes up by 1, and of which slots and phases are asked; 0: it is none.
    int ring_period(int var) const;
    int assignments(int var) const { return assignments_[static_cast<std::size_t>(var)]; }

private:
    const ir::Kernel& k_;
    std::vector<bool> non_negative_;
    std::vector<std::optional<ir::Expr>> value_;  // of scalars that are assigned once
    std::vector<int> assignments_;
    std::vector<std::optional<ir::Expr>> loop_lo_, loop_step_;
};

}  // namespace tw::device
