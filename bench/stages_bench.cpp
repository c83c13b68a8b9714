// How long each stage takes for the shipped kernels, on one core: source to last IR, proof, CUDA text, cubin, emulation.
//
//   make bench-stages
#include <benchmark/benchmark.h>

#include <string>

#include "codegen/emit.h"
#include "diagnose/check.h"
#include "emulate/trial.h"
#include "lower/lower.h"
#include "runtime/compile.h"

namespace {

std::string kernel_path(const std::string& name) { return std::string(TW_SOURCE_DIR) + "/kernels/" + name + ".py"; }

tw::ir::Module load(const std::string& name) {
    tw::SourceMap sources;
    tw::DiagnosticSink sink;
    auto module = tw::lower::compile_file(sources, kernel_path(name), {}, sink);
    return module ? *module : tw::ir::Module{};
}

void parse_and_lower(benchmark::State& state, const std::string& name) {
    for (auto _ : state) benchmark::DoNotOptimize(load(name));
}

void prove(benchmark::State& state, const std::string& name) {
    const tw::ir::Module module = load(name);
    if (module.kernels.empty()) return state.SkipWithError("the kernel does not compile");
    tw::diagnose::CheckOptions options;
    options.search = false;
    for (auto _ : state) {
        if (!tw::diagnose::check(module.kernels.front(), options).proved()) return state.SkipWithError("not proved");
    }
}

void print_cuda(benchmark::State& state, const std::string& name) {
    const tw::ir::Module module = load(name);
    if (module.kernels.empty()) return state.SkipWithError("the kernel does not compile");
    for (auto _ : state) benchmark::DoNotOptimize(tw::codegen::emit(module.kernels.front(), name));
}

// CUDA text to cubin with nothing cached.
void compile_nvrtc(benchmark::State& state, const std::string& name) {
    const tw::ir::Module module = load(name);
    if (module.kernels.empty()) return state.SkipWithError("the kernel does not compile");
    tw::runtime::CompileRequest request;
    request.source = tw::codegen::emit(module.kernels.front(), name)->source;
    request.arch = module.kernels.front().arch;
    request.include_folders = tw::runtime::standard_include_folders();
    request.use_cache = false;
    for (auto _ : state) {
        if (!tw::runtime::compile(request)) return state.SkipWithError("NVRTC is not here, or refused the text");
    }
}

// Kernel file to cubin, every stage of it: with nothing cached, and with the cubin in the cache.
void source_to_cubin(benchmark::State& state, const std::string& name, bool cached) {
    const auto once = [&] {
        const tw::ir::Module module = load(name);
        if (module.kernels.empty()) return false;
        tw::runtime::CompileRequest request;
        request.source = tw::codegen::emit(module.kernels.front(), name)->source;
        request.arch = module.kernels.front().arch;
        request.include_folders = tw::runtime::standard_include_folders();
        request.use_cache = cached;
        return static_cast<bool>(tw::runtime::compile(request));
    };
    if (!once()) return state.SkipWithError("NVRTC is not here, or refused the text");
    for (auto _ : state) benchmark::DoNotOptimize(once());
}

// A 256 x 256 x 256 product with values, one schedule.
void emulate(benchmark::State& state, const std::string& name) {
    const tw::ir::Module module = load(name);
    if (module.kernels.empty()) return state.SkipWithError("the kernel does not compile");
    const tw::ir::Kernel& kernel = module.kernels.front();
    for (auto _ : state) {
        const tw::emulate::Trial trial = tw::emulate::run_trial(kernel, {256, 256, 256}, {});
        if (trial.failed() || !trial.refused.empty()) return state.SkipWithError("wrong on the emulator");
        state.SetIterationTime(trial.seconds);
    }
}

const int registered = [] {
    for (const char* name : {"vector_add", "gemm_sm80", "gemm_sm90", "attention_sm90"}) {
        benchmark::RegisterBenchmark(("parse_and_lower/" + std::string(name)).c_str(), parse_and_lower, name)
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("prove/" + std::string(name)).c_str(), prove, name)->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("print_cuda/" + std::string(name)).c_str(), print_cuda, name)->Unit(benchmark::kMillisecond);
    }
    for (const char* name : {"gemm_sm80", "gemm_sm90", "attention_sm90"}) {
        benchmark::RegisterBenchmark(("compile_nvrtc/" + std::string(name)).c_str(), compile_nvrtc, name)->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("source_to_cubin/" + std::string(name)).c_str(), source_to_cubin, name, false)
            ->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(("source_to_cubin_cached/" + std::string(name)).c_str(), source_to_cubin, name, true)
            ->Unit(benchmark::kMillisecond);
    }
    for (const char* name : {"gemm_sm80", "gemm_sm90"}) {
        benchmark::RegisterBenchmark(("emulate_256x256x256/" + std::string(name)).c_str(), emulate, name)
            ->Unit(benchmark::kMillisecond)
            ->UseManualTime();
    }
    return 0;
}();

}  // namespace

BENCHMARK_MAIN();
