// Signed counts as indices of containers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw {

constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace tw
