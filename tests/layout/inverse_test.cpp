#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/image.h"
#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace inverse_test {

using testing::Random;

Layout parse(const char* text) { return parse_layout(text).value(); }

TEST(RightInverse, UndoesFromTheRight) {
    Random random(31);
    int longer = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout l = random.any();
        const Layout r = right_inverse(l).value();
        for (std::int64_t i = 0; i < r.size(); ++i) ASSERT_EQ(l(r(i)), i) << to_string(l) << " " << to_string(r);
        longer += r.size() > 1;
    }
    EXPECT_GT(longer, 1500);
}

TEST(RightInverse, IsWholeForBijections) {
    Random random(32);
    for (int round = 0; round < 1000; ++round) {
        const Layout l = random.compact();
        const Layout r = right_inverse(l).value();
        ASSERT_EQ(r.size(), l.size()) << to_string(l);
        for (std::int64_t i = 0; i < l.size(); ++i) ASSERT_EQ(r(l(i)), i);
    }
}

TEST(LeftInverse, UndoesFromTheLeft) {
    Random random(33);
    int made = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout l = random.any();
        const auto r = left_inverse(l);
        if (!r) continue;
        ++made;
        for (std::int64_t i = 0; i < l.size(); ++i)
            ASSERT_EQ(evaluate_extended(*r, l(i)).value(), i) << to_string(l) << " " << to_string(*r);
        ASSERT_LE(l.cosize(), std::max<std::int64_t>(r->size(), 1)) << to_string(l) << " " << to_string(*r);
    }
    EXPECT_GT(made, 1500);
}

TEST(LeftInverse, ExistsForNestedLayouts) {
    Random random(34);
    for (int round = 0; round < 1000; ++round) EXPECT_TRUE(left_inverse(random.nested())) << "round " << round;
}

TEST(LeftInverse, GapsThatAreNoMultipleOfTheMode) {
    const Layout r = left_inverse(parse("(2,2):(1,3)")).value();
    EXPECT_EQ(to_string(r), "(3,2):(1,2)");
    EXPECT_FALSE(left_inverse(parse("(2,2):(2,3)")));
    EXPECT_FALSE(left_inverse(parse("(2,2):(1,1)")));
    const auto zero = left_inverse(parse("(2,4):(1,0)"));
    ASSERT_FALSE(zero);
    EXPECT_NE(zero.error().message.find("mode 1 (4:0)"), std::string::npos);
}

TEST(MaxCommonVector, IsContiguousInBothAndAsLongAsItGets) {
    Random random(35);
    int longer = 0;
    for (int round = 0; round < 3000; ++round) {
        const Layout a = random.nested(96);
        // The same coordinates, another arrangement: now and then sharing the fastest mode.
        FlatInts keys;
        for (std::size_t i = 0; i < leaves(a.shape()).size(); ++i) keys.push_back(random.below(4));
        const Layout b = make_ordered_layout(a.shape(), unflatten(keys, a.shape())).value();
        const Layout r = max_common_layout(a, b).value();
        EXPECT_EQ(max_common_vector(a, b).value(), r.size());
        for (std::int64_t i = 0; i < r.size(); ++i) {
            ASSERT_EQ(a(r(i)), i) << to_string(a) << to_string(b) << to_string(r);
            ASSERT_EQ(b(r(i)), i) << to_string(a) << to_string(b) << to_string(r);
        }
        longer += r.size() > 1;
    }
    EXPECT_GT(longer, 300);
    EXPECT_EQ(max_common_vector(parse("(8,4):(1,8)"), parse("(8,4):(1,16)")).value(), 8);
    EXPECT_EQ(max_common_vector(parse("(8,4):(1,8)"), parse("(8,4):(1,8)")).value(), 32);
    EXPECT_EQ(max_common_vector(parse("(8,4):(1,8)"), parse("(8,4):(4,1)")).value(), 1);
    EXPECT_FALSE(max_common_vector(parse("4:1"), parse("8:1")));
}

}  // namespace inverse_test
}  // namespace tw::layout
