#include "layout/banks.h"

#include <gtest/gtest.h>

#include <optional>

#include "layout/notation.h"
#include "random_layouts.h"
#include "target/access_cost.h"
#include "target/arch.h"

namespace tw::layout {
namespace banks_test {

using testing::Random;

TEST(Banks, RanksAgreeWithCountingWordsPerBank) {
    const target::Arch* arch = target::find_arch("sm_90a");
    ASSERT_TRUE(arch);
    Random random(91);
    int conflicts = 0, free = 0;
    for (int round = 0; round < 4000; ++round) {
        const int bytes = random.pick({1, 2, 4, 8, 16});
        std::vector<std::uint64_t> columns;
        for (int j = 0; j < 5; ++j) columns.push_back(static_cast<std::uint64_t>(random.below(4096 / bytes) * bytes));
        const AffineMap map{LinearMap(columns, 13), static_cast<std::uint64_t>(random.below(32) * bytes)};
        std::vector<std::optional<std::uint32_t>> lanes;
        for (std::uint64_t l = 0; l < 32; ++l) lanes.push_back(static_cast<std::uint32_t>(map(l)));
        const BankConflict conflict = bank_conflict(map, bytes).value();
        const target::SharedCost cost = target::shared_wavefronts(*arch, lanes, bytes);
        ASSERT_EQ(conflict.wavefronts(), cost.wavefronts) << "bytes " << bytes << "\n" << to_string(map.linear);
        (conflict.degree > 1 ? conflicts : free) += 1;
    }
    EXPECT_GT(conflicts, 300);
    EXPECT_GT(free, 300);
}

TEST(Banks, TheSwizzleThatTmaUsesIsFree) {
    // Eight rows of 128 bytes, read 16 bytes at a time down a column, as ldmatrix and wgmma do.
    const auto plain = affine_map(parse_composed("(8,4):(128,1024)").value()).value();
    EXPECT_EQ(bank_conflict(plain, 16).value().degree, 8);
    const auto swizzled = affine_map(parse_composed("Sw<3,4,3> o 0 o (8,4):(128,1024)").value()).value();
    EXPECT_EQ(bank_conflict(swizzled, 16).value().degree, 1);
    EXPECT_EQ(bank_conflict(swizzled, 16).value().wavefronts(), 4);
}

TEST(Banks, BadAccessesAreRefused) {
    const auto map = affine_map(parse_composed("32:2").value()).value();
    EXPECT_FALSE(bank_conflict(map, 4));
    EXPECT_FALSE(bank_conflict(map, 3));
    EXPECT_FALSE(bank_conflict(map, 32));
    EXPECT_FALSE(bank_conflict(affine_map(parse_composed("64:4").value()).value(), 4));
}

}  // namespace banks_test
}  // namespace tw::layout
