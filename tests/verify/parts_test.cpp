// Outputs written in part: equations with ranges that begin elsewhere, and several equations for one tensor.
#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace parts_test {

using namespace testing_kernels;

std::string kernel(const std::string& computes, const std::string& body, const std::string& dims = "N") {
    return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"" +
           computes + "\", threads=64)\ndef part(X: tw.Tensor(f32, " + dims + "), Y: tw.Tensor(f32, " + dims + ")):\n" + body;
}

diagnose::CheckResult checked(const std::string& text) {
    diagnose::CheckOptions options;
    options.search_seconds = 5;
    return diagnose::check(kernel_of_text(text), options);
}

std::string open_obligations(const diagnose::CheckResult& r) {
    std::string s;
    for (const Obligation& o : r.obligations) {
        if (o.status != Status::proved) s += std::string(name_of(o.status)) + " " + o.kind + ": " + o.reason + "\n";
    }
    return s;
}

const std::string tail =  // Y[n] for n >= 4
    "    tw.assume(N >= 4)\n"
    "    i = tw.grid(tw.cdiv(N - 4, 64)) * 64 + 4\n"
    "    tw.store(Y[i : i + 64], tw.load(X[i : i + 64], fill=0.0) * 2.0)\n";

TEST(Parts, ARangeThatBeginsElsewhereIsProved) {
    const auto r = checked(kernel("Y[n in 4:N] = X[n] * 2", tail));
    EXPECT_TRUE(r.proved()) << open_obligations(r);
}

TEST(Parts, WritingMoreThanTheRangeIsWrong) {
    const std::string body =
        "    i = tw.grid(tw.cdiv(N, 64)) * 64\n"
        "    tw.store(Y[i : i + 64], tw.load(X[i : i + 64], fill=0.0) * 2.0)\n";
    const auto r = checked(kernel("Y[n in 4:N] = X[n] * 2", "    tw.assume(N >= 4)\n" + body));
    EXPECT_FALSE(r.proved());
    ASSERT_TRUE(r.violated()) << open_obligations(r);
    EXPECT_TRUE(r.counterexample->confirmed);
    EXPECT_EQ(r.counterexample->element, "Y[0]");
    EXPECT_TRUE(checked(kernel("Y[n] = X[n] * 2", body)).proved());
}

TEST(Parts, WritingLessThanTheRangeIsWrong) {
    std::string less = tail;
    less.replace(less.find("64 + 4\n"), 7, "64 + 5\n");
    const auto r = checked(kernel("Y[n in 4:N] = X[n] * 2", less));
    ASSERT_TRUE(r.violated()) << open_obligations(r);
    EXPECT_TRUE(r.counterexample->confirmed);
}

TEST(Parts, TwoEquationsShareATensor) {
    const std::string body =
        "    tw.assume(N > 64)\n"
        "    b = tw.grid(tw.cdiv(N - 64, 64))\n"
        "    tw.store(Y[b * 64 + 64 : b * 64 + 128], tw.load(X[b * 64 + 64 : b * 64 + 128], fill=0.0))\n";
    const std::string first =
        "    if b == 0:\n"
        "        tw.store(Y[0:64], tw.zeros(f32, (64,)))\n";
    const auto both = checked(kernel("Y[n in 0:64] = 0; Y[n in 64:N] = X[n]", body + first));
    EXPECT_TRUE(both.proved()) << open_obligations(both);
    std::string none = body + first;
    none.replace(none.find("N > 64"), 6, "N >= 64");
    EXPECT_TRUE(checked(kernel("Y[n in 0:64] = 0; Y[n in 64:N] = X[n]", none)).violated())
        << "N = 64 has no block, and nothing writes the first part";
    EXPECT_FALSE(checked(kernel("Y[n in 0:64] = 0; Y[n in 64:N] = X[n]", body)).proved()) << "the first part is never written";
    EXPECT_FALSE(checked(kernel("Y[n in 0:65] = 0; Y[n in 64:N] = X[n]", body + first)).proved()) << "the parts meet";
}

TEST(Parts, BoxesOfTwoDimensionsAndConstantIndices) {
    const std::string body =
        "    tw.assume(M >= 1)\n"
        "    n = tw.grid(tw.cdiv(N, 64)) * 64\n"
        "    tw.store(Y[M - 1, n : n + 64], tw.load(X[0, n : n + 64], fill=0.0))\n";
    const auto last = checked(kernel("Y[m in M - 1:M, n] = X[m - M + 1, n]", body, "M, N"));
    EXPECT_TRUE(last.proved()) << open_obligations(last);
    std::string constant = body;
    constant.replace(constant.find("Y[M - 1,"), 8, "Y[0,");
    const auto first = checked(kernel("Y[0, n] = X[0, n]", constant, "M, N"));
    EXPECT_TRUE(first.proved()) << open_obligations(first);
}

TEST(Folds, ASumCutWhereItMayHaveEnded) {
    const auto r = checked(
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"S[m] "
        "= sum(n, X[m, n])\", threads=128)\n"
        "def two_halves(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n"
        "    tw.assume(N <= 1024)\n"
        "    m = tw.grid(M)\n"
        "    low = tw.sum(tw.load(X[m, 0:512], fill=0.0), axis=0)\n"
        "    tw.store(S[m], low + tw.sum(tw.load(X[m, 512:1024], fill=0.0), axis=0))\n");
    EXPECT_TRUE(r.proved()) << open_obligations(r);
}

