// A moment after which nobody waits any longer.
//
// One object is made where a budget of time is stated and passed down to everything that can take long (model calls, waits between
// attempts, tool calls, gates, GPU evaluations): each takes the sooner of its own limit and what is left.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace tw {

class Deadline {
public:
    using Clock = std::chrono::steady_clock;

    Deadline() = default;  // never
    // Never, for seconds that are no finite number; already passed for those below zero.
    static Deadline in(double seconds) {
        Deadline d;
        constexpr double longest = 1e8;  // three years: beyond it the clock's arithmetic would overflow
        if (std::isfinite(seconds) && seconds < longest) {
            d.set_ = true;
            d.at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::max(seconds, 0.0)));
        }
        return d;
    }

    bool is_set() const { return set_; }
    bool passed() const { return set_ && Clock::now() >= at_; }
    // Never negative; infinite when there is none.
    double left() const {
        if (!set_) return std::numeric_limits<double>::infinity();
        return std::max(0.0, std::chrono::duration<double>(at_ - Clock::now()).count());
    }
    // How long a step may take that has a limit of its own.
    double within(double seconds) const { return std::min(seconds, left()); }

private:
    bool set_ = false;
    Clock::time_point at_{};
};

}  // namespace tw
