// Keys and constants that the value*.cpp files share.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "verify/value.h"

namespace tw::verify {

using Kind = ValueNode::Kind;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

// log2(e) * ln(2) and the like are 1 up to the rounding of a literal; coefficients are compared on this grid.
inline double snapped(double c) {
    const double r = std::round(c * 5040.0) / 5040.0;
    return std::fabs(c - r) <= 2e-7 * std::max(1.0, std::fabs(c)) ? r : c;
}

inline std::string number_key(double v) {
    const double s = snapped(v) == 0 ? 0.0 : snapped(v);
    if (s == std::round(s) && std::fabs(s) < 1e9) return std::to_string(static_cast<std::int64_t>(s));   // what %.9g prints
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.9g", s);
    return buffer;
}

inline void append_key(std::string& s, std::int64_t n) {
    char digits[24];
    s.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

inline void append_key(std::string& s, const Poly& p) {
    for (const auto& [m, k] : p.terms) {
        append_key(s, k);
        for (Atom a : m) {
            s += '*';
            append_key(s, std::int64_t{a});
        }
        s += '+';
    }
}

inline void append_key(std::string& s, const Condition& c) {
    append_key(s, static_cast<std::int64_t>(c.kind));
    s += ':';
    append_key(s, c.poly);
    s += '{';
    for (const Condition& p : c.parts) {
        append_key(s, p);
        s += ',';
    }
    s += '}';
}

}  // namespace tw::verify
