// Folds in forms of their own: loops within loops, elements counted by the lanes that hold them, short sums written out, one number as output.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

// The kernel, and the same with one part of its text exchanged.
struct Text {
    std::string text;
    Text with(const std::string& from, const std::string& to) const {
        const auto at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return {at == std::string::npos ? text : std::string(text).replace(at, from.size(), to)};
    }
    bool proved() const {
        diagnose::CheckOptions options;
        options.search = false;
        return diagnose::check(kernel_of_text(text), options).proved();
    }
};

const Text kAll{R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="L = sum(m, sum(n, (X[m, n] - Y[m, n]) * (X[m, n] - Y[m, n]))) / (f32(M) * f32(N))", threads=256)
def squared_error(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), L: tw.Tensor(f32)):
    tw.grid(1)
    s = tw.zeros(f32, (4, 256))
    for i in tw.range(tw.cdiv(M, 4)):
        for c in tw.range(tw.cdiv(N, 256)):
            d = tw.load(X[i * 4 : i * 4 + 4, c * 256 : c * 256 + 256], fill=0.0) - tw.load(Y[i * 4 : i * 4 + 4, c * 256 : c * 256 + 256], fill=0.0)
            s += d * d
    tw.store(L, tw.sum(tw.sum(s, axis=1), axis=0) / (tw.f32(M) * tw.f32(N)))
)py"};

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
    EXPECT_FALSE(kAll.with("tw.grid(1)", "tw.grid(2)").proved());   // written twice
    EXPECT_FALSE(kAll.with("            s += d * d", "            s = d * d").proved());
}

const Text kGroups{R"py(import tilewright as tw
from tilewright import f32

B, G, N = tw.sizes("B G N")

@tw.kernel(target="sm_80", computes="""
    let mu[b, g] = sum(c in 0:8, sum(n, X[b, g, c, n])) / (8 * f32(N))
    let va[b, g] = sum(c in 0:8, sum(n, (X[b, g, c, n] - mu[b, g]) * (X[b, g, c, n] - mu[b, g]))) / (8 * f32(N))
    Y[b, g, c, n] = (X[b, g, c, n] - mu[b, g]) * rsqrt(va[b, g] + 1e-5)""", threads=256)
def group_norm(X: tw.Tensor(f32, B, G, 8, N), Y: tw.Tensor(f32, B, G, 8, N)):
    g, b = tw.grid(G, B)
    s = tw.zeros(f32, (8, 256))
    for c in tw.range(tw.cdiv(N, 256)):
        s += tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
    count = 8.0 * tw.f32(N)
    mu = tw.sum(tw.sum(s, axis=1), axis=0) / count
    q = tw.zeros(f32, (8, 256))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
        d = tw.where((tw.arange(256) + c * 256 < N)[None, :], x - mu, 0.0)
        q += d * d
    r = tw.rsqrt(tw.sum(tw.sum(q, axis=1), axis=0) / count + 1e-5)
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
        tw.store(Y[b, g, 0, c * 256], (x - mu) * r)
)py"};

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
)py"};

TEST(FoldForms, ElementsAreCountedByTheChunksThatHoldThem) { EXPECT_TRUE(kChunks.proved()); }

TEST(FoldForms, ChunksThatCountOtherElements) {
    EXPECT_FALSE(kChunks.with("< N - k * 512", "< N + 1 - k * 512").proved());
    EXPECT_FALSE(kChunks.with("< N - k * 512", "< N - k * 256").proved());
    EXPECT_FALSE(kChunks.with("tw.coord(x, 0) < N", "tw.coord(x, 0) <= N").proved());
    EXPECT_FALSE(kChunks.with("for k in tw.range(4):\n        x =", "for k in tw.range(3):\n        x =").proved());
}

const Text kWindow{R"py(import tilewright as tw
from tilewright import f32

B, D = tw.sizes("B D")

@tw.kernel(target="sm_80", computes="Y[b, d] = sum(k in 0:3, X[b, d + k] * W[k])", threads=128)
def window(X: tw.Tensor(f32, B, D + 2), W: tw.Tensor(f32, 3), Y: tw.Tensor(f32, B, D)):
    i, b = tw.grid(tw.cdiv(D, 128), B)
    acc = tw.zeros(f32, (128,))
    for k in tw.unroll(3):
        acc += tw.load(X[b, i * 128 + k : i * 128 + k + 128], fill=0.0) * tw.load(W[k])
    tw.store(Y[b, i * 128], acc)
)py"};

TEST(FoldForms, AShortSumIsTheSameWrittenOut) { EXPECT_TRUE(kWindow.proved()); }

TEST(FoldForms, AShortSumIsNotAnotherWrittenOut) {
    EXPECT_FALSE(kWindow.with("tw.load(W[k])", "tw.load(W[2 - k])").proved());
    EXPECT_FALSE(kWindow.with("tw.unroll(3)", "tw.unroll(2)").proved());
    EXPECT_FALSE(kWindow.with("+ k : i * 128 + k + 128]", ": i * 128 + 128]").proved());
}

