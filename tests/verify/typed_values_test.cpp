// Casts, integers of a width, laws with conditions, exact constants: for each, kernels that differ from what they should be in this alone
// are not proved, and the right ones of the same form are.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/check.h"
#include "verify/coefficient.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace typed_values_test {

using namespace testing_kernels;

// One tile of 128 of a vector: `value` of x, the tile of X, and of p, its places.
struct Row {
    const char* computes;
    const char* value;
    const char* from = "f32";  // type of X
    const char* to = "f32";    // type of Y
    const char* assume = "N >= 1";
};

void PrintTo(const Row& r, std::ostream* out) {
    *out << r.computes << " by " << r.value << " (" << r.from << " to " << r.to << ", " << r.assume << ")";
}

// `movement`: without what the rounding pass says, which has tests of its own (precision_test.cpp) and knows of no exact casts.
bool proved(const Row& r, bool movement = false) {
    const std::string fill = std::string(r.from).find('f') != std::string::npos ? "0.0" : "0";
    const std::string text = fmt::format(
        "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i8, i16, i32, i64, u8, u32\n\nN = tw.sizes(\"N\")\n\n\n"
        "@tw.kernel(target=\"sm_80\", computes=\"{}\", threads=128)\ndef k(X: tw.Tensor({}, N), Y: tw.Tensor({}, N)):\n    tw.assume({})\n"
        "    i = tw.grid(tw.cdiv(N, 128)) * 128\n    x = tw.load(X[i : i + 128], fill={})\n    p = tw.arange(128) + i\n    tw.store(Y[i : "
        "i + 128], {})\n",
        r.computes, r.from, r.to, r.assume, fill, r.value);
    diagnose::CheckOptions options;
    options.search = false;
    const auto result = diagnose::check(kernel_of_text(text), options);
    if (!movement) return result.proved();
    return std::all_of(result.obligations.begin(), result.obligations.end(),
                       [](const Obligation& o) { return o.kind == "precision" || o.status == Status::proved; });
}

class Wrong : public testing::TestWithParam<Row> {};
class Right : public testing::TestWithParam<Row> {};
TEST_P(Wrong, IsNotProved) { EXPECT_FALSE(proved(GetParam())); }
TEST_P(Right, IsProved) { EXPECT_TRUE(proved(GetParam(), true)); }

INSTANTIATE_TEST_SUITE_P(Casts, Wrong,
                         testing::ValuesIn(std::vector<Row>{
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
                             {"Y[n] = where(X[n] <= 0.3, 1.0, 0.0)", "tw.where(x <= 0.3, 1.0, 0.0)",
                              "bf16"},  // a literal has the tile's type: 0.30078125
                             {"Y[n] = where(X[n] < 300, 1.0, 0.0)", "tw.where(x < 300, 1.0, 0.0)", "i8"},  // 44
                             {"Y[n] = where(X[n] + 1.0 > 2.0, 1.0, 0.0)", "tw.where(x + 1.0 > 2.0, 1.0, 0.0)", "bf16"},
                             {"Y[n] = X[n]", "x.to(i8).to(f32)"},
                             {"Y[n] = X[n]", "(x * 16.0).to(i8).to(f32) * 0.0625"},
                             {"Y[n] = X[n]", "x.to(i16).to(i32)", "i32", "i32"},
                             {"Y[n] = X[n]", "x.to(u8).to(i32)", "i8", "i32"},
                             {"Y[n] = f32(X[n])", "x.to(u32).to(f32)", "i32"},
                         }));
