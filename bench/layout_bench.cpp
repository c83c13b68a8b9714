// How long layout operations take, on the layouts that kernels have.
#include <benchmark/benchmark.h>

#include "layout/algebra.h"
#include "layout/image.h"
#include "layout/notation.h"
#include "layout/thread_value.h"

namespace {

using namespace tw::layout;

Layout plain(const char* text) { return parse_layout(text).value(); }

void evaluate_tile(benchmark::State& state) {
    const ComposedLayout tile = parse_composed("Sw<3,4,3> o 0 o ((8,16),(64,2)):((64,1024),(1,512))").value();
    std::int64_t i = 0, sum = 0;
    for (auto _ : state) {
        sum += tile(i);
        i = (i + 1) & (tile.size() - 1);
    }
    benchmark::DoNotOptimize(sum);
}
BENCHMARK(evaluate_tile);

void compose(benchmark::State& state) {
    const Layout a = plain("((8,16),(64,2)):((64,1024),(1,512))"), b = plain("((4,8),(2,2,16)):((256,1),(128,8,1024))");
    for (auto _ : state) benchmark::DoNotOptimize(composition(a, b));
}
BENCHMARK(compose);

void divide_by_mode(benchmark::State& state) {
    const Layout a = plain("(128,128):(128,1)");
    const Tiler tiler = Tiler::from_shape(tuple(64, 16)).value();
    for (auto _ : state) benchmark::DoNotOptimize(zipped_divide(a, tiler));
}
BENCHMARK(divide_by_mode);

void invert_thread_values(benchmark::State& state) {
    const ThreadValueLayout tv = make_thread_value(plain("(8,4):(4,1)"), plain("(2,2):(2,1)")).value();
    for (auto _ : state) benchmark::DoNotOptimize(owner_layout(tv));
}
BENCHMARK(invert_thread_values);

void decide_injective(benchmark::State& state) {
    const ComposedLayout tile = parse_composed("Sw<3,4,3> o 0 o ((8,16),(64,2)):((64,1024),(1,512))").value();
    for (auto _ : state) benchmark::DoNotOptimize(is_injective(tile));
}
BENCHMARK(decide_injective);

void decide_injective_by_search(benchmark::State& state) {
    const ComposedLayout odd = parse_composed("(7,7,7,7):(61,67,71,1009)").value();
    for (auto _ : state) benchmark::DoNotOptimize(is_injective(odd));
}
BENCHMARK(decide_injective_by_search);

void swizzles_equal(benchmark::State& state) {
    const ComposedLayout a = parse_composed("Sw<3,4,3> o 0 o (128,64):(64,1)").value();
    const ComposedLayout b = parse_composed("Sw<2,4,3> o 0 o (128,64):(64,1)").value();
    for (auto _ : state) benchmark::DoNotOptimize(equal_functions(a, b));
}
BENCHMARK(swizzles_equal);

}  // namespace

BENCHMARK_MAIN();
