// Extremes with a fill that no element can be beyond: 0 in a maximum of magnitudes.
#include <fmt/format.h>

#include "diagnose/check.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace fills_test {

using namespace testing_kernels;

bool proved(const std::string& computes, const std::string& body, const std::string& assumed = "1 <= N and N <= 1024") {
    const std::string text = fmt::format(
        "import tilewright as tw\nfrom tilewright import f32\n\nM, N = tw.sizes(\"M N\")\n\n\n@tw.kernel(target=\"sm_80\", computes=\"S[m] "
        "= {}\", "
        "threads=128)\ndef k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):\n    tw.assume({})\n    m = tw.grid(M)\n    tw.store(S[m], "
        "{})\n",
        computes, assumed, body);
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text), options).proved();
}

std::string row(const std::string& fill) { return "tw.load(X[m, 0:1024], fill=" + fill + ")"; }

TEST(Fills, RightOnesAreProved) {
    EXPECT_TRUE(proved("max(n, abs(X[m, n]))", "tw.max(tw.abs(" + row("0.0") + "), axis=0)"));
    EXPECT_TRUE(proved("maximum(max(n, abs(X[m, n])), 0.000001) / 448.0",
                       "tw.maximum(tw.max(tw.abs(" + row("0.0") + "), axis=0), 0.000001) / 448.0"));
    EXPECT_TRUE(proved("min(n, -abs(X[m, n]))", "tw.min(-tw.abs(" + row("0.0") + "), axis=0)"));
    EXPECT_TRUE(proved("max(n, exp(X[m, n]))", "tw.max(tw.exp(" + row("float(\"-inf\")") + "), axis=0)"));
}

TEST(Fills, WrongOnesAreNot) {
    EXPECT_FALSE(proved("max(n, X[m, n])", "tw.max(" + row("0.0") + ", axis=0)"));               // all elements may be negative
    EXPECT_FALSE(proved("max(n, abs(X[m, n]))", "tw.max(tw.abs(" + row("1.0") + "), axis=0)"));  // all may be smaller than 1
    EXPECT_FALSE(proved("max(n, abs(X[m, n]))", "tw.max(tw.abs(" + row("0.0") + "), axis=0)", "N <= 1024"));  // of no elements: -inf
    EXPECT_FALSE(proved("min(n, abs(X[m, n]))", "tw.min(tw.abs(" + row("0.0") + "), axis=0)"));
    EXPECT_FALSE(proved("max(n, -abs(X[m, n]))", "tw.max(-tw.abs(" + row("0.0") + "), axis=0)"));
    EXPECT_FALSE(proved("max(n, abs(X[m, n]) - 1.0)", "tw.max(tw.abs(" + row("0.0") + ") - 1.0, axis=0) + 0.0001"));
    EXPECT_FALSE(
        proved("max(n, X[m, n] * X[m, n] * X[m, n])", "tw.max(" + row("0.0") + " * " + row("0.0") + " * " + row("0.0") + ", axis=0)"));
    EXPECT_FALSE(proved("maximum(max(n, abs(X[m, n])), 0.001)", "tw.maximum(tw.max(tw.abs(" + row("0.0") + "), axis=0), 0.0)"));
}

}  // namespace fills_test
}  // namespace tw::verify
