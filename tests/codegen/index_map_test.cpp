#include "codegen/digit_text.h"

#include <gtest/gtest.h>

#include "device/places.h"

namespace tw::codegen {
namespace index_map_test {

TEST(DigitSum, FindsDigitsAndPrintsThem) {
    std::vector<int> table;
    for (int x = 0; x < 32; ++x) table.push_back(7 + x % 4 * 2 + x / 4 * 100);
    auto sum = fit_digits(table, {32});
    ASSERT_TRUE(sum);
    EXPECT_EQ(sum->base, 7);
    EXPECT_EQ(digit_text(*sum, "t"), "t % 4 * 2 + t / 4 * 100");
    EXPECT_EQ(digit_text(*sum, "2 * v"), "(2 * v) % 4 * 2 + (2 * v) / 4 * 100");
    for (int x = 0; x < 32; ++x) EXPECT_EQ(sum->at(x), table[static_cast<std::size_t>(x)]);
}

TEST(DigitSum, MergesDigitsThatContinue) {
    std::vector<int> table;
    for (int x = 0; x < 24; ++x) table.push_back(3 * x);
    auto sum = fit_digits(table, {2, 3, 4});
    ASSERT_TRUE(sum);
    EXPECT_EQ(digit_text(*sum, "v"), "v * 3");
}

TEST(DigitSum, RefusesWhatIsNoSum) {
    EXPECT_FALSE(fit_digits({0, 1, 2, 4}, {4}));
    EXPECT_FALSE(fit_digits({0, 1, 0, 0}, {2, 2}));
}

TEST(Split, SeparatesThreadAndValue) {
    ir::Distribution d;
    d.shape = {8, 64};
    d.thread = {{8, 1, 8}, {4, 0, 1}};
    d.value = {{8, 1, 1}, {2, 0, 4}};
    auto map = split(d, [](const std::vector<int>& c) { return c[0] * 64 + c[1]; });
    ASSERT_TRUE(map);
    for (int t = 0; t < d.threads(); ++t) {
        for (int v = 0; v < d.values(); ++v) {
            const auto c = d.at(t, v);
            EXPECT_EQ(map->thread.at(t) + map->value[static_cast<std::size_t>(v)], c[0] * 64 + c[1]);
        }
    }
    // A product of both is not a sum.
    EXPECT_FALSE(split(d, [](const std::vector<int>& c) { return c[0] * c[1]; }));
}

// Four lanes that exchange words (tw::quad_transpose) hold afterwards what the gathered map says: lane t gets word i of the t-th run from
// lane i.
TEST(Quads, HoldWholeRunsAfterTheyExchange) {
    ir::Distribution d;  // the accumulator of wgmma, 64 x 64
    d.shape = {64, 64};
    d.thread = {{4, 1, 2}, {8, 0, 1}, {4, 0, 16}};
    d.value = {{2, 1, 1}, {2, 0, 8}, {8, 1, 8}};
    const auto gathered = ir::gathered_by_quads(d);
    ASSERT_TRUE(gathered);
    EXPECT_TRUE(ir::covers_exactly(*gathered));
    const int apart = device::words_between_runs(d);
    EXPECT_EQ(apart, 2);  // the two rows of the accumulator lie between
    for (int t = 0; t < 128; ++t) {
        for (int w = 0; w < 4; ++w) {
            for (int e = 0; e < 8; ++e) {
                const int word = w % apart + (w / apart * 4 + t % 4) * apart;
                EXPECT_EQ(d.at(t / 4 * 4 + e / 2, 2 * word + e % 2), gathered->at(t, 8 * w + e));
            }
        }
    }
    d.value = {{2, 1, 1}, {2, 0, 8}, {6, 1, 8}};  // six runs: four lanes cannot share them
    d.shape = {64, 48};
    EXPECT_FALSE(ir::gathered_by_quads(d));
}

}  // namespace index_map_test
}  // namespace tw::codegen
