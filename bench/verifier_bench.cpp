// How long `check` computes for GEMM and attention kernels, on one core and without the search for counterexamples:
// synchronisation over all instances of the cut-off, and data flow. `cpu_time` is the figure; `real_time` depends on the machine's load.
//
//   make bench-verifier
#include <benchmark/benchmark.h>

#include <string>

#include "diagnose/check.h"
#include "lower/lower.h"

namespace {

void check(benchmark::State& state, const std::string& file, const std::string& kernel_name) {
    tw::SourceMap sources;
    tw::DiagnosticSink sink;
    const auto module = tw::lower::compile_file(sources, std::string(TW_SOURCE_DIR) + "/kernels/" + file + ".py", {}, sink);
    if (!module) return state.SkipWithError("the file does not compile");
    const tw::ir::Kernel* kernel = nullptr;
    for (const tw::ir::Kernel& k : module->kernels) {
        if (!kernel && k.name == kernel_name) kernel = &k;
    }
    if (!kernel) return state.SkipWithError("the file has no such kernel");
    tw::diagnose::CheckOptions options;
    options.search = false;
    int instances = 0;
    for (auto _ : state) {
        const auto result = tw::diagnose::check(*kernel, options);
        if (!result.proved()) return state.SkipWithError("not proved");
        instances = result.instances;
    }
    state.counters["instances"] = instances;
}

const int registered = [] {
    const std::pair<const char*, const char*> kernels[] = {
        {"gemm_sm90", "gemm"},
        {"gemm_cluster_sm90", "gemm_cluster"},
        {"gemm_sm80", "gemm"},
        {"gemm_deferred_sm90", "gemm_deferred_tn"},
        {"gemm_deferred_sm90", "gemm_deferred_tt"},
        {"gemm_split_sm90", "split_products"},
        {"attention_sm90", "attention"},
        {"attention_sm90", "attention_causal"},
    };
    for (const auto& [file, kernel] : kernels) {
        benchmark::RegisterBenchmark(("check/" + std::string(file) + "/" + kernel).c_str(), check, file, kernel)
            ->Unit(benchmark::kMillisecond);
    }
    return 0;
}();

}  // namespace

BENCHMARK_MAIN();