INSTANTIATE_TEST_SUITE_P(Casts, Right,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = where(n % 128 < 100, X[n], 0.0)", "tw.where(tw.arange(128).to(bf16) < 100.0, x, 0.0)"},
                             {"Y[n] = where(n >= 300, X[n], 0.0)", "tw.where(p.to(f16) >= 300.0, x, 0.0)", "f32", "f32", "N <= 2048"},
                             {"Y[n] = n", "p.to(f32).to(i32)", "f32", "i32", "N <= 16777216"},
                             {"Y[n] = n", "p.to(i8).to(i32)", "f32", "i32", "N <= 128"},
                             {"Y[n] = i32(i8(n))", "p.to(i8).to(i32)", "f32", "i32"},
                             {"Y[n] = where(bf16(X[n]) < 0.5, X[n], 0.0)", "tw.where(x.to(bf16) < 0.5, x, 0.0)"},
                             {"Y[n] = f32(i32(X[n])) * 0.5", "x.to(i32).to(f32) * 0.5"},
                             {"Y[n] = f32(i8(X[n] * 16.0)) * 0.0625", "(x * 16.0).to(i8).to(f32) * 0.0625"},
                             {"Y[n] = X[n] + 1.0", "x.to(bf16).to(f32) + 1.0"},  // rounding alone
                             {"Y[n] = i32(i16(X[n]))", "x.to(i16).to(i32)", "i32", "i32"},
                             {"Y[n] = where(X[n] <= bf16(0.3), 1.0, 0.0)", "tw.where(x <= 0.3, 1.0, 0.0)", "bf16"},
                             {"Y[n] = where(X[n] <= 0.25, 1.0, 0.0)", "tw.where(x <= 0.25, 1.0, 0.0)", "bf16"},
                         }));

INSTANTIATE_TEST_SUITE_P(Integers, Wrong,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = f32(X[n]) / 4", "(x // 4).to(f32)", "i32"},
                             {"Y[n] = f32(n) * f32(n)", "(p * p).to(f32)"},
                             {"Y[n] = X[n] * X[n]", "(x * x).to(i32)", "i8", "i32"},
                             {"Y[n] = f32(X[n] + X[n])", "(x + x).to(f32)", "i32"},
                             {"Y[n] = f32(abs(X[n]))", "tw.abs(x).to(f32)", "i32"},
                             {"Y[n] = where(X[n] - 5 < 3, 1.0, 0.0)", "tw.where(x - 5 < 3, 1.0, 0.0)", "u32"},
                             {"Y[n] = f32(X[n]) - 5.0", "(x - 5).to(f32)", "u32"},
                             {"Y[n] = X[n] % 4 - 4", "x % 4", "i32", "i32"},
                         }));
INSTANTIATE_TEST_SUITE_P(Integers, Right,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = f32(X[n] // 4)", "(x // 4).to(f32)", "i32"},
                             {"Y[n] = X[n] % 4", "x % 4", "i32", "i32"},
                             {"Y[n] = f32(n) * f32(n)", "(p * p).to(f32)", "f32", "f32", "N <= 40000"},
                             {"Y[n] = X[n] * X[n]", "x.to(i32) * x.to(i32)", "i8", "i32"},
                             {"Y[n] = X[n] * X[n]", "x * x", "i32", "i32"},  // the low bits of both
                             {"Y[n] = f32(X[n] + X[n])", "(x.to(i32) + x.to(i32)).to(f32)", "i16"},
                             {"Y[n] = X[n] - 5", "x - 5", "u32", "u32"},
                         }));

INSTANTIATE_TEST_SUITE_P(Laws, Wrong,
                         testing::ValuesIn(std::vector<Row>{
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
INSTANTIATE_TEST_SUITE_P(Laws, Right,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = abs(X[n])", "tw.sqrt(x * x)"},
                             {"Y[n] = X[n] * X[n] + 1.0", "tw.sqrt(x * x + 1.0) * tw.sqrt(x * x + 1.0)"},
                             {"Y[n] = X[n] / sqrt(X[n] * X[n] + 1e-6)", "x * tw.rsqrt(x * x + 1e-6)"},
                             {"Y[n] = X[n] + log(abs(X[n]))", "tw.log(tw.abs(x) * tw.exp(x))"},
                             {"Y[n] = X[n]", "x * tw.exp(x) / tw.exp(x)"},
                             {"Y[n] = exp(3.0 * X[n])", "tw.exp(3.0 * tw.log(tw.exp(x)))"},
                             {"Y[n] = maximum(-2.0 * X[n], -2.0)", "tw.maximum(x * -2.0, -2.0)"},
                         }));

INSTANTIATE_TEST_SUITE_P(Constants, Wrong,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = X[n] * 5e-8", "x * 0.0"},
                             {"Y[n] = X[n] * 5e-8", "x * 7e-8"},
                             {"Y[n] = X[n] / (abs(X[n]) + 1e-12)", "x / (tw.abs(x) + 1e-13)"},
                             {"Y[n] = X[n] + 1.0", "x + 1.0000001"},
                             {"Y[n] = X[n] / 3.0", "x * 0.3333333"},
                             {"Y[n] = exp(X[n])", "tw.exp2(x * 1.4427)"},
                             {"Y[n] = pow(X[n] * X[n] + 1.0, 0.25)", "tw.pow(x * x + 1.0, 0.2500001)"},
                         }));
