#include "tasks/extent.h"

#include <charconv>

#include "base/text.h"

namespace tw::tasks {

std::int64_t extent_of(const Task& task, const std::string& dim) {
    if (const std::int64_t n = task.size(dim)) return n;
    std::int64_t out = 0;
    // NAME + NUMBER, or NUMBER.
    const auto plus = dim.find('+');
    const std::string_view number = trim(plus == std::string::npos ? std::string_view(dim) : std::string_view(dim).substr(plus + 1));
    const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), out);
    if (problem != std::errc() || end != number.data() + number.size() || out < 1 || out > (std::int64_t{1} << 40)) return 0;
    if (plus == std::string::npos) return out;
    const std::int64_t base = task.size(std::string(trim(std::string_view(dim).substr(0, plus))));
    return base ? base + out : 0;
}

}  // namespace tw::tasks
