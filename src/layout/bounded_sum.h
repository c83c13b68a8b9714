// Internal to layout/: integers 0 <= x_i < extent_i with sum x_i * stride_i == target.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace tw::layout {

enum class SearchEnd { found, none, gave_up };

struct BoundedTerm {
    std::int64_t extent = 1;  // x ranges over 0 .. extent-1
    std::int64_t stride = 1;  // > 0
};

// Depth-first from the largest stride. A term's candidates are those that leave a target the smaller terms can still reach:
// within their span, and divisible by their gcd. So nested strides have one candidate each, and two terms are solved by one
// modular inverse. `accept` is asked about every solution (in the order of `terms`); the search goes on while it says no.
// Exact: `none` means that there is no acceptable solution. Pre-condition: extents and spans as in Layout, |target| < 2^62.
SearchEnd find_bounded_sum(const std::vector<BoundedTerm>& terms, std::int64_t target, std::int64_t max_steps,
                           const std::function<bool(const std::vector<std::int64_t>&)>& accept);

}  // namespace tw::layout
