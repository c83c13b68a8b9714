#include "layout/int_tuple.h"

#include <gtest/gtest.h>

namespace tw::layout {
namespace int_tuple_test {

TEST(IntTuple, KeepsItsTree) {
    const IntTuple t = tuple(4, tuple(2, 8), tuple());
    EXPECT_EQ(to_string(t), "(4,(2,8),())");
    EXPECT_EQ(t.rank(), 3);
    EXPECT_EQ(t.depth(), 2);
    EXPECT_EQ(to_string(t[1]), "(2,8)");
    EXPECT_EQ(t[1][1].value(), 8);
    EXPECT_EQ(t[2].rank(), 0);
    EXPECT_EQ(IntTuple(7).rank(), 1);
    EXPECT_EQ(IntTuple(7)[0].value(), 7);
}

TEST(IntTuple, EqualityLooksAtTreeAndNumbers) {
    EXPECT_EQ(tuple(1, tuple(2, 3)), tuple(1, tuple(2, 3)));
    EXPECT_FALSE(tuple(1, tuple(2, 3)) == tuple(1, 2, 3));
    EXPECT_FALSE(tuple(1, 2) == tuple(1, 3));
    EXPECT_FALSE(tuple(5) == IntTuple(5));
    EXPECT_TRUE(congruent(tuple(1, tuple(2, 3)), tuple(9, tuple(8, 7))));
    EXPECT_FALSE(congruent(tuple(tuple(1, 2), 3), tuple(1, tuple(2, 3))));
}

TEST(IntTuple, LeavesAndBack) {
    const IntTuple t = tuple(tuple(1, 2), 3, tuple(tuple(4)));
    const FlatInts flat = leaves(t);
    ASSERT_EQ(flat.size(), 4u);
    EXPECT_EQ(flat[3], 4);
    EXPECT_EQ(unflatten(flat, t), t);
    EXPECT_EQ(product(t).value(), 24);
    EXPECT_EQ(to_string(product_each(t).value()), "(2,3,4)");
}

TEST(IntTuple, ProductThatDoesNotFitIsAnError) { EXPECT_FALSE(product(tuple(std::int64_t{1} << 40, std::int64_t{1} << 40))); }

TEST(IntTuple, GrowsPastItsInlineStorageAndCopies) {
    IntTuple t = IntTuple::empty();
    for (int i = 0; i < 100; ++i) t.push_back(tuple(i, i + 1));
    IntTuple copy = t;
    IntTuple moved = std::move(t);
    EXPECT_EQ(copy, moved);
    EXPECT_EQ(copy[99][1].value(), 100);
    copy = tuple(1);
    EXPECT_EQ(to_string(copy), "(1)");
    copy.push_back(moved);
    EXPECT_EQ(copy.rank(), 2);
    moved.push_back(moved);  // a part of itself
    EXPECT_EQ(moved.rank(), 101);
}

}  // namespace int_tuple_test
}  // namespace tw::layout
