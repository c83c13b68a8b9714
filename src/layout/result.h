// Failure as a value, and integer arithmetic that notices when it does not fit: the two habits of every file in layout/.
//
// Layout text comes from users, from generated kernels and from models, so no operation may throw, overflow silently or
// divide by zero. An operation that can be asked the impossible returns Result<T>; the message names the mode at fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/expected.h"

namespace tw::layout {

struct Error {
    std::string message;
};

template <class T>
using Result = Expected<T, Error>;

inline Unexpected<Error> fail(std::string message) { return Unexpected<Error>{Error{std::move(message)}}; }

// Sizes, spans and offsets of a Layout stay below this, so that the sum or the double of two of them fits in 64 bits and
// evaluating a valid layout inside its domain needs no checks.
inline constexpr std::int64_t kMaxExtent = std::int64_t{1} << 61;

inline std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
    return r;
}

inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
    return r;
}

// Pre-condition: a >= 0, b > 0.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

inline bool is_power_of_two(std::int64_t v) { return v > 0 && (v & (v - 1)) == 0; }
// Pre-condition: v is a power of two.
inline int log2_exact(std::int64_t v) { return __builtin_ctzll(static_cast<unsigned long long>(v)); }

}  // namespace tw::layout

// Gives `name` the value of a Result expression, or returns its error from the enclosing function.
#define TW_LAYOUT_TRY(name, expression)                                  \
    auto name##_or_error = (expression);                                 \
    if (!name##_or_error) return std::move(name##_or_error).propagate(); \
    auto& name = *name##_or_error
