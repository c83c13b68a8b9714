// Casts, integers of a width, laws with conditions, exact constants: for each, kernels that differ from what they should be in this alone are not proved, and the
// right ones of the same form are.
#include <fmt/format.h>

#include "diagnose/check.h"
#include "verify/coefficient.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace {

using namespace testing_kernels;

// One tile of 128 of a vector: `value` of x, the tile of X, and of p, its places.
struct Row {
    const char* computes;
    const char* value;
    const char* from = "f32";   // type of X
    const char* to = "f32";     // type of Y
    const char* assume = "N >= 1";
};

void PrintTo(const Row& r, std::ostream* out) { *out << r.computes << " by " << r.value << " (" << r.from << " to " << r.to << ", " << r.assume << ")"; }

bool proved(const Row& r) {
    const std::string fill = std::string(r.from).front() == 'f' ? "0.0" : "0";
    const std::string text = fmt::format(
        "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i8, i16, i32, i64, u8, u32\n\nN = tw.sizes(\"N\")\n\n\n"
        "@tw.kernel(target=\"sm_80\", computes=\"{}\", threads=128)\ndef k(X: tw.Tensor({}, N), Y: tw.Tensor({}, N)):\n    tw.assume({})\n"
        "    i = tw.grid(tw.cdiv(N, 128)) * 128\n    x = tw.load(X[i : i + 128], fill={})\n    p = tw.arange(128) + i\n    tw.store(Y[i : i + 128], {})\n",
        r.computes, r.from, r.to, r.assume, fill, r.value);
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text), options).proved();
}

class Wrong : public testing::TestWithParam<Row> {};
class Right : public testing::TestWithParam<Row> {};
TEST_P(Wrong, IsNotProved) { EXPECT_FALSE(proved(GetParam())); }
TEST_P(Right, IsProved) { EXPECT_TRUE(proved(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Casts, Wrong, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = where(n >= 300, X[n], 0.0)", "tw.where(p.to(bf16) >= 300.0, x, 0.0)"},
    {"Y[n] = where(n < 4001, X[n], 0.0)", "tw.where(p.to(f16) < 4001.0, x, 0.0)"},
    {"Y[n] = where(n < 1001, X[n], 0.0)", "tw.where(tw.arange(128).to(bf16) + i < 1001.0, x, 0.0)"},
    {"Y[n] = n", "p.to(f32).to(i32)", "f32", "i32"},
    {"Y[n] = n", "(tw.arange(128).to(f32) + i).to(i32)", "f32", "i32"},
    {"Y[n] = n", "p.to(bf16).to(i32)", "f32", "i32"},
    {"Y[n] = n", "p.to(i16).to(i32)", "f32", "i32"},
    {"Y[n] = where(X[n] < 0.5, X[n], 0.0)", "tw.where(x.to(bf16) < 0.5, x, 0.0)"},
    {"Y[n] = where(X[n] < 0.5, X[n], 0.0)", "tw.where(x.to(bf16).to(f32) < 0.5, x, 0.0)"},
    {"Y[n] = where(X[n] * 3.0 < 0.5, X[n], 0.0)", "tw.where(x.to(bf16).to(f32) * 3.0 < 0.5, x, 0.0)"},
    {"Y[n] = floor(X[n])", "tw.floor(x.to(bf16).to(f32))"},
    {"Y[n] = X[n]", "x.to(i8).to(f32)"},
    {"Y[n] = X[n]", "(x * 16.0).to(i8).to(f32) * 0.0625"},
    {"Y[n] = X[n]", "x.to(i16).to(i32)", "i32", "i32"},
    {"Y[n] = X[n]", "x.to(u8).to(i32)", "i8", "i32"},
    {"Y[n] = f32(X[n])", "x.to(u32).to(f32)", "i32"},
}));
INSTANTIATE_TEST_SUITE_P(Casts, Right, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = where(n % 128 < 100, X[n], 0.0)", "tw.where(tw.arange(128).to(bf16) < 100.0, x, 0.0)"},
    {"Y[n] = where(n >= 300, X[n], 0.0)", "tw.where(p.to(f16) >= 300.0, x, 0.0)", "f32", "f32", "N <= 2048"},
    {"Y[n] = n", "p.to(f32).to(i32)", "f32", "i32", "N <= 16777216"},
    {"Y[n] = n", "p.to(i8).to(i32)", "f32", "i32", "N <= 128"},
    {"Y[n] = i32(i8(n))", "p.to(i8).to(i32)", "f32", "i32"},
    {"Y[n] = where(bf16(X[n]) < 0.5, X[n], 0.0)", "tw.where(x.to(bf16) < 0.5, x, 0.0)"},
    {"Y[n] = f32(i32(X[n])) * 0.5", "x.to(i32).to(f32) * 0.5"},
    {"Y[n] = f32(i8(X[n] * 16.0)) * 0.0625", "(x * 16.0).to(i8).to(f32) * 0.0625"},
    {"Y[n] = X[n] + 1.0", "x.to(bf16).to(f32) + 1.0"},   // rounding alone
    {"Y[n] = i32(i16(X[n]))", "x.to(i16).to(i32)", "i32", "i32"},
}));