const Text kPadded{R"py(import tilewright as tw
from tilewright import f32

B, M, N = tw.sizes("B M N")


@tw.kernel(target="sm_80", computes="""Y[b, i, j] = sum(p in 0:3, sum(q in 0:3,
    where(i + p - 1 >= 0 and i + p - 1 < M and j + q - 1 >= 0 and j + q - 1 < N, X[b, i + p - 1, j + q - 1], 0) * W[p, q]))""", threads=128)
def padded(X: tw.Tensor(f32, B, M, N), W: tw.Tensor(f32, 3, 3), Y: tw.Tensor(f32, B, M, N)):
    j, i, b = tw.grid(tw.cdiv(N, 128), M, B)
    acc = tw.zeros(f32, (1, 128))
    for p in tw.unroll(3):
        for q in tw.unroll(3):
            acc += tw.load(X[b, i + p - 1 : i + p, j * 128 + q - 1 : j * 128 + q + 127], fill=0.0) * tw.load(W[p, q])
    tw.store(Y[b, i : i + 1, j * 128 : j * 128 + 128], acc)
)py"};

TEST(FoldForms, AWindowThatAnEdgeCuts) {
    EXPECT_TRUE(kPadded.proved());
    EXPECT_FALSE(kPadded.with("i + p - 1 : i + p,", "i + p : i + p + 1,").proved());
    EXPECT_FALSE(kPadded.with("tw.load(W[p, q])", "tw.load(W[q, p])").proved());
    EXPECT_FALSE(kPadded.with("fill=0.0", "fill=1.0").proved());
    const Text causal{R"py(import tilewright as tw
from tilewright import f32

B, T = tw.sizes("B T")


@tw.kernel(target="sm_80", computes="Y[b, t] = sum(k in 0:min(t + 1, 4), X[b, t - k] * W[k])", threads=128)
def causal(X: tw.Tensor(f32, B, T), W: tw.Tensor(f32, 4), Y: tw.Tensor(f32, B, T)):
    i, b = tw.grid(tw.cdiv(T, 128), B)
    acc = tw.zeros(f32, (128,))
    for k in tw.unroll(4):
        acc += tw.load(X[b, i * 128 - k : i * 128 - k + 128], fill=0.0) * tw.load(W[k])
    tw.store(Y[b, i * 128], acc)
)py"};
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
)py"};

TEST(FoldForms, BlocksAddToOneNumber) {
    EXPECT_TRUE(kAdded.proved());
    EXPECT_FALSE(kAdded.with("tw.cdiv(N, 1024)", "N // 1024").proved());
    EXPECT_FALSE(kAdded.with("X[i * 1024 : i * 1024 + 1024]", "X[i * 512 : i * 512 + 1024]").proved());
    EXPECT_FALSE(kAdded.with("tw.grid(tw.cdiv(N, 1024))", "tw.grid(tw.cdiv(N, 1024) + 1) % tw.cdiv(N, 1024)").proved());
}

const Text kBefore{R"py(import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", computes="Y[m, n] = sum(k in 0:n, X[m, k])", threads=128)
def before(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    c = tw.cumsum(x, axis=0)
    tw.store(Y[m, 0:1024], c - x)
)py"};

TEST(FoldForms, ASumLessItsEndIsOneOverTheRest) {
    EXPECT_TRUE(kBefore.proved());
    const Text behind = kBefore.with("k in 0:n", "k in n:N").with("c - x", "tw.sum(x, axis=0) - c + x");
    EXPECT_TRUE(behind.proved());
    EXPECT_TRUE(behind.with("k in n:N", "k in n + 1:N").with(" - c + x", " - c").proved());
    EXPECT_FALSE(kBefore.with("c - x", "c").proved());
    EXPECT_FALSE(kBefore.with("0:n", "1:n").proved());
    EXPECT_FALSE(behind.with(" - c + x", " - c").proved());
    EXPECT_FALSE(behind.with("k in n:N", "k in n:N - 1").proved());
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
)py"};

TEST(FoldForms, ABlockIndexIsTheNumberOfItsDigits) {
    EXPECT_TRUE(kBlocks.proved());
    EXPECT_TRUE(kBlocks.with("h = t // W % H", "h = t % (H * W) // W").proved());
    EXPECT_TRUE(kBlocks.with("j, t = tw.grid(tw.cdiv(N, 128), B * H * W)", "u = tw.grid(B * H * W * tw.cdiv(N, 128))\n    j = u % tw.cdiv(N, 128)\n    t = u // tw.cdiv(N, 128)").proved());
    EXPECT_FALSE(kBlocks.with("t // (H * W)", "t // W").proved());
    EXPECT_FALSE(kBlocks.with("h = t // W % H", "h = t // H % W").proved());
    EXPECT_FALSE(kBlocks.with("t % W", "t % H").proved());
    EXPECT_FALSE(kBlocks.with("B * H * W", "B * H").proved());
    EXPECT_FALSE(kBlocks.with("B * H * W)", "B * H * W + 1)").proved());
}

}  // namespace
}  // namespace tw::verify
