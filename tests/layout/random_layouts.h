// Random small layouts for tests that check a post-condition at every coordinate.
// The seed is printed by every failing check; TILEWRIGHT_SEED=n repeats a run with another one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "layout/algebra.h"
#include "layout/swizzle.h"

namespace tw::layout::testing {

inline std::uint64_t seed() {
    static const std::uint64_t value = [] {
        const char* text = std::getenv("TILEWRIGHT_SEED");
        const std::uint64_t s = text ? std::strtoull(text, nullptr, 10) : 20240607u;
        std::printf("layout tests: seed %llu\n", static_cast<unsigned long long>(s));
        return s;
    }();
    return value;
}

class Random {
public:
    // Each test has its own stream, so that one test can be repeated alone.
    explicit Random(std::uint64_t stream) : engine_(seed() * 1000003u + stream) {}

    std::int64_t below(std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(engine_); }
    std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
    bool chance(int percent) { return below(100) < percent; }
    template <class T>
    T pick(std::initializer_list<T> list) {
        return *(list.begin() + below(static_cast<std::int64_t>(list.size())));
    }

    // A tree of extents whose product stays at most `room`.
    IntTuple shape(std::int64_t room, int depth = 2) {
        if (depth == 0 || chance(35)) return IntTuple(extent(room));
        IntTuple t = IntTuple::empty();
        const std::int64_t modes = between(1, 3);
        for (std::int64_t i = 0; i < modes; ++i) {
            const IntTuple mode = shape(room, depth - 1);
            room = std::max<std::int64_t>(1, room / product(mode).value());
            t.push_back(mode);
        }
        return t;
    }

    // Any strides, with overlaps, zeros and gaps.
    Layout layout(std::int64_t room = 200) {
        IntTuple s = shape(room);
        FlatInts strides;
        for (std::size_t i = 0; i < leaves(s).size(); ++i)
            strides.push_back(pick<std::int64_t>({0, 1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 100}));
        return Layout::make(s, unflatten(strides, s)).value();
    }

    // Leaves in a random order, each stride a multiple of what lies below: what kernels have.
    Layout nested(std::int64_t room = 200, bool gaps = true) {
        IntTuple s = shape(room);
        const FlatInts extents = leaves(s);
        std::vector<std::size_t> order(extents.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), engine_);
        FlatInts strides;
        for (std::size_t i = 0; i < extents.size(); ++i) strides.push_back(0);
        std::int64_t next = gaps ? pick<std::int64_t>({1, 1, 1, 2, 3}) : 1;
        for (std::size_t i : order) {
            strides[i] = next;
            next *= extents[i] * (gaps ? pick<std::int64_t>({1, 1, 1, 2, 3}) : 1);
        }
        return Layout::make(s, unflatten(strides, s)).value();
    }
    Layout compact(std::int64_t room = 200) { return nested(room, false); }
    Layout any(std::int64_t room = 200) { return chance(40) ? layout(room) : chance(50) ? nested(room) : compact(room); }

    // Powers of two only, compact or with gaps.
    Layout binary(int max_bits = 8) {
        FlatInts shape, stride;
        int bits = 0;
        for (std::int64_t n = between(1, 4); n > 0; --n) {
            const int b = static_cast<int>(below(3));
            if (bits + b > max_bits) break;
            bits += b;
            shape.push_back(std::int64_t{1} << b);
        }
        if (shape.empty()) shape.push_back(1);
        std::vector<std::size_t> order(shape.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), engine_);
        for (std::size_t i = 0; i < shape.size(); ++i) stride.push_back(0);
        std::int64_t next = pick<std::int64_t>({1, 1, 2});
        for (std::size_t i : order) {
            stride[i] = chance(10) ? 0 : next;
            next *= shape[i] * pick<std::int64_t>({1, 1, 2});
        }
        return Layout::make(unwrap(shape), unwrap(stride)).value();
    }

    Swizzle swizzle() {
        const int bits = static_cast<int>(below(4));
        const int shift = static_cast<int>(between(bits, bits + 3)) * (chance(25) ? -1 : 1);
        return Swizzle::make(bits, static_cast<int>(below(4)), shift).value();
    }

private:
    std::int64_t extent(std::int64_t room) { return std::min(room, pick<std::int64_t>({1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 16})); }

    std::mt19937_64 engine_;
};

// Does any layout have this table? Tries every ordered factorisation of its length.
inline bool some_layout_has(const std::vector<std::int64_t>& table, std::int64_t step = 1) {
    const std::int64_t n = static_cast<std::int64_t>(table.size());
    const std::int64_t rest = n / step;
    if (rest == 1) return true;
    for (std::int64_t s = 2; s <= rest; ++s) {
        if (rest % s != 0) continue;
        bool fits = true;
        for (std::int64_t i = 0; i < n && fits; ++i) {
            const std::int64_t digit = i / step % s;
            fits = table[i] == table[i - digit * step] + digit * table[step];
        }
        if (fits && some_layout_has(table, step * s)) return true;
    }
    return false;
}

}  // namespace tw::layout::testing
