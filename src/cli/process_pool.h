// Work on many items in child processes: an item that crashes or runs away must not take the others with it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace tw::cli {

struct PoolLimits {
    int jobs = 1;
    double seconds = 30;  // of processor time per item, so that a busy machine does not change the answers
};

struct PoolResult {
    enum class End : std::uint8_t { finished, timeout, crashed } end = End::crashed;
    std::string text;  // what `work` returned; for a crash, how it ended
    double milliseconds = 0;
};

// Calls `work(i)` in a child for every i below `count` and `done` here, in the order in which they end.
void run_pool(std::size_t count, const PoolLimits& limits, const std::function<std::string(std::size_t)>& work,
              const std::function<void(std::size_t, const PoolResult&)>& done);

}  // namespace tw::cli