INSTANTIATE_TEST_SUITE_P(Integers, Wrong, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = f32(X[n]) / 4", "(x // 4).to(f32)", "i32"},
    {"Y[n] = f32(n) * f32(n)", "(p * p).to(f32)"},
    {"Y[n] = X[n] * X[n]", "(x * x).to(i32)", "i8", "i32"},
    {"Y[n] = f32(X[n] + X[n])", "(x + x).to(f32)", "i32"},
    {"Y[n] = f32(abs(X[n]))", "tw.abs(x).to(f32)", "i32"},
    {"Y[n] = where(X[n] - 5 < 3, 1.0, 0.0)", "tw.where(x - 5 < 3, 1.0, 0.0)", "u32"},
    {"Y[n] = f32(X[n]) - 5.0", "(x - 5).to(f32)", "u32"},
    {"Y[n] = X[n] % 4 - 4", "x % 4", "i32", "i32"},
}));
INSTANTIATE_TEST_SUITE_P(Integers, Right, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = f32(X[n] // 4)", "(x // 4).to(f32)", "i32"},
    {"Y[n] = X[n] % 4", "x % 4", "i32", "i32"},
    {"Y[n] = f32(n) * f32(n)", "(p * p).to(f32)", "f32", "f32", "N <= 40000"},
    {"Y[n] = X[n] * X[n]", "x.to(i32) * x.to(i32)", "i8", "i32"},
    {"Y[n] = X[n] * X[n]", "x * x", "i32", "i32"},          // the low bits of both
    {"Y[n] = f32(X[n] + X[n])", "(x.to(i32) + x.to(i32)).to(f32)", "i16"},
    {"Y[n] = X[n] - 5", "x - 5", "u32", "u32"},
}));

INSTANTIATE_TEST_SUITE_P(Laws, Wrong, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = X[n]", "tw.sqrt(x * x)"},
    {"Y[n] = X[n]", "tw.sqrt(x) * tw.sqrt(x)"},
    {"Y[n] = sqrt(X[n])", "x * tw.rsqrt(x)"},
    {"Y[n] = sqrt(X[n]) * sqrt(X[n] + 1.0)", "tw.sqrt(x * (x + 1.0))"},
    {"Y[n] = 2.0 * sqrt(X[n])", "tw.sqrt(-4.0 * x)"},
    {"Y[n] = 2.0 * log(X[n])", "tw.log(x * x)"},
    {"Y[n] = log(X[n] * X[n])", "2.0 * tw.log(x)"},
    {"Y[n] = X[n] * X[n] * X[n]", "tw.exp(3.0 * tw.log(x))"},
    {"Y[n] = X[n]", "tw.exp2(tw.log2(x))"},
    {"Y[n] = X[n]", "x * x / x"},
    {"Y[n] = X[n]", "1.0 / (1.0 / x)"},
    {"Y[n] = X[n]", "x + 0.0 * tw.log(x)"},
    {"Y[n] = X[n]", "x + tw.log(x) - tw.log(x)"},
    {"Y[n] = -2.0 * maximum(X[n], 1.0)", "tw.maximum(x * -2.0, -2.0)"},
}));
INSTANTIATE_TEST_SUITE_P(Laws, Right, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = abs(X[n])", "tw.sqrt(x * x)"},
    {"Y[n] = X[n] * X[n] + 1.0", "tw.sqrt(x * x + 1.0) * tw.sqrt(x * x + 1.0)"},
    {"Y[n] = X[n] / sqrt(X[n] * X[n] + 1e-6)", "x * tw.rsqrt(x * x + 1e-6)"},
    {"Y[n] = X[n] + log(X[n] * X[n] + 1.0)", "tw.log((x * x + 1.0) * tw.exp(x))"},
    {"Y[n] = X[n]", "x * tw.exp(x) / tw.exp(x)"},
    {"Y[n] = exp(3.0 * X[n])", "tw.exp(3.0 * tw.log(tw.exp(x)))"},
    {"Y[n] = maximum(-2.0 * X[n], -2.0)", "tw.maximum(x * -2.0, -2.0)"},
}));