INSTANTIATE_TEST_SUITE_P(Constants, Right,
                         testing::ValuesIn(std::vector<Row>{
                             {"Y[n] = X[n] * 5e-8", "x * 5e-8"},
                             {"Y[n] = X[n] / (abs(X[n]) + 1e-12)", "x / (tw.abs(x) + 1e-12)"},
                             {"Y[n] = X[n] / 3", "x * (1.0 / 3.0)"},
                             {"Y[n] = exp(X[n])", "tw.exp2(x * 1.44269504)"},
                             {"Y[n] = 0.3 * X[n]", "0.1 * x + 0.2 * x"},
                             {"Y[n] = X[n] / sqrt(2.0)", "x * 0.7071067811865476"},
                         }));

// Rows of N: folds, loops and shared memory.
bool proved_row(const std::string& computes, const std::string& from, const std::string& to, const std::string& body,
                const std::string& assume = "N <= 1024") {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(
               kernel_of_text(
                   "import tilewright as tw\nfrom tilewright import bf16, f16, f32, i8, i16, i32, u8, u32\n\nM, N = tw.sizes(\"M N\")\n\n\n"
                   "@tw.kernel(target=\"sm_80\", computes=\"" +
                   computes + "\", threads=128)\ndef k(X: tw.Tensor(" + from + ", M, N), S: tw.Tensor(" + to + ", M)):\n    tw.assume(" +
                   assume + ")\n    m = tw.grid(M)\n" + body),
               options)
        .proved();
}

TEST(TypedRows, SumsOfIntegersKeepTheirLowBits) {
    const std::string load = "    x = tw.load(X[m, 0:1024], fill=0)\n";
    EXPECT_TRUE(proved_row("S[m] = sum(n, X[m, n])", "i32", "i32", load + "    tw.store(S[m], tw.sum(x, axis=0))\n"));
    EXPECT_FALSE(proved_row("S[m] = f32(sum(n, X[m, n]))", "i32", "f32", load + "    tw.store(S[m], tw.sum(x, axis=0).to(f32))\n"));
    EXPECT_TRUE(
        proved_row("S[m] = f32(sum(n, X[m, n])) / N", "i8", "f32", load + "    tw.store(S[m], tw.sum(x.to(i32), axis=0).to(f32) / N)\n"));
    EXPECT_FALSE(proved_row("S[m] = f32(sum(n, X[m, n])) / N", "i8", "f32",
                            load + "    tw.store(S[m], (tw.sum(x.to(i32), axis=0) // N).to(f32))\n"));
}

TEST(TypedRows, LoopsOverIntegers) {
    const std::string loop = "    for c in tw.range(tw.cdiv(N, 128)):\n        t = t + tw.load(X[m, c * 128 : c * 128 + 128], fill=0)\n";
    EXPECT_TRUE(proved_row("S[m] = sum(n, X[m, n])", "i32", "i32",
                           "    t = tw.full(i32, (128,), 0)\n" + loop + "    tw.store(S[m], tw.sum(t, axis=0))\n", "N >= 1"));
    EXPECT_FALSE(proved_row("S[m] = f32(sum(n, X[m, n]))", "i32", "f32",
                            "    t = tw.full(i32, (128,), 0)\n" + loop + "    tw.store(S[m], tw.sum(t, axis=0).to(f32))\n", "N >= 1"));
    EXPECT_FALSE(proved_row("S[m] = sum(n, X[m, n])", "i16", "i32",
                            "    t = tw.full(i16, (128,), 0)\n" + loop + "    tw.store(S[m], tw.sum(t.to(i32), axis=0))\n", "N >= 1"));
}

