// Folds in forms of their own: loops within loops, elements counted by the lanes that hold them, short sums written out, one number as
// output.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace folds_test {

using namespace testing_kernels;

// A kernel of a text, and the same with one part of its own text exchanged.
struct Text {
    std::string text, kernel;
    Text with(const std::string& from, const std::string& to) const {
        const auto defined = text.find("def " + kernel + "(");
        const auto start = text.rfind("@tw.kernel", defined), at = text.find(from, start);
        EXPECT_LT(at, text.find("@tw.kernel", defined)) << from;
        return {at == std::string::npos ? text : std::string(text).replace(at, from.size(), to), kernel};
    }
    bool proved() const {
        SourceMap sources;
        DiagnosticSink sink;
        const auto module = lower::compile_text(sources, "kernel.py", text, {}, sink);
        EXPECT_TRUE(module) << render_text(sink, sources);
        diagnose::CheckOptions options;
        options.search = false;
        for (const ir::Kernel& k : module ? module->kernels : std::vector<ir::Kernel>{}) {
            if (k.name == kernel) return diagnose::check(k, options).proved();
        }
        ADD_FAILURE() << "no kernel " << kernel;
        return false;
    }
};

Text example(const std::string& file, const std::string& kernel) { return {read_text(repository("examples/" + file)), kernel}; }

const Text kAll = example("losses.py", "mse");

TEST(FoldForms, LoopsWithinLoopsIntoOneNumber) {
    EXPECT_TRUE(kAll.proved());
    EXPECT_TRUE(kAll.with("(tw.f32(M) * tw.f32(N))", "tw.f32(M * N)").proved());
}

TEST(FoldForms, LoopsWithinLoopsThatLeaveSomethingOut) {
    EXPECT_FALSE(kAll.with("range(tw.cdiv(M, 4))", "range(M // 4)").proved());
    EXPECT_FALSE(kAll.with("range(tw.cdiv(N, 256))", "range(N // 256)").proved());
    EXPECT_FALSE(kAll.with("range(tw.cdiv(N, 256))", "range(1, tw.cdiv(N, 256))").proved());
    EXPECT_FALSE(kAll.with("tw.load(Y[i * 4 : i * 4 + 4", "tw.load(Y[c * 4 : c * 4 + 4").proved());
    EXPECT_FALSE(kAll.with("(tw.f32(M) * tw.f32(N))", "(tw.f32(M) * tw.f32(M))").proved());
    EXPECT_FALSE(kAll.with("tw.grid(1)", "tw.grid(2)").proved());  // written twice
    EXPECT_FALSE(kAll.with("            s += d * d", "            s = d * d").proved());
}

const Text kGroups = example("norms.py", "group_norm");

TEST(FoldForms, ElementsAreCountedByTheLanesThatHoldThem) {
    EXPECT_TRUE(kGroups.proved());
    EXPECT_TRUE(kGroups.with("count = 8.0 * tw.f32(N)", "count = tw.f32(8 * N)").proved());
}

TEST(FoldForms, LanesThatCountOtherElements) {
    EXPECT_FALSE(kGroups.with("c * 256 < N)", "c * 256 <= N)").proved());
    EXPECT_FALSE(kGroups.with("c * 256 < N)", "c * 256 + 1 < N)").proved());
    EXPECT_FALSE(kGroups.with("c * 256 < N)", "c * 256 < N + 256)").proved());
    EXPECT_FALSE(kGroups.with("count = 8.0 *", "count = 4.0 *").proved());
}

const Text kChunks{R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="V[m] = mean(n, (X[m, n] - mean(k, X[m, k])) ** 2)", threads=128)
def variances(X: tw.Tensor(f32, M, N), V: tw.Tensor(f32, M)):
    tw.assume(1 <= N and N <= 2048)
    m = tw.grid(M)
    first = tw.zeros(f32, (512,))
    for k in tw.range(4):
        first = first + tw.load(X[m, k * 512 : k * 512 + 512], fill=0.0)
    mu = tw.sum(first, axis=0) / N
    second = tw.zeros(f32, (512,))
    for k in tw.range(4):
        x = tw.load(X[m, k * 512 : k * 512 + 512], fill=0.0)
        d = tw.where(tw.coord(x, 0) < N - k * 512, x - mu, 0.0)
        second = second + d * d
    tw.store(V[m], tw.sum(second, axis=0) / N)
)py",
                   "variances"};

TEST(FoldForms, ElementsAreCountedByTheChunksThatHoldThem) { EXPECT_TRUE(kChunks.proved()); }

TEST(FoldForms, ChunksThatCountOtherElements) {
    EXPECT_FALSE(kChunks.with("< N - k * 512", "< N + 1 - k * 512").proved());
    EXPECT_FALSE(kChunks.with("< N - k * 512", "< N - k * 256").proved());
    EXPECT_FALSE(kChunks.with("tw.coord(x, 0) < N", "tw.coord(x, 0) <= N").proved());
    EXPECT_FALSE(kChunks.with("for k in tw.range(4):\n        x =", "for k in tw.range(3):\n        x =").proved());
}

const Text kWindow = example("windows.py", "conv1d");

