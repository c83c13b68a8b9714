// Integer functions of a thread number and a register number, as sums of digits.
//
// Addresses and coordinates of register tiles are sums of digits of two counters: the thread inside its group and the value
// inside the thread. A function that has this form is found by evaluating it at the digits' units and checked everywhere, so
// the sum is exactly what the table says or nothing at all.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/distribution.h"

namespace tw::ir {

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

// f(t, v) = thread(t) + value[v] for all t and v, thread(0) = 0.
struct SplitMap {
    DigitSum thread;
    std::vector<int> value;
};
// `f` gets the coordinate of (t, v) in `d`. Nothing when f is not such a sum.
std::optional<SplitMap> split(const Distribution& d, const std::function<int(const std::vector<int>&)>& f);

// The slot of a thread's part of `from` that holds what each slot of `d` asks for: dimension i of `from` runs along dimension dims[i] of
// `d` (empty: i), offset[i] further on. Nothing where a thread does not hold it, or not all threads in the same slot.
std::optional<std::vector<int>> held_slots(const Distribution& from, const std::vector<int>& dims, const std::vector<int>& offset,
                                           const Distribution& d);

std::vector<int> extents_of(const std::vector<DistDigit>& digits);
// Every digit split into its prime factors, so that bit positions can be told.
std::vector<DistDigit> prime_digits(const std::vector<DistDigit>& digits);

}  // namespace tw::ir