// A row in three pieces: up to the first multiple of 16 bytes, whole vectors from there on, and what is left.
std::string pieces(const std::string& changed = "", const std::string& to = "") {
    std::string body =
        "    tw.assume(4 <= N and N - 3 <= 16)\n"
        "    m = tw.grid(M)\n"
        "    h = (4 - m % 4 * (N % 4) % 4) % 4\n"
        "    t = h + (N - h) // 4 * 4\n"
        "    tw.store(Y[m, h : h + 16], tw.load(X[m, h : h + 16], fill=0.0, limit=(t,)), limit=(t,))\n"
        "    tw.store(Y[m, 0:4], tw.load(X[m, 0:4], fill=0.0, limit=(h,)), limit=(h,))\n"
        "    tw.store(Y[m, t : t + 4], tw.load(X[m, t : t + 4], fill=0.0))\n";
    if (!changed.empty()) body.replace(body.find(changed), changed.size(), to);
    return kernel("Y[m, n] = X[m, n]", body, "M, N");
}

TEST(Pieces, OfARowAreProved) {
    const auto r = checked(pieces());
    EXPECT_TRUE(r.proved()) << open_obligations(r);
}

TEST(Pieces, OfWhichOneIsMissingOrTooLongAreWrong) {
    const std::pair<const char*, const char*> wrong[] = {
        {"    tw.store(Y[m, t : t + 4], tw.load(X[m, t : t + 4], fill=0.0))\n", ""},  // no tail
        {"limit=(h,)), limit=(h,))", "limit=(h,)), limit=(h - 1,))"},                 // the head ends early
        {"limit=(h,)), limit=(h,))", "limit=(h + 1,)), limit=(h + 1,))"},             // it reaches into the vectors
        {"Y[m, t : t + 4], tw.load(X[m, t : t + 4]", "Y[m, t - 1 : t + 3], tw.load(X[m, t - 1 : t + 3]"},
        {"limit=(t,)), limit=(t,))", "limit=(t,)), limit=(t - 4,))"},
    };
    for (const auto& [from, to] : wrong) {
        const auto r = checked(pieces(from, to));
        EXPECT_FALSE(r.proved()) << to;
        ASSERT_TRUE(r.violated()) << to << "\n" << open_obligations(r);
        EXPECT_TRUE(r.counterexample->confirmed) << to;
    }
}

TEST(Pieces, ThatDoNotReachTheNextOneAreNotProved) { EXPECT_FALSE(checked(pieces("N - 3 <= 16", "N - 8 <= 16")).proved()); }

TEST(Pieces, UnderAConditionThatSomeRowsDoNotMeetAreNotProved) {
    const std::string store = "    tw.store(Y[m, 0:4], tw.load(X[m, 0:4], fill=0.0, limit=(h,)), limit=(h,))\n";
    EXPECT_FALSE(checked(pieces(store, "    if h > 1:\n    " + store)).proved());
    EXPECT_TRUE(checked(pieces("    tw.store(Y[m, t :", "    if t < N:\n        tw.store(Y[m, t :"))
                    .proved());  // nothing is left out where nothing is left
}

// The folds of the pieces are the fold of the row, and so are those of what is masked again.
TEST(Pieces, SumUpToTheRow) {
    auto variance = [](const std::string& end) {
        return "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
               "@tw.kernel(target=\"sm_80\", computes=\"S[m] = sum(n, (X[m, n] - mean(k, X[m, k])) ** 2)\", threads=32)\n"
               "def variance(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n"
               "    tw.assume(4 <= N and N - 3 <= 16)\n"
               "    m = tw.grid(M)\n"
               "    h = (4 - m % 4 * (N % 4) % 4) % 4\n"
               "    t = h + (N - h) // 4 * 4\n"
               "    x = tw.load(X[m, h : h + 16], fill=0.0, limit=(t,))\n"
               "    head = tw.load(X[m, 0:4], fill=0.0, limit=(h,))\n"
               "    tail = tw.load(X[m, t : t + 4], fill=0.0)\n"
               "    mu = (tw.sum(x, axis=0) + tw.sum(head, axis=0) + tw.sum(tail, axis=0)) / N\n"
               "    d = x - tw.where(tw.coord(x, 0) < t - h, mu, 0.0)\n"
               "    dh = head - tw.where(tw.coord(head, 0) < " +
               end +
               ", mu, 0.0)\n"
               "    dt = tail - tw.where(tw.coord(tail, 0) < N - t, mu, 0.0)\n"
               "    tw.store(S[m], tw.sum(d * d, axis=0) + tw.sum(dh * dh, axis=0) + tw.sum(dt * dt, axis=0))\n";
    };
    const auto r = checked(variance("h"));
    EXPECT_TRUE(r.proved()) << open_obligations(r);
    EXPECT_TRUE(checked(variance("h + 1")).violated());
}

}  // namespace parts_test
}  // namespace tw::verify
