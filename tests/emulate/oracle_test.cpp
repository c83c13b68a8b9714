// The emulator's judge: what is poison, what is a right NaN, and which data a trial gives.
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "diagnose/counterexample.h"
#include "diagnose/failing_trial.h"
#include "emulate/index_use.h"
#include "emulate/poison.h"
#include "emulate/trial.h"
#include "verify/kernel_test_support.h"

namespace tw::emulate {
namespace oracle_test {

using namespace testing_kernels;

// One kernel over X[N] and Y[N]; `value` is stored for the tile x.
ir::Kernel kernel(const std::string& computes, const std::string& value, const std::string& dtype = "f32", const std::string& out = "f32",
                  const std::string& fill = "0.0") {
    return kernel_of_text(fmt::format(R"py(import tilewright as tw
from tilewright import bf16, f32, i8, i32, i64, u8, u32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="{}", threads=32)
def k(X: tw.Tensor({}, N), Y: tw.Tensor({}, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    x = tw.load(X[i : i + 32], fill={})
    tw.store(Y[i : i + 32], {})
)py",
                                      computes, dtype, out, fill, value));
}

TEST(Poison, ThatIsLeftIsNeverRight) {
    // The reference is NaN everywhere, and nothing is written: NaN against NaN.
    ir::Kernel k = kernel("Y[n] = sqrt(-1.0 - X[n] * X[n])", "x");
    std::erase_if(k.body, [](const ir::Stmt& s) { return std::holds_alternative<ir::StoreGlobal>(s.op); });
    const Trial nothing = run_trial(k, {40}, {});
    EXPECT_TRUE(nothing.failed());
    ASSERT_FALSE(nothing.outputs.empty());
    EXPECT_TRUE(nothing.outputs[0].unwritten);
}

TEST(Poison, ANaNThatTheReferenceHasTooIsRight) {
    const ir::Kernel k = kernel("Y[n] = sqrt(-1.0 - X[n] * X[n])", "tw.sqrt(-1.0 - x * x)");
    EXPECT_FALSE(run_trial(k, {40}, {}).failed());
}

TEST(Poison, ANaNWhereTheReferenceHasNoneIsWrong) {
    const Trial t = run_trial(kernel("Y[n] = X[n] * X[n]", "tw.sqrt(-1.0 - x * x)"), {40}, {});
    EXPECT_TRUE(t.failed());
}

TEST(Poison, AFiniteValueWhereTheReferenceIsNaNIsWrong) {
    EXPECT_TRUE(run_trial(kernel("Y[n] = sqrt(-1.0 - X[n] * X[n])", "x"), {40}, {}).failed());
}

TEST(Poison, OfAnIntegerIsNoUsualResult) {
    ir::Kernel k = kernel("Y[n] = -1", "x", "i32", "i32", "0");
    std::erase_if(k.body, [](const ir::Stmt& s) { return std::holds_alternative<ir::StoreGlobal>(s.op); });
    EXPECT_TRUE(run_trial(k, {40}, {}).failed()) << "bytes of ones are -1";
}

// Nothing happens to Y, which starts as what the equation reads: with NaN there, NaN was right.
TEST(InPlace, OutputsThatAreReadStartWithData) {
    const ir::Kernel unchanged = kernel_of_text(R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = Y[n] + X[n]", threads=32)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(Y[i : i + 32], tw.load(Y[i : i + 32], fill=0.0))
)py");
    EXPECT_TRUE(run_trial(unchanged, {40}, {}).failed());
    const ir::Kernel added = kernel_of_text(R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = Y[n] + X[n]", threads=32)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(Y[i : i + 32], tw.load(Y[i : i + 32], fill=0.0) + tw.load(X[i : i + 32], fill=0.0))
)py");
    const Trial right = run_trial(added, {40}, {});
    EXPECT_FALSE(right.failed()) << right.summary(added);
}

TEST(Data, OfIntegersIsVariedAndOfBothSigns) {
    for (const char* type : {"i32", "i64", "i8"}) {
        const ir::Kernel k = kernel(fmt::format("Y[n] = f32(X[n])"), "x.to(f32)", type, "f32", "0");
        const auto tensors = random_inputs(k, {200}, 3, false);
        std::set<double> seen;
        for (std::int64_t n = 0; n < 200; ++n) seen.insert(tensors[0].get({n}));
        EXPECT_GT(seen.size(), 40u) << type;
        EXPECT_LT(*seen.begin(), -20) << type;
        EXPECT_GT(*seen.rbegin(), 20) << type;
    }
}

TEST(Data, OfIntegersShowsAKernelThatForgetsThem) {
    // With zeros for data, a kernel that does not read X was right.
    EXPECT_TRUE(run_trial(kernel("Y[n] = X[n]", "tw.full(i32, (32,), 0)", "i32", "i32", "0"), {40}, {}).failed());
    EXPECT_TRUE(run_trial(kernel("Y[n] = abs(f32(X[n]))", "x.to(f32)", "i32", "f32", "0"), {40}, {}).failed());
    EXPECT_FALSE(run_trial(kernel("Y[n] = X[n]", "x", "i32", "i32", "0"), {40}, {}).failed());
}

const char* gather = R"py(import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[I[m], n]", threads=32)
def k(I: tw.Tensor(i32, M), X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m, n = tw.grid(tw.cdiv(M, 8), tw.cdiv(N, 32))
    rows = tw.load(I[m * 8 : m * 8 + 8], fill=0)
    tw.store(Y[m * 8, n * 32], tw.load(X[%ROWS%, n * 32 : n * 32 + 32], fill=0.0))
)py";

ir::Kernel gathered(const std::string& rows) {
    std::string text = gather;
    text.replace(text.find("%ROWS%"), 6, rows);
    return kernel_of_text(text);
}

TEST(Data, OfIndicesIsPlacesThatThereAre) {
    const ir::Kernel k = gathered("rows");
    EXPECT_EQ(index_tensors(k.tensors, k.computes, {&k}), (std::vector<bool>{true, false, false}));
    EXPECT_EQ(indexed_extents(k.tensors, k.computes, {9, 40})[0], 9);
    const auto tensors = random_inputs(k, {9, 40}, 2, false);
    std::set<double> seen;
    for (std::int64_t m = 0; m < 9; ++m) seen.insert(tensors[0].get({m}));
    EXPECT_GT(seen.size(), 2u);
    EXPECT_GE(*seen.begin(), 0);
    EXPECT_LT(*seen.rbegin(), 9);
    const Trial right = run_trial(k, {9, 40}, {});
    EXPECT_FALSE(right.failed()) << right.summary(k);
}

TEST(Data, OfIndicesShowsAGatherThatIsNone) {
    const ir::Kernel k = gathered("m * 8 : m * 8 + 8");
    EXPECT_TRUE(run_trial(k, {9, 40}, {}).failed());
    diagnose::SearchOptions options;
    options.seconds = 5;
    EXPECT_TRUE(diagnose::find_counterexample(k, options).has_value()) << "what the equation reads is known: nothing is open";
}

// A search chooses its data itself: where the equation overflows or cancels on them, the kernel is not to blame.
TEST(Search, DoesNotBlameAKernelForDataThatOverflow) {
    const ir::Kernel k = kernel("Y[n] = exp(90.0 + 100.0 * X[n] * X[n])", "tw.exp(90.0 + 100.0 * x * x)");
    EXPECT_EQ(diagnose::failing_trial(k, {}), "");
    const ir::Kernel quotient =
        kernel("Y[n] = exp(100.0 * X[n] + 60.0) / exp(100.0 * X[n] + 59.0)", "tw.exp(100.0 * x + 60.0) / tw.exp(100.0 * x + 59.0)");
    EXPECT_EQ(diagnose::failing_trial(quotient, {}), "");
}

TEST(Search, DoesNotBlameAKernelForADenominatorThatCancels) {
    const ir::Kernel k = kernel_of_text(R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = 1.0 / (sum(n in 0:N, X[m, n]) - sum(n in 0:N, X[m, N - 1 - n]))", threads=32)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    a = tw.zeros(f32, (32,))
    b = tw.zeros(f32, (32,))
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[m, c * 32 : c * 32 + 32], fill=0.0)
        a = a + x
        b = b + x * 1.0000001
    tw.store(Y[m], 1.0 / (tw.sum(a, axis=0) - tw.sum(b, axis=0)))
)py");
    EXPECT_EQ(diagnose::failing_trial(k, {}), "");
}