TEST(FoldForms, AShortSumIsTheSameWrittenOut) { EXPECT_TRUE(kWindow.proved()); }

TEST(FoldForms, AShortSumIsNotAnotherWrittenOut) {
    EXPECT_FALSE(kWindow.with("tw.load(W[k])", "tw.load(W[2 - k])").proved());
    EXPECT_FALSE(kWindow.with("tw.unroll(3)", "tw.unroll(2)").proved());
    EXPECT_FALSE(kWindow.with("+ k : i * 128 + k + 128]", ": i * 128 + 128]").proved());
}

const Text kPadded = example("windows.py", "same_conv");

TEST(FoldForms, AWindowThatAnEdgeCuts) {
    EXPECT_TRUE(kPadded.proved());
    EXPECT_FALSE(kPadded.with("i + p - 1 : i + p,", "i + p : i + p + 1,").proved());
    EXPECT_FALSE(kPadded.with("tw.load(W[p, q])", "tw.load(W[q, p])").proved());
    EXPECT_FALSE(kPadded.with("fill=0.0", "fill=1.0").proved());
    const Text causal = example("windows.py", "causal_conv");
    EXPECT_TRUE(causal.proved());
    EXPECT_FALSE(causal.with("tw.unroll(4)", "tw.unroll(3)").proved());
    EXPECT_FALSE(causal.with("min(t + 1, 4)", "min(t, 4)").proved());
}

const Text kAdded{R"py(import tilewright as tw
from tilewright import f32

N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="L = sum(n, X[n])", threads=256)
def added(X: tw.Tensor(f32, N), L: tw.Tensor(f32, zeroed=True)):
    i = tw.grid(tw.cdiv(N, 1024))
    tw.atomic_add(L, tw.sum(tw.load(X[i * 1024 : i * 1024 + 1024], fill=0.0), axis=0))
)py",
                  "added"};

TEST(FoldForms, BlocksAddToOneNumber) {
    EXPECT_TRUE(kAdded.proved());
    EXPECT_FALSE(kAdded.with("tw.cdiv(N, 1024)", "N // 1024").proved());
    EXPECT_FALSE(kAdded.with("X[i * 1024 : i * 1024 + 1024]", "X[i * 512 : i * 512 + 1024]").proved());
    EXPECT_FALSE(kAdded.with("tw.grid(tw.cdiv(N, 1024))", "tw.grid(tw.cdiv(N, 1024) + 1) % tw.cdiv(N, 1024)").proved());
}

const Text kBefore = example("scans.py", "exclusive_cumsum"), kFrom = example("scans.py", "reverse_cumsum");

TEST(FoldForms, ASumLessItsEndIsOneOverTheRest) {
    EXPECT_TRUE(kBefore.proved());
    EXPECT_TRUE(kFrom.proved());
    EXPECT_TRUE(kFrom.with("k in n:N", "k in n + 1:N").with("- c + x", "- c").proved());
    EXPECT_FALSE(kBefore.with(" - x)", ")").proved());
    EXPECT_FALSE(kBefore.with("0:n", "1:n").proved());
    EXPECT_FALSE(kFrom.with("- c + x", "- c").proved());
    EXPECT_FALSE(kFrom.with("k in n:N", "k in n:N - 1").proved());
}

const Text kBlocks{R"py(import tilewright as tw
from tilewright import f32

B, H, W, N = tw.sizes("B H W N")

@tw.kernel(target="sm_80", computes="Y[b, h, w, n] = X[b, h, w, n] * 2", threads=128)
def taken_apart(X: tw.Tensor(f32, B, H, W, N), Y: tw.Tensor(f32, B, H, W, N)):
    j, t = tw.grid(tw.cdiv(N, 128), B * H * W)
    b = t // (H * W)
    h = t // W % H
    w = t % W
    tw.store(Y[b, h, w, j * 128], tw.load(X[b, h, w, j * 128 : j * 128 + 128], fill=0.0) * 2.0)
)py",
                   "taken_apart"};

TEST(FoldForms, ABlockIndexIsTheNumberOfItsDigits) {
    EXPECT_TRUE(kBlocks.proved());
    EXPECT_TRUE(kBlocks.with("h = t // W % H", "h = t % (H * W) // W").proved());
    EXPECT_TRUE(kBlocks
                    .with("j, t = tw.grid(tw.cdiv(N, 128), B * H * W)",
                          "u = tw.grid(B * H * W * tw.cdiv(N, 128))\n    j = u % tw.cdiv(N, 128)\n    t = u // tw.cdiv(N, 128)")
                    .proved());
    EXPECT_FALSE(kBlocks.with("t // (H * W)", "t // W").proved());
    EXPECT_FALSE(kBlocks.with("h = t // W % H", "h = t // H % W").proved());
    EXPECT_FALSE(kBlocks.with("t % W", "t % H").proved());
    EXPECT_FALSE(kBlocks.with("B * H * W", "B * H").proved());
    EXPECT_FALSE(kBlocks.with("B * H * W)", "B * H * W + 1)").proved());
}

}  // namespace folds_test
}  // namespace tw::verify
