// Numbers made of a counter: a kernel is proved where its key, counter, word and threshold are those of `computes` for every element and
// every launch, and not where one of them differs for some. The function's own values are known, and look like independent ones.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "diagnose/check.h"
#include "emulate/trial.h"
#include "ir/element_math.h"
#include "verify/kernel_test_support.h"

namespace tw::verify {
namespace random_numbers_test {

using namespace testing_kernels;
using Words = std::array<std::uint32_t, 4>;

// The vectors that Random123 publishes for philox4x32-10 (its tests/kat_vectors).
TEST(Philox, GivesThePublishedNumbers) {
    struct Known {
        std::array<std::uint32_t, 2> key;
        Words counter, result;
    };
    for (const Known& k :
         {Known{{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
          Known{
              {0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
          Known{{0xa4093822, 0x299f31d0},
                {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}) {
        for (std::uint32_t word = 0; word < 8; ++word) {
            EXPECT_EQ(ir::philox(k.key, k.counter, word), k.result[word % 4]);
            const double operands[ir::most_operands] = {static_cast<double>(k.key[0]),     static_cast<double>(k.key[1]),
                                                        static_cast<double>(k.counter[0]), static_cast<double>(k.counter[1]),
                                                        static_cast<double>(k.counter[2]), static_cast<double>(k.counter[3]),
                                                        static_cast<double>(word)};
            EXPECT_EQ(ir::computed(ir::ElementOp::philox, target::DType::U32, operands), k.result[word % 4]);
        }
    }
}

TEST(MulHi, IsTheUpperHalfOfTheProduct) {
    for (const std::uint64_t a : {0ull, 1ull, 3ull, 0x80000000ull, 0xd2511f53ull, 0xffffffffull}) {
        for (const std::uint64_t b : {0ull, 1ull, 2ull, 0x10000ull, 0xcd9e8d57ull, 0xffffffffull}) {
            const double operands[3] = {static_cast<double>(a), static_cast<double>(b), 0};
            EXPECT_EQ(ir::computed(ir::ElementOp::mulhi, target::DType::U32, operands), static_cast<double>(a * b >> 32));
        }
    }
}

// A kernel of one statement: x is a tile of 128 of X, p its places.
struct Draw {
    std::string computes, value;
    const char* to = "f32";  // type of Y
    const char* assume = "N >= 1";
    friend void PrintTo(const Draw& d, std::ostream* out) { *out << d.computes << " by " << d.value; }
};

std::string text_of(const Draw& d) {
    return fmt::format(
        "import tilewright as tw\nfrom tilewright import f32, i32, i64, u8, i16, u32\n\nN = tw.sizes(\"N\")\n\n\n"
        "@tw.kernel(target=\"sm_80\", computes=\"Y[n] = {}\", threads=128)\n"
        "def k(X: tw.Tensor(f32, N), R: tw.Tensor(i32, 4), Y: tw.Tensor({}, N), a: tw.scalar(i32), b: tw.scalar(i32), c: tw.scalar(i32), "
        "d: tw.scalar(i32), q: tw.scalar(f32)):\n"
        "    tw.assume({})\n    i = tw.grid(tw.cdiv(N, 128)) * 128\n    x = tw.load(X[i : i + 128], fill=0.0)\n    p = tw.arange(128) + i\n"
        "    tw.store(Y[i : i + 128], {})\n",
        d.computes, d.to, d.assume, d.value);
}

diagnose::CheckResult checked(const Draw& d) {
    diagnose::CheckOptions options;
    options.search = false;
    return diagnose::check(kernel_of_text(text_of(d)), options);
}

class WrongDraw : public testing::TestWithParam<Draw> {};
class RightDraw : public testing::TestWithParam<Draw> {};
TEST_P(WrongDraw, IsNotProved) { EXPECT_FALSE(checked(GetParam()).proved()); }
TEST_P(RightDraw, IsProved) {
    const auto result = checked(GetParam());
    for (const Obligation& o : result.obligations) EXPECT_EQ(o.status, Status::proved) << o.kind << ": " << o.text << "\n" << o.reason;
    EXPECT_TRUE(result.proved());
}
// What is proved is what runs: every element agrees with `computes`, to the last bit.
TEST_P(RightDraw, Runs) {
    const ir::Kernel k = kernel_of_text(text_of(GetParam()));
    for (const std::int64_t n : {1, 127, 300}) {
        emulate::TrialOptions options;
        options.scalars = {{"a", -5}, {"b", 123456789}, {"c", 3}, {"d", -2147483648.0}, {"q", 0.375}};
        options.inputs = {{"R", {1, -2, 3, 4}}};
        options.tolerance = 1e-12;
        const emulate::Trial t = emulate::run_trial(k, named_sizes(k, {{"N", n}}), options);
        EXPECT_FALSE(t.failed()) << t.summary(k);
        EXPECT_EQ(t.refused, "");
    }
}

const std::string mask = "where(uniform(philox(a, b, n // 4, 7, c, d, n % 4)) < q, 0.0, X[n])";
Draw by(const std::string& key, const std::string& counter, const std::string& word, const std::string& compare = "< q, 0.0, x",
        const std::string& of = mask) {
    return {of, fmt::format("tw.where(tw.uniform(tw.philox({}, {}, {})) {})", key, counter, word, compare)};
}

INSTANTIATE_TEST_SUITE_P(
    Draws, RightDraw,
    testing::Values(
        by("a, b", "p // 4, 7, c, d", "p % 4"), by("a, b", "p.to(u32) // 4, 7, c, d", "p.to(u32) % 4"),
        by("a, b", "p // 2 // 2, 7, c, d", "p - p // 4 * 4"), by("a, b", "tw.arange(128) // 4 + i // 4, 7, c, d", "p % 4"),
        by("a, b", "p.to(i64).to(u32) // 4, 7, c, d", "p % 4"), by("a.to(u32), b.to(i64)", "p // 4, 7, c.to(u32), d", "p % 4"),
        by("a, b", "p // 4, 7, c, d", "p % 4", ">= q, x, 0.0", "where(uniform(philox(a, b, n // 4, 7, c, d, n % 4)) >= q, X[n], 0.0)"),
        Draw{"philox(a, b, n, 0, 0, 0, 1)", "tw.philox(a, b, p, 0, 0, 0, 1)", "u32"},
        Draw{"philox(-1, b, n, 0, 0, 0, 1)", "tw.philox(4294967295, b, p, 0, 0, 0, 1)", "u32"},
        Draw{"philox(R[0], R[1], n, 0, R[2], R[3], 1)", "tw.philox(R[0], R[1], p, 0, R[2], R[3], 1)", "u32"},
        Draw{"philox(a, b, philox(a, b, n, 1, 2, 3, 0) + 5, 0, 0, 0, 1)", "tw.philox(a, b, tw.philox(a, b, p, 1, 2, 3, 0) + 5, 0, 0, 0, 1)",
             "u32"},
        Draw{"f32(mulhi(philox(a, b, n, 0, 0, 0, 1), 52))", "tw.mulhi(tw.philox(a, b, p, 0, 0, 0, 1), 52).to(f32)"},
        Draw{"mulhi(a, 3)", "tw.mulhi(a, tw.full(u32, (128,), 3))", "u32"},
        Draw{"uniform(philox(a, b, n, 0, 0, 0, 1))", "(tw.philox(a, b, p, 0, 0, 0, 1) // 256).to(f32) * 5.9604644775390625e-08"}));

INSTANTIATE_TEST_SUITE_P(
    Draws, WrongDraw,
    testing::Values(
        // counters
        by("a, b", "p // 4 + 1, 7, c, d", "p % 4"), by("a, b", "(p + 1) // 4, 7, c, d", "p % 4"), by("a, b", "p // 8, 7, c, d", "p % 4"),
        by("a, b", "(p + p) // 8, 7, c, d", "p % 4"), by("a, b", "p, 7, c, d", "p % 4"), by("a, b", "p // 4, 8, c, d", "p % 4"),
        by("a, b", "p // 4, 7, d, c", "p % 4"), by("a, b", "7, p // 4, c, d", "p % 4"), by("a, b", "p // 4, 7, c, d + 1", "p % 4"),
        by("a, b", "p // 4, 7, c, c", "p % 4"), by("a, b", "tw.arange(128) // 4, 7, c, d", "p % 4"),
        by("a, b", "p.to(u8) // 4, 7, c, d", "p % 4"), by("a, b", "p.to(i16) // 4, 7, c, d", "p % 4"),
        by("a, b", "(p * 65536 // 65536) // 4, 7, c, d", "p % 4"), by("a, b", "p.to(f32).to(i32) // 4, 7, c, d", "p % 4"),
        by("a, b", "p % 1024 // 4, 7, c, d", "p % 4"), by("a, b", "tw.minimum(p, 5000) // 4, 7, c, d", "p % 4"),
        // words
        by("a, b", "p // 4, 7, c, d", "p % 2"), by("a, b", "p // 4, 7, c, d", "(p + 1) % 4"), by("a, b", "p // 4, 7, c, d", "3 - p % 4"),
        by("a, b", "p // 4, 7, c, d", "0"), by("a, b", "p // 4, 7, c, d", "p // 4 % 4"),
        // keys
        by("b, a", "p // 4, 7, c, d", "p % 4"), by("a, a", "p // 4, 7, c, d", "p % 4"), by("a + 1, b", "p // 4, 7, c, d", "p % 4"),
        by("c, d", "p // 4, 7, a, b", "p % 4"), by("a.to(u8), b", "p // 4, 7, c, d", "p % 4"), by("-a, b", "p // 4, 7, c, d", "p % 4"),
        by("a, 0", "p // 4, 7, c, d", "p % 4"),
        // thresholds
        by("a, b", "p // 4, 7, c, d", "p % 4", "<= q, 0.0, x"), by("a, b", "p // 4, 7, c, d", "p % 4", "> q, 0.0, x"),
        by("a, b", "p // 4, 7, c, d", "p % 4", "< 1.0 - q, 0.0, x"), by("a, b", "p // 4, 7, c, d", "p % 4", "< q, x, 0.0"),
        by("a, b", "p // 4, 7, c, d", "p % 4", "< 0.5, 0.0, x"),
        by("a, b", "p // 4, 7, c, d", "p % 4", "< 0.3, 0.0, x", "where(uniform(philox(a, b, n // 4, 7, c, d, n % 4)) <= 0.3, 0.0, X[n])"),
        by("a, b", "p // 4, 7, c, d", "p % 4", "< q, 0.0, x * 2.0"),
        // other ways to make a float of the bits
        Draw{mask, "tw.where(tw.philox(a, b, p // 4, 7, c, d, p % 4).to(f32) * 2.3283064365386963e-10 < q, 0.0, x)"},
        Draw{mask, "tw.where((tw.philox(a, b, p // 4, 7, c, d, p % 4) // 512).to(f32) * 1.1920928955078125e-07 < q, 0.0, x)"},
        Draw{mask, "tw.where((tw.philox(a, b, p // 4, 7, c, d, p % 4) % 16777216).to(f32) * 5.9604644775390625e-08 < q, 0.0, x)"},
        Draw{mask, "tw.where(tw.uniform(tw.philox(a, b, p // 4, 7, c, d, p % 4)).to(tw.bf16).to(f32) < q, 0.0, x)"},
        Draw{mask, "tw.where(tw.philox(a, b, p // 4, 7, c, d, p % 4).to(i32).to(f32) < q, 0.0, x)"},
        // sums of words have 32 bits
        Draw{"philox(a, b, n, 0, 0, 0, 1) * 3", "(tw.philox(a, b, p, 0, 0, 0, 1) * 3).to(i64)", "i64"},
        Draw{"philox(a, b, n, 1, 2, 3, 0) + philox(a, b, n, 1, 2, 3, 1)",
             "(tw.philox(a, b, p, 1, 2, 3, 0) + tw.philox(a, b, p, 1, 2, 3, 1)).to(i64)", "i64"},
        Draw{"mulhi(philox(a, b, n, 1, 2, 3, 0), 100)", "tw.philox(a, b, p, 1, 2, 3, 0) * 100", "u32"},
        Draw{"mulhi(philox(a, b, n, 1, 2, 3, 0), 100)", "tw.mulhi(tw.philox(a, b, p, 1, 2, 3, 0), 101)", "u32"},
        Draw{"mulhi(-1, a)", "tw.mulhi(tw.full(u32, (128,), 1), a)", "u32"},
        Draw{"philox(R[0], R[1], n, 0, R[2], R[3], 1)", "tw.philox(R[1], R[0], p, 0, R[2], R[3], 1)", "u32"},
        Draw{"philox(R[0], R[1], n, 0, R[2], R[3], 1)", "tw.philox(R[0], R[1], p, 0, R[2], R[2], 1)", "u32"},
        // what is drawn twice is not drawn once
        Draw{"uniform(philox(a, b, n, 0, 0, 0, 0)) - uniform(philox(a, b, n, 0, 0, 0, 1))", "x * 0.0"},
        Draw{"2.0 * uniform(philox(a, b, n, 0, 0, 0, 0))",
             "tw.uniform(tw.philox(a, b, p, 0, 0, 0, 0)) + tw.uniform(tw.philox(a, b, p, 0, 0, 0, 1))"}));

// Masks of the shipped kernel's kind: how many are kept, whether neighbours, words, counters, streams and seeds go together. With 2^18
// draws a deviation of five standard deviations is a chance of one in two million for each line; the numbers are the same in every run.
TEST(Philox, LooksIndependent) {
    constexpr std::uint32_t count = 1 << 18;
    const auto uniform = [](std::uint32_t n, std::uint32_t seed = 12345, std::uint32_t stream = 0, std::uint32_t offset = 0) {
        return std::ldexp(ir::philox({seed, 6789}, {n / 4, stream, offset, 0}, n % 4) >> 8, -24);
    };
    double sum = 0, squares = 0;
    for (std::uint32_t n = 0; n < count; ++n) {
        const double u = uniform(n);
        ASSERT_TRUE(u >= 0 && u < 1);
        sum += u, squares += u * u;
    }
    const double root = std::sqrt(static_cast<double>(count));
    EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12) / root);
    EXPECT_NEAR(squares / count, 1.0 / 3, 5 * std::sqrt(4.0 / 45) / root);
    for (const double p : {0.1, 0.25, 0.5, 0.9}) {
        const auto dropped = [&](double u) { return u < p ? 1.0 : 0.0; };
        double mean = 0, both[6] = {};
        for (std::uint32_t n = 0; n < count; ++n) {
            const double own = dropped(uniform(n)) - p;
            mean += own;
            const double others[6] = {uniform(n + 1),    uniform(n + 4),       uniform(n + 1024),
                                      uniform(n, 12346), uniform(n, 12345, 1), uniform(n, 12345, 0, 1)};
            for (int i = 0; i < 6; ++i) both[i] += own * (dropped(others[i]) - p);
        }
        EXPECT_LE(std::fabs(mean), 5 * std::sqrt(p * (1 - p)) * root) << p;
        for (int i = 0; i < 6; ++i) EXPECT_LE(std::fabs(both[i]), 5 * p * (1 - p) * root) << p << " beside " << i;
    }
}

}  // namespace random_numbers_test
}  // namespace tw::verify