TEST(TypedRows, ARoundedSumDecidesNothing) {
    auto text = [](const std::string& cast) {
        return "    t = tw.full(f32, (128,), 0.0)\n    for c in tw.range(tw.cdiv(N, 128)):\n        t = t + tw.load(X[m, c * 128 : c * 128 "
               "+ 128], fill=0.0)" +
               cast + "\n    tw.store(S[m], tw.where(tw.sum(t, axis=0) > 1.0, 1.0, 0.0))\n";
    };
    EXPECT_TRUE(proved_row("S[m] = where(sum(n, X[m, n]) > 1.0, 1.0, 0.0)", "f32", "f32", text(""), "N >= 1"));
    EXPECT_FALSE(proved_row("S[m] = where(sum(n, X[m, n]) > 1.0, 1.0, 0.0)", "f32", "f32", text(".to(bf16).to(f32)"), "N >= 1"));
}

TEST(TypedRows, PlacesOfRoundedValues) {
    auto text = [](const std::string& x, const std::string& end) {
        return "    x = tw.load(X[m, 0:1024], fill=float(\"-inf\"))\n    tw.store(S[m], tw.argmax(" + x + ", axis=0, limit=N)" + end +
               ")\n";
    };
    EXPECT_TRUE(proved_row("S[m] = argmax(n, X[m, n])", "f32", "i32", text("x", "")));
    EXPECT_TRUE(proved_row("S[m] = argmax(n, bf16(X[m, n]))", "f32", "i32", text("x.to(bf16)", "")));
    EXPECT_FALSE(proved_row("S[m] = argmax(n, X[m, n])", "f32", "i32", text("x.to(bf16)", "")));
    EXPECT_FALSE(proved_row("S[m] = argmax(n, X[m, n])", "f32", "i32", text("x", ".to(i8).to(i32)")));
}

TEST(TypedRows, ANegativeFactorTurnsAMaximumIntoAMinimum) {
    auto text = [](const std::string& value) {
        return "    a = tw.max(tw.load(X[m, 0:512]), axis=0)\n    b = tw.max(tw.load(X[m, 512:1024]), axis=0)\n    tw.store(S[m], " +
               value + ")\n";
    };
    EXPECT_TRUE(proved_row("S[m] = -1.0 * max(n, X[m, n])", "f32", "f32", text("-tw.maximum(a, b)"), "N == 1024"));
    EXPECT_FALSE(proved_row("S[m] = -1.0 * max(n, X[m, n])", "f32", "f32", text("tw.maximum(-a, -b)"), "N == 1024"));
    EXPECT_TRUE(proved_row("S[m] = -1.0 * max(n, X[m, n])", "f32", "f32", text("tw.minimum(-a, -b)"), "N == 1024"));
}

TEST(TypedRows, RoundingGoesThroughSharedMemory) {
    const std::string body =
        "    s = tw.shared(bf16, (1024,))\n    tw.store(s, tw.load(X[m, 0:1024], fill=0.0).to(bf16))\n    tw.sync()\n    y = "
        "tw.load(s).to(f32)\n    tw.store(S[m], tw.sum(tw.where(y < 0.5, 1.0, 0.0), axis=0))\n";
    EXPECT_TRUE(proved_row("S[m] = sum(n, where(bf16(X[m, n]) < 0.5, 1.0, 0.0))", "f32", "f32", body, "N == 1024"));
    EXPECT_FALSE(proved_row("S[m] = sum(n, where(X[m, n] < 0.5, 1.0, 0.0))", "f32", "f32", body, "N == 1024"));
}

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

}  // namespace typed_values_test
}  // namespace tw::verify
