// The emulator itself: schedules, clocks, faults with their instance, the reference, and the numbers of the hardware.
#include <cmath>
#include <ctime>
#include <limits>
#include <set>

#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace emulator_test {

using namespace testing_kernels;

TEST(Tensors, StridesAndRoundingAreTheTypes) {
    TensorData t = make_tensor(target::DType::BF16, {2, 3}, {4, 1});
    t.set({1, 2}, 1.0 + 1.0 / 512);  // half a unit of bf16's 8 significant bits: to even
    EXPECT_EQ(t.get({1, 2}), 1.0);
    t.set({0, 0}, 3.0);
    EXPECT_EQ(t.get({0, 0}), 3.0);
    EXPECT_EQ(t.get({1, 2}), 1.0);
    EXPECT_EQ(t.elements(), 6);
    EXPECT_GE(t.bytes.size(), 2u * (4 + 3)) << "rows have a gap of one element";
}

TEST(Schedules, StarveEveryRoleAndDelayAsynchronousWork) {
    const ir::Kernel k = kernel_of("kernels/gemm_sm90.py");  // warps 0-3 produce, 4-7 and 8-11 consume
    std::set<int> starved;
    std::set<std::pair<Schedule::Order, bool>> kinds;
    for (const Schedule& s : hostile_schedules(k, 2, 1)) {
        if (s.order == Schedule::Order::starve) starved.insert(s.victim);
        kinds.insert({s.order, s.lazy});
        EXPECT_FALSE(s.describe().empty());
    }
    EXPECT_EQ(starved, (std::set<int>{0, 4, 8, 11}));
    for (const auto order : {Schedule::Order::round_robin, Schedule::Order::reverse, Schedule::Order::random}) {
        for (const bool lazy : {false, true}) EXPECT_TRUE(kinds.count({order, lazy}));
    }
}

TEST(Run, IsDeterministic) {
    const ir::Kernel k = kernel_of("kernels/softmax.py");
    TrialOptions options;
    options.emulator.schedule.order = Schedule::Order::random;
    options.emulator.schedule.seed = 42;
    const Trial a = run_trial(k, {3, 100}, options), b = run_trial(k, {3, 100}, options);
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (std::size_t i = 0; i < a.tensors.size(); ++i) EXPECT_EQ(a.tensors[i].bytes, b.tensors[i].bytes);
    EXPECT_EQ(a.outcome.steps, b.outcome.steps);
}

TEST(Run, ScheduleDoesNotChangeAResult) {
    const ir::Kernel k = kernel_of("kernels/transpose.py");
    std::vector<std::uint8_t> first;
    for (const Schedule& s : hostile_schedules(k, 1, 9)) {
        TrialOptions options;
        options.emulator.schedule = s;
        const Trial t = run_trial(k, {33, 40}, options);
        ASSERT_FALSE(t.failed()) << s.describe();
        if (first.empty()) first = t.tensors.back().bytes;
        EXPECT_EQ(t.tensors.back().bytes, first) << s.describe();
    }
}

TEST(Run, MaximumOrdersZeros) {
    // max.f32 gives +0 for -0 and +0 (seen on an H200 with random kernels).
    const ir::Kernel k = kernel_of_text(R"#(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = maximum(-X[n], 0.0)", threads=32)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(Y[i], tw.maximum(-tw.load(X[i : i + 32], fill=0.0), 0.0))
)#");
    auto tensors = random_inputs(k, {4}, 1, true);
    for (std::int64_t n = 0; n < 4; ++n) tensors[0].set({n}, 0.0);
    ASSERT_TRUE(run(k, {4}, {}, tensors, {}).clean());
    for (std::int64_t n = 0; n < 4; ++n) EXPECT_FALSE(std::signbit(tensors[1].get({n})));
}

TEST(Run, TransposedMatrixMovesAreHonoured) {
    ir::Kernel k = kernel_of("kernels/gemm_sm80.py", {{"BM", 64}, {"BN", 64}});
    const auto sizes = named_sizes(k, {{"M", 64}, {"N", 64}, {"K", 32}});
    ASSERT_FALSE(run_trial(k, sizes, {}).failed());
    int changed = 0;
    ir::for_each_stmt(k.body, [&](ir::Stmt& s) {
        if (auto* l = std::get_if<ir::LoadShared>(&s.op); l && l->matrix && changed++ == 0) l->matrix_transposed = !l->matrix_transposed;
    });
    ASSERT_GT(changed, 0);
    EXPECT_TRUE(run_trial(k, sizes, {}).failed()) << "rows and columns of the 8 x 8 matrices trade places";
}

