// Keys and constants that the value*.cpp files share.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>

#include "verify/value.h"

namespace tw::verify {

using Kind = ValueNode::Kind;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

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