INSTANTIATE_TEST_SUITE_P(Constants, Wrong, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = X[n] * 5e-8", "x * 0.0"},
    {"Y[n] = X[n] * 5e-8", "x * 7e-8"},
    {"Y[n] = X[n] / (abs(X[n]) + 1e-12)", "x / (tw.abs(x) + 1e-13)"},
    {"Y[n] = X[n] + 1.0", "x + 1.0000001"},
    {"Y[n] = X[n] / 3.0", "x * 0.3333333"},
    {"Y[n] = exp(X[n])", "tw.exp2(x * 1.4427)"},
    {"Y[n] = pow(X[n] * X[n] + 1.0, 0.25)", "tw.pow(x * x + 1.0, 0.2500001)"},
}));
INSTANTIATE_TEST_SUITE_P(Constants, Right, testing::ValuesIn(std::vector<Row>{
    {"Y[n] = X[n] * 5e-8", "x * 5e-8"},
    {"Y[n] = X[n] / (abs(X[n]) + 1e-12)", "x / (tw.abs(x) + 1e-12)"},
    {"Y[n] = X[n] / 3", "x * (1.0 / 3.0)"},
    {"Y[n] = exp(X[n])", "tw.exp2(x * 1.44269504)"},
    {"Y[n] = 0.3 * X[n]", "0.1 * x + 0.2 * x"},
    {"Y[n] = X[n] / sqrt(2.0)", "x * 0.7071067811865476"},
}));

TEST(Coefficients, AreExact) {
    EXPECT_EQ(Coefficient(0.1) + Coefficient(0.2), Coefficient(0.3));
    EXPECT_EQ(Coefficient(1.0 / 3) * Coefficient(3), Coefficient(1));
    EXPECT_FALSE(Coefficient(5e-8) == Coefficient(7e-8));
    EXPECT_FALSE(Coefficient(1e-12).zero());
    EXPECT_FALSE(Coefficient(1) + Coefficient(1e-12) == Coefficient(1));
}

TEST(Coefficients, LiteralsStandForTheNumbersTheyApproximate) {
    EXPECT_EQ(Coefficient(1.4426950408889634) * Coefficient(0.6931471805599453), Coefficient(1));
    EXPECT_EQ(Coefficient(1.44269504) * Coefficient(0.69314718), Coefficient(1));
    EXPECT_EQ(Coefficient(0.7071067811865476) * Coefficient(0.7071067811865476), Coefficient(0.5));
    EXPECT_EQ(Coefficient(128).power(Coefficient(-0.5)), Coefficient(0.08838834764831845));
    EXPECT_EQ(Coefficient(0.285419265090401), Coefficient(8) * Coefficient(0.044715) * Coefficient(0.7978845608028654));
    EXPECT_FALSE(Coefficient(1.4427) * Coefficient(0.6931471805599453) == Coefficient(1));
    EXPECT_TRUE(Coefficient(-4).power(Coefficient(0.5)).is_nan());
}

}  // namespace
}  // namespace tw::verify