TEST(Run, BlocksAreTheGrid) { EXPECT_EQ(run_trial(kernel_of("kernels/transpose.py"), {33, 65}, {}).outcome.blocks, 2 * 3); }

// User time of one trial; the least of three, the machine may be busy.
double seconds_of(const ir::Kernel& k, std::int64_t n) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
        const std::clock_t start = std::clock();
        EXPECT_FALSE(run_trial(k, {n}, {}).failed());
        best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return best;
}

TEST(Run, TakesTimeInProportionToTheGrid) {
    const ir::Kernel k = kernel_of("kernels/vector_add.py");
    const double ratio = seconds_of(k, 640'000) / seconds_of(k, 40'000);
    EXPECT_LT(ratio, 48) << "16 times the elements; with work for all of memory in every block it is 200";
}

TEST(Run, TellsHowFarItIsAndStopsWhenAsked) {
    const ir::Kernel k = kernel_of("kernels/vector_add.py");  // 1024 elements a block
    TrialOptions options;
    std::vector<std::int64_t> done;
    options.emulator.progress = [&](const Progress& p) {
        EXPECT_EQ(p.clusters, 10);
        done.push_back(p.clusters_done);
        return p.clusters_done < 3;
    };
    const Trial t = run_trial(k, {10'000}, options);
    EXPECT_EQ(done, (std::vector<std::int64_t>{1, 2, 3}));
    EXPECT_TRUE(t.gave_up);
    EXPECT_FALSE(t.failed());
    EXPECT_NE(t.refused.find("3 of 10 blocks"), std::string::npos) << t.refused;
}

TEST(Run, RefusesSizesThatNeedTooMuchMemory) {
    const ir::Kernel k = kernel_of("kernels/vector_add.py");
    EXPECT_NE(run_trial(k, {std::int64_t{1} << 40}, {}).refused.find("the limit is"), std::string::npos);
    EXPECT_NE(run_trial(k, {std::numeric_limits<std::int64_t>::max()}, {}).refused, "");
    const ir::Kernel square = kernel_of("kernels/transpose.py");
    EXPECT_NE(run_trial(square, {std::int64_t{1} << 40, std::int64_t{1} << 40}, {}).refused.find("more memory than can be counted"),
              std::string::npos);
}

TEST(Faults, TellTheInstance) {
    ir::Kernel k = kernel_of("kernels/transpose.py");
    ASSERT_EQ(remove_all<ir::BlockSync>(k), 1);
    const Trial t = run_trial(k, {33, 31}, {});
    ASSERT_FALSE(t.outcome.clean());
    const Fault& f = t.outcome.faults[0];
    EXPECT_EQ(f.kind, FaultKind::race);
    EXPECT_EQ(f.loc.line, 15) << "the read of `s`";
    EXPECT_EQ(f.other.line, 13) << "the write of `s`";
    EXPECT_GE(f.thread, 0);
    EXPECT_LT(f.thread, 256);
    EXPECT_NE(f.element.find("`s`"), std::string::npos) << f.element;
    EXPECT_FALSE(t.summary(k).empty());
}

TEST(Faults, StopAtTheLimit) {
    ir::Kernel k = kernel_of("kernels/transpose.py");
    remove_all<ir::BlockSync>(k);
    TrialOptions options;
    options.emulator.fault_limit = 1;
    EXPECT_EQ(run_trial(k, {128, 128}, options).outcome.faults.size(), 1u);
}

TEST(Faults, AStepLimitIsNoHangAndNoVerdict) {
    TrialOptions options;
    options.emulator.step_limit = 10;
    const Trial t = run_trial(kernel_of("kernels/softmax.py", {}, 1), {4, 4000}, options);
    ASSERT_FALSE(t.outcome.clean());
    EXPECT_EQ(t.outcome.faults[0].kind, FaultKind::limit);
    EXPECT_TRUE(t.gave_up);
    EXPECT_FALSE(t.failed()) << "nothing was learned";
}

TEST(Faults, AnOutputLeftAloneIsUnwritten) {
    ir::Kernel k = kernel_of("kernels/vector_add.py");
    ASSERT_EQ(remove_all<ir::StoreGlobal>(k), 1);
    const Trial t = run_trial(k, {10}, {});
    ASSERT_EQ(t.outputs.size(), 1u);
    EXPECT_TRUE(t.outputs[0].unwritten);
    EXPECT_TRUE(t.failed());
}

TEST(Faults, AThreadNumberIsAThreadOfTheBlock) {
    const ir::Kernel k = kernel_of("tests/verify/bugs/copy_into_the_stage_being_read.py");
    TrialOptions options;
    options.emulator.schedule.lazy = true;
    const Trial t = run_trial(k, named_sizes(k, {{"M", 32}, {"N", 32}, {"K", 160}}), options);
    ASSERT_FALSE(t.outcome.clean());
    EXPECT_LT(t.outcome.faults[0].thread, 32 * k.warps);
}

TEST(Skeleton, SeesTheSameRaceWithoutValues) {
    ir::Kernel k = kernel_of("kernels/transpose.py");
    Options options;
    options.values = false;
    std::vector<TensorData> tensors = random_inputs(k, {64, 64}, 1, false);
    EXPECT_TRUE(run(k, {64, 64}, {}, tensors, options).clean());
    remove_all<ir::BlockSync>(k);
    const Outcome broken = run(k, {64, 64}, {}, tensors, options);
    ASSERT_FALSE(broken.clean());
    EXPECT_EQ(broken.faults[0].kind, FaultKind::race);
}

TEST(Reference, IsTheEquationInDoublePrecision) {
    const ir::Kernel k = kernel_of("kernels/layernorm.py", {{"BN", 512}});
    const std::vector<std::int64_t> sizes = {2, 16};
    const auto tensors = random_inputs(k, sizes, 3, false);
    const double eps = 0.5;
    const auto outputs = reference(k.computes, sizes, {eps}, tensors);
    ASSERT_TRUE(outputs.has_value());
    ASSERT_EQ(outputs->size(), 1u);
    for (std::int64_t m = 0; m < 2; ++m) {
        double mean = 0, variance = 0;
        for (std::int64_t n = 0; n < 16; ++n) mean += tensors[0].get({m, n}) / 16;
        for (std::int64_t n = 0; n < 16; ++n) variance += std::pow(tensors[0].get({m, n}) - mean, 2) / 16;
        for (std::int64_t n = 0; n < 16; ++n) {
            const double expected = (tensors[0].get({m, n}) - mean) / std::sqrt(variance + eps) * tensors[1].get({n}) + tensors[2].get({n});
            EXPECT_NEAR((*outputs)[0].values[static_cast<std::size_t>(m * 16 + n)], expected, 1e-12) << m << ", " << n;
        }
    }
}

TEST(Reference, RefusesWhatIsTooLarge) {
    const ir::Kernel k = kernel_of("kernels/vector_add.py");
    const auto tensors = random_inputs(k, {100}, 1, false);
    ReferenceOptions options;
    options.operation_limit = 50;
    EXPECT_FALSE(reference(k.computes, {100}, {}, tensors, options).has_value());
}

TEST(Compare, MeasuresAgainstTheOutputsOwnScale) {
    const ir::Kernel k = kernel_of("kernels/vector_add.py");
    auto tensors = random_inputs(k, {4}, 1, false);
    const auto outputs = reference(k.computes, {4}, {}, tensors);
    ASSERT_TRUE(outputs.has_value());
    for (std::int64_t i = 0; i < 4; ++i) tensors[2].set({i}, (*outputs)[0].values[static_cast<std::size_t>(i)]);
    EXPECT_LT(compare((*outputs)[0], tensors[2]).worst, 1e-6);
    tensors[2].set({3}, 100);
    const ErrorSummary error = compare((*outputs)[0], tensors[2]);
    EXPECT_GT(error.worst, 1);
    EXPECT_EQ(error.where, (std::vector<std::int64_t>{3}));
    tensors[2].set({3}, std::nan(""));
    EXPECT_TRUE(compare((*outputs)[0], tensors[2]).has_nan);
}

// The error allowed is small enough to see one wrong term of a sum.
TEST(Tolerance, SeesOneMissingStepOfAProduct) {
    ir::Kernel k = kernel_of("tests/verify/bugs/wrong_k_offset.py");
    EXPECT_TRUE(run_trial(k, named_sizes(k, {{"M", 64}, {"N", 64}, {"K", 512}}), {}).failed());
}

}  // namespace emulator_test
}  // namespace tw::emulate
