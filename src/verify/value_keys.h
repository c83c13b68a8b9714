// Keys and constants that the value*.cpp files share.
#pragma once

#include <algorithm>
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
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.9g", snapped(v) == 0 ? 0.0 : snapped(v));
    return buffer;
}

inline std::string poly_key(const Poly& p) {
    std::string s;
    for (const auto& [m, k] : p.terms) {
        s += std::to_string(k);
        for (Atom a : m) s += "*" + std::to_string(a);
        s += "+";
    }
    return s;
}

inline std::string condition_key(const Condition& c) {
    std::string s = std::to_string(static_cast<int>(c.kind)) + ":" + poly_key(c.poly) + "{";
    for (const Condition& p : c.parts) s += condition_key(p) + ",";
    return s + "}";
}

}  // namespace tw::verify
