#include "layout/thread_value.h"

#include <gtest/gtest.h>

#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace thread_value_test {

using testing::Random;

Layout parse(const char* text) { return parse_layout(text).value(); }

TEST(ThreadValue, TheTableInTheHeader) {
    const ThreadValueLayout tv = make_thread_value(parse("(2,2):(2,1)"), parse("(2,1):(1,2)")).value();
    EXPECT_EQ(to_string(tv), "((2,2),2):((4,2),1) over (4,2)");
    const auto owners = owners_of(tv).value();
    const std::int64_t expected[8][2] = {{0, 0}, {0, 1}, {2, 0}, {2, 1}, {1, 0}, {1, 1}, {3, 0}, {3, 1}};
    for (int i = 0; i < 8; ++i) {
        ASSERT_EQ(owners[i].size(), 1u);
        EXPECT_EQ(owners[i][0].thread, expected[i][0]);
        EXPECT_EQ(owners[i][0].value, expected[i][1]);
    }
}

TEST(ThreadValue, GridAndBlockMeetAtEveryElement) {
    Random random(61);
    for (int round = 0; round < 500; ++round) {
        const Layout threads =
            make_ordered_layout(tuple(random.between(1, 6), random.between(1, 6)), tuple(random.below(2), random.below(2))).value();
        const Layout values =
            make_ordered_layout(tuple(random.between(1, 4), random.between(1, 4)), tuple(random.below(2), random.below(2))).value();
        const ThreadValueLayout tv = make_thread_value(threads, values).value();
        ASSERT_EQ(tv.threads(), threads.size());
        ASSERT_EQ(tv.values(), values.size());
        const std::int64_t v0 = values[0].size(), v1 = values[1].size();
        const std::int64_t rows = threads[0].size() * v0, columns = threads[1].size() * v1;
        ASSERT_EQ(tv.tile(), tuple(rows, columns));
        const Layout owner = owner_layout(tv).value();
        for (std::int64_t m = 0; m < rows; ++m)
            for (std::int64_t n = 0; n < columns; ++n) {
                const std::int64_t thread = threads.at(tuple(m / v0, n / v1)).value();
                const std::int64_t value = values.at(tuple(m % v0, n % v1)).value();
                ASSERT_EQ(tv.map().at(tuple(thread, value)).value(), m + rows * n) << to_string(threads) << to_string(values);
                ASSERT_EQ(owner(m + rows * n), thread + tv.threads() * value);
            }
    }
}

TEST(ThreadValue, PartitionGivesEachThreadItsOffsets) {
    Random random(62);
    int made = 0;
    for (int round = 0; round < 500; ++round) {
        const Layout threads = make_ordered_layout(tuple(random.pick<std::int64_t>({1, 2, 4}), random.pick<std::int64_t>({1, 2, 4, 8})),
                                                   tuple(random.below(2), random.below(2)))
                                   .value();
        const Layout values = make_ordered_layout(tuple(random.pick<std::int64_t>({1, 2}), random.pick<std::int64_t>({1, 2, 4})),
                                                  tuple(random.below(2), random.below(2)))
                                  .value();
        const ThreadValueLayout tv = make_thread_value(threads, values).value();
        // A larger swizzled tensor; the tile is its corner.
        const Layout inner =
            make_ordered_layout(tuple(16, tuple(4, 16)), tuple(random.below(3), tuple(random.below(3), random.below(3)))).value();
        const ComposedLayout tensor = ComposedLayout::make(random.swizzle(), random.below(64), inner).value();
        const auto all = partition(tensor, tv);
        ASSERT_TRUE(all) << all.error().message;
        ++made;
        for (std::int64_t t = 0; t < tv.threads(); ++t) {
            const ComposedLayout own = partition(tensor, tv, t).value();
            for (std::int64_t v = 0; v < tv.values(); ++v) {
                const std::int64_t element = tv.map().at(tuple(t, v)).value();
                const std::int64_t rows = tv.tile()[0].value();
                const std::int64_t expected = tensor.at(tuple(element % rows, element / rows)).value();
                ASSERT_EQ(all->at(tuple(t, v)).value(), expected);
                ASSERT_EQ(own(v), expected);
            }
        }
    }
    EXPECT_EQ(made, 500);
}

TEST(ThreadValue, SharedElementsHaveSeveralOwnersAndNoInverse) {
    // Two threads hold each element.
    const ThreadValueLayout tv = ThreadValueLayout::make(parse("((2,4),2):((0,1),4)"), tuple(4, 2)).value();
    EXPECT_FALSE(owner_layout(tv));
    const auto owners = owners_of(tv).value();
    for (const auto& o : owners) EXPECT_EQ(o.size(), 2u);
}

TEST(ThreadValue, BadOnesAreRefused) {
    EXPECT_FALSE(ThreadValueLayout::make(parse("8:1"), tuple(4, 2)));
    EXPECT_FALSE(ThreadValueLayout::make(parse("(4,4):(1,4)"), tuple(4, 2)));
    EXPECT_FALSE(make_thread_value(parse("(4,2):(2,0)"), parse("2:1")));
    EXPECT_FALSE(make_thread_value(parse("4:2"), parse("2:1")));
    const ThreadValueLayout tv = make_thread_value(parse("(4,2):(2,1)"), parse("(2,2):(1,2)")).value();
    EXPECT_FALSE(partition(ComposedLayout(parse("(4,4):(1,4)")), tv));
    EXPECT_FALSE(partition(ComposedLayout(parse("(8,4):(1,8)")), tv, 8));
    EXPECT_TRUE(partition(ComposedLayout(parse("(8,4):(1,8)")), tv, 7));
}

}  // namespace thread_value_test
}  // namespace tw::layout