// The reference makes no cast that decides nothing; where the rest cancels, the cast's own rounding is all that is left.
TEST(Search, DoesNotBlameAKernelForACastThatTheEquationStates) {
    const std::string stated = "Y[n] = 0.01 - X[n] + f32(bf16(X[n]))";
    EXPECT_EQ(diagnose::failing_trial(kernel(stated, "0.01 - x + x.to(bf16).to(f32)"), {}), "");
    EXPECT_EQ(diagnose::failing_trial(kernel(stated, "0.01 + x.to(bf16).to(f32) - x"), {}), "");
    EXPECT_NE(diagnose::failing_trial(kernel(stated, "0.01 - x + (x * 1.02).to(bf16).to(f32)"), {}), "") << "more than a rounding";
}

TEST(Search, StillSeesWhatIsWrongBesideOverflow) {
    EXPECT_NE(diagnose::failing_trial(kernel("Y[n] = exp(90.0 + X[n])", "tw.exp(x) * 2.0"), {}), "");
    EXPECT_NE(diagnose::failing_trial(kernel("Y[n] = X[n] / (X[n] * X[n] + 0.5)", "x / (x * x + 0.25)"), {}), "");
    EXPECT_NE(diagnose::failing_trial(kernel("Y[n] = where(X[n] < 0.0, -inf, X[n])", "x"), {}), "") << "an infinity that is meant";
}

TEST(Places, BeyondTheLimitTakeNoPartInAnArgmax) {
    // All elements are negative, and the fill is larger than each of them.
    const ir::Kernel k = kernel_of_text(R"py(import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = argmax(n, -1.0 - X[m, n] * X[m, n])", threads=32)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(i32, M)):
    tw.assume(N <= 64)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:64], fill=0.0)
    tw.store(Y[m : m + 4], tw.argmax(-1.0 - x * x, axis=1, limit=N))
)py");
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{1, 1}, {5, 40}, {4, 64}}) {
        const Trial t = run_trial(k, sizes, {});
        EXPECT_FALSE(t.failed()) << t.summary(k);
    }
}

}  // namespace oracle_test
}  // namespace tw::emulate
