// Times contenders against one another in one run.
//
// Each contender is captured as a CUDA graph of several calls over rotating input sets; the graphs are replayed in turn
// (A B, B A, ...), the GPU never idle between them, one event between graphs. A slow spell of the machine hits all of them, so
// ratios are paired by round.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/graph_timing.h"

namespace tw::runtime {

struct Contender {
    std::string name;
    GraphTimer::Call call;  // works on set `index`, only enqueues
};

struct MeasureOptions {
    int rounds = 30;
    double graph_us = 1000;  // how long one graph lasts, about
    double budget_ms = 0;    // of the timed rounds, about: fewer rounds of what is slow, one at least; 0: all rounds
    double warmup_ms = 150;  // clocks and caches settle under the load that is measured: a power limit takes this long to bite
};

struct Interval {
    double median = 0, low = 0, high = 0;  // 95 %, bootstrap of the median
};

struct Measured {
    std::string name;
    Interval us;  // of one call
    int calls_per_graph = 0;
    std::vector<double> samples;  // microseconds of one call, per round
};

struct Comparison {
    std::vector<Measured> contenders;
    // Of contender 1, 2, ... over contender 0, paired by round: above 1, contender 0 is faster.
    std::vector<Interval> ratios;
};

Result<Comparison> measure(const Driver& cuda, const std::vector<Contender>& contenders, std::size_t sets, const MeasureOptions& options);

// Percentile bootstrap of the median with a fixed seed. Pre-condition: not empty.
Interval bootstrap(const std::vector<double>& samples);

// What the GPU's own management library says of its state; fields that it refuses are left out.
nlohmann::json clock_state(int ordinal);

// Held while something is timed: one process at a time measures on a GPU, whichever user's loop it belongs to. The lock is a file in
// the cache folder; where there is none, or it cannot be made, nothing is held and `note` says why.
class GpuLock {
public:
    explicit GpuLock(int ordinal);
    static std::filesystem::path file(int ordinal);  // empty: no cache folder
    ~GpuLock();
    GpuLock(const GpuLock&) = delete;
    GpuLock& operator=(const GpuLock&) = delete;
    double waited_seconds = 0;
    std::string note;

private:
    int file_ = -1;
};

}  // namespace tw::runtime
