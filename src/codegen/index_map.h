// Integer functions of a thread number and a register number, as text.
//
// Addresses and coordinates of register tiles are sums of digits of two counters: the thread inside its group and the value
// inside the thread. A function that has this form is found by evaluating it at the digits' units and checked everywhere, so
// what is printed is exactly what the table says or nothing at all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/distribution.h"

namespace tw::codegen {

// f(x) = base + sum over terms of (x / divisor % extent) * step, for 0 <= x < domain.
struct DigitSum {
    struct Term {
        int divisor = 1, extent = 1, step = 0;
    };
    int domain = 1;
    int base = 0;
    std::vector<Term> terms;
    int at(int x) const;
};

// The digit sum with these extents (least significant first; split into primes) that equals the table, or nothing.
std::optional<DigitSum> fit_digits(const std::vector<int>& table, const std::vector<int>& extents);

// "x / 4 % 8 * 16 + x % 4 * 2", without the base; "0" when nothing is left. `x` is put in parentheses unless it is a name.
std::string digit_text(const DigitSum& sum, const std::string& x);

// f(t, v) = thread(t) + value[v] for all t and v, thread(0) = 0.
struct SplitMap {
    DigitSum thread;
    std::vector<int> value;
};
// `f` gets the coordinate of (t, v) in `d`. Nothing when f is not such a sum.
std::optional<SplitMap> split(const ir::Distribution& d, const std::function<int(const std::vector<int>&)>& f);

std::vector<int> extents_of(const std::vector<ir::DistDigit>& digits);
// Every digit split into its prime factors, so that bit positions can be told.
std::vector<ir::DistDigit> prime_digits(const std::vector<ir::DistDigit>& digits);

}  // namespace tw::codegen
