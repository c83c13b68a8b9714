#include <gtest/gtest.h>

#include <set>

#include "layout/algebra.h"
#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace complement_test {

using testing::Random;

Layout parse(const char* text) { return parse_layout(text).value(); }

TEST(Complement, Examples) {
    EXPECT_EQ(to_string(complement(parse("4:2"), 24).value()), "(2,3):(1,8)");
    EXPECT_EQ(to_string(complement(parse("4:1"), 24).value()), "6:4");
    EXPECT_EQ(to_string(complement(parse("6:4"), 24).value()), "4:1");
    EXPECT_EQ(to_string(complement(parse("(4,6):(1,4)"), 24).value()), "1:0");
    EXPECT_EQ(to_string(complement(parse("(2,2):(1,6)"), 24).value()), "(3,2):(2,12)");
}

// Every stride, sorted, a multiple of what lies below it.
bool tiles_evenly(const Layout& a) {
    FlatModes modes = a.modes();
    std::sort(modes.begin(), modes.end(), [](const Mode& x, const Mode& y) { return x.stride < y.stride; });
    std::int64_t filled = 1;
    for (const Mode& m : modes) {
        if (m.shape == 1 || m.stride == 0) continue;
        if (m.stride % filled != 0) return false;
        filled = m.shape * m.stride;
    }
    return true;
}

TEST(Complement, FillsTheRangeOnceAndInOrder) {
    Random random(21);
    int made = 0, full = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout a = filter(random.any(60));
        const std::int64_t max = random.between(1, 200);
        const auto r = complement(a, max);
        if (!r) continue;
        ++made;
        EXPECT_EQ(*r, coalesce(*r));
        std::set<std::int64_t> all;
        for (std::int64_t j = 0; j < r->size(); ++j) {
            if (j) {
                ASSERT_GT((*r)(j), (*r)(j - 1)) << to_string(a) << " " << to_string(*r);
            }
            for (std::int64_t i = 0; i < a.size(); ++i) all.insert(a(i) + (*r)(j));
        }
        ASSERT_EQ(static_cast<std::int64_t>(all.size()), a.size() * r->size()) << to_string(a) << " " << to_string(*r);
        if (tiles_evenly(a)) {
            ++full;
            EXPECT_EQ(*all.rbegin() + 1, static_cast<std::int64_t>(all.size())) << to_string(a) << " " << to_string(*r);
            EXPECT_GE(*all.rbegin() + 1, max);
        }
    }
    EXPECT_GT(made, 1000);
    EXPECT_GT(full, 1000);
}

TEST(Complement, RefusesOverlapsAndNamesThem) {
    const auto r = complement(parse("(4,(2,2)):(1,(2,32))"), 64);
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("mode 1.0 (2:2)"), std::string::npos) << r.error().message;
    EXPECT_NE(r.error().message.find("mode 0 (4:1)"), std::string::npos) << r.error().message;
    EXPECT_FALSE(complement(parse("4:-1"), 8));
    EXPECT_FALSE(complement(parse("4:1"), 0));
    EXPECT_TRUE(complement(parse("(4,8):(1,0)"), 8));  // stride 0 is the same place, not an overlap
}

}  // namespace complement_test
}  // namespace tw::layout
