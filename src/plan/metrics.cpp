#include "plan/metrics.h"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace tw::plan {
namespace {

using nlohmann::json;
using W = tasks::WorkloadClass;

// Classes: m memory-bound (elementwise, reduction, scan), p products (contraction, grouped, convolution), a attention.
// Stages: s structure, m memory, p pipeline, i instruction, c constants.
struct Row {
    const char* name;
    const char* classes;
    const char* stages;
    const char* meaning;
};
constexpr Row kRows[] = {
    {"gpu__time_duration.sum", "mpa", "smpic", "time of the launch under the profiler, clocks not locked"},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "m", "smpic", "share of DRAM bandwidth: near 90 nothing but less traffic helps"},
    {"dram__bytes_read.sum", "mpa", "sm", "read from DRAM: more than the inputs once means data is read again"},
    {"dram__bytes_write.sum", "m", "sm", "written to DRAM: more than the outputs once means spills or partial lines"},
    {"lts__t_sector_hit_rate.pct", "mpa", "mc", "L2 hit rate: low where neighbours could share operands"},
    {"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "m", "mi",
     "32-byte sectors per load of a warp: 16 with 16-byte loads side by side"},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "mpa", "m", "bank conflicts of shared memory: swizzle or padding"},
    {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "mpa", "mp",
     "warps waiting for global or local memory: more loads in flight help"},
    {"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "mpa", "p",
     "warps waiting at a barrier: roles or deeper rings help"},
    {"smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "pa", "p", "warps waiting a fixed latency"},
    {"sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active", "pa", "spic",
     "tensor core instructions issued: the share of the arithmetic bound"},
    {"sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active", "ma", "i",
     "special functions (exp2, rcp, tanh): near 100 cheaper forms help"},
    {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "ma", "i", "fp32 multiply-adds"},
    {"sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active", "ma", "i", "integer and logic: index arithmetic and conversions"},
    {"smsp__issue_active.avg.pct_of_peak_sustained_active", "ma", "i",
     "cycles in which an instruction was issued: near 100 fewer instructions help, not more warps"},
    {"smsp__inst_executed_op_local.sum", "mpa", "ic", "local memory instructions: spills"},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "m", "c", "resident warps"},
    {"launch__registers_per_thread", "mpa", "ic", "registers a thread"},
    {"launch__occupancy_limit_registers", "mpa", "c", "blocks a multiprocessor could hold by registers"},
    {"launch__occupancy_limit_shared_mem", "pa", "c", "blocks a multiprocessor could hold by shared memory"},
    {"launch__waves_per_multiprocessor", "mpa", "sc",
     "waves of blocks: a fraction over a whole number leaves multiprocessors idle at the end"},
};

char letter(W workload) {
    switch (workload) {
        case W::elementwise:
        case W::reduction:
        case W::scan: return 'm';
        case W::attention: return 'a';
        default: return 'p';
    }
}
char letter(Stage stage) { return "fsmpic"[static_cast<int>(stage)]; }
bool has(const char* letters, char c) { return std::string_view(letters).find(c) != std::string_view::npos; }

// ncu's base units, and the scaled ones that it prints when it was not asked for those.
void readable(double& value, std::string& unit) {
    struct Scale {
        const char* from;
        double factor;
        const char* to;
    };
    static constexpr Scale scales[] = {
        {"nsecond", 1e-3, "us"},
        {"ns", 1e-3, "us"},
        {"usecond", 1, "us"},
        {"us", 1, "us"},
        {"msecond", 1e3, "us"},
        {"ms", 1e3, "us"},
        {"second", 1e6, "us"},
        {"s", 1e6, "us"},
        {"byte", 1e-6, "MB"},
        {"Kbyte", 1e-3, "MB"},
        {"Mbyte", 1, "MB"},
        {"Gbyte", 1e3, "MB"},
        {"byte/second", 1e-9, "GB/s"},
        {"byte/s", 1e-9, "GB/s"},
        {"Gbyte/second", 1, "GB/s"},
        {"Gbyte/s", 1, "GB/s"},
        {"Tbyte/second", 1e3, "GB/s"},
        {"Tbyte/s", 1e3, "GB/s"},
        {"register/thread", 1, ""},
        {"block", 1, ""},
        {"inst", 1, ""},
        {"sector", 1, ""},
        {"sector/request", 1, ""},
    };
    for (const Scale& s : scales) {
        if (unit != s.from) continue;
        value *= s.factor;
        unit = s.to;
        return;
    }
}

}  // namespace

std::vector<runtime::MetricMeaning> metrics_of(W workload) {
    std::vector<runtime::MetricMeaning> out;
    for (const Row& r : kRows)
        if (has(r.classes, letter(workload))) out.push_back({r.name, r.meaning});
    return out;
}

std::vector<Metric> shown_metrics(const json& profile, W workload, Stage stage) {
    std::vector<Metric> out;
    if (!profile.is_object() || !profile.contains("kernels") || !profile["kernels"].is_object()) return out;
    // A program has several kernels; the longest one is where the time goes.
    const json* longest = nullptr;
    double time = -1;
    const auto value_of = [](const json& metrics, const char* name) {
        return metrics.is_object() && metrics.contains(name) && metrics[name].is_object() ? metrics[name].value("value", 0.0) : 0.0;
    };
    for (const json& metrics : profile["kernels"]) {
        if (const double t = value_of(metrics, "gpu__time_duration.sum"); t > time) time = t, longest = &metrics;
    }
    if (!longest) return out;
    for (const Row& r : kRows) {
        if (!has(r.classes, letter(workload)) || !has(r.stages, letter(stage)) || !longest->contains(r.name) ||
            !(*longest)[r.name].is_object())
            continue;
        Metric m{r.name, value_of(*longest, r.name), (*longest)[r.name].value("unit", ""), r.meaning};
        readable(m.value, m.unit);
        out.push_back(std::move(m));
    }
    return out;
}

}  // namespace tw::plan
