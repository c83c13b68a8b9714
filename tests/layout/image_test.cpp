#include "layout/image.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace image_test {

using testing::Random;

ComposedLayout parse(const char* text) { return parse_composed(text).value(); }

ComposedLayout random_composed(Random& random, std::int64_t room) {
    if (random.chance(50)) return ComposedLayout(random.any(room));
    return ComposedLayout::make(random.swizzle(), random.below(40), random.chance(50) ? random.binary(6) : random.any(room)).value();
}

// Strides of either sign, to exercise the reflections.
Layout random_signed(Random& random, std::int64_t room) {
    const Layout l = random.any(room);
    FlatInts strides = leaves(l.stride());
    for (std::int64_t& d : strides)
        if (random.chance(30)) d = -d;
    return Layout::make(l.shape(), unflatten(strides, l.shape())).value();
}

TEST(IsInjective, AgreesWithCounting) {
    Random random(81);
    int verdicts[2] = {};
    for (int round = 0; round < 6000; ++round) {
        const ComposedLayout c = random.chance(30) ? ComposedLayout(random_signed(random, 100)) : random_composed(random, 100);
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < c.size(); ++i) seen.insert(c(i));
        const bool expected = static_cast<std::int64_t>(seen.size()) == c.size();
        const ImageAnswer answer = is_injective(c);
        ASSERT_EQ(answer.verdict, expected ? Verdict::yes : Verdict::no) << to_string(c) << " " << answer.how;
        ++verdicts[expected];
        if (!expected && answer.witness) {
            ASSERT_NE(answer.witness->first, answer.witness->second);
            ASSERT_EQ(c(answer.witness->first), c(answer.witness->second)) << to_string(c);
        }
        ASSERT_TRUE(expected || answer.witness);
    }
    EXPECT_GT(verdicts[0], 500);
    EXPECT_GT(verdicts[1], 1000);
}

TEST(IsInjective, DecidesLayoutsNobodyCouldEnumerate) {
    EXPECT_EQ(is_injective(parse("(1000000,1000000):(1000000,1)")).verdict, Verdict::yes);
    EXPECT_EQ(is_injective(parse("(1000000,1000001):(1000000,1)")).verdict, Verdict::no);
    // Interleaved, coprime strides: injective exactly up to the other's stride.
    EXPECT_EQ(is_injective(parse("(1000003,999983):(999983,1000003)")).verdict, Verdict::yes);
    EXPECT_EQ(is_injective(parse("(1000004,999984):(999983,1000003)")).verdict, Verdict::no);
}

TEST(IsInjective, SaysSoWhenItGivesUp) {
    ImageLimits limits;
    limits.search_steps = 3;
    limits.enumeration = 3;
    EXPECT_EQ(is_injective(parse("(7,7,7,7):(61,67,71,1009)"), limits).verdict, Verdict::too_large);
}

TEST(IsBijectiveOnto, AgreesWithCounting) {
    Random random(82);
    int yes = 0;
    for (int round = 0; round < 6000; ++round) {
        ComposedLayout c = random_composed(random, 64);
        if (random.chance(60))
            c = ComposedLayout::make(random.chance(30) ? Swizzle() : random.swizzle(), 0,
                                     random.chance(50) ? random.compact(64) : random.binary(6))
                    .value();
        const std::int64_t n = random.chance(80) ? c.size() : random.between(1, 64);
        std::multiset<std::int64_t> seen;
        for (std::int64_t i = 0; i < c.size(); ++i) seen.insert(c(i));
        bool expected = static_cast<std::int64_t>(seen.size()) == n;
        for (std::int64_t i = 0; i < n; ++i) expected = expected && seen.count(i) == 1;
        const ImageAnswer answer = is_bijective_onto(c, n);
        ASSERT_EQ(answer.verdict, expected ? Verdict::yes : Verdict::no) << to_string(c) << " onto " << n << ": " << answer.how;
        yes += expected;
    }
    EXPECT_GT(yes, 800);
    EXPECT_EQ(is_bijective_onto(parse("Sw<3,4,3> o 0 o (1048576,1024):(1024,1)"), std::int64_t{1} << 30).verdict, Verdict::yes);
}

TEST(AreDisjoint, AgreesWithSets) {
    Random random(83);
    int verdicts[2] = {};
    for (int round = 0; round < 6000; ++round) {
        ComposedLayout a = random_composed(random, 24), b = random_composed(random, 24);
        if (random.chance(40)) {  // the same swizzle, shifted
            const Swizzle s = random.swizzle();
            a = ComposedLayout::make(s, random.below(60), random.any(24)).value();
            b = ComposedLayout::make(s, random.below(60), random.any(24)).value();
        } else if (random.chance(20)) {
            a = ComposedLayout(random_signed(random, 24));
            b = ComposedLayout(random_signed(random, 24));
        } else if (random.chance(50)) {  // images that meet seldom
            a = ComposedLayout::make(random.swizzle(), 0, random.binary(4)).value();
            b = ComposedLayout::make(random.swizzle(), random.between(1, 100), random.binary(4)).value();
        }
        std::set<std::int64_t> image;
        for (std::int64_t i = 0; i < a.size(); ++i) image.insert(a(i));
        bool expected = true;
        for (std::int64_t i = 0; i < b.size(); ++i) expected = expected && !image.count(b(i));
        const ImageAnswer answer = are_disjoint(a, b);
        ASSERT_EQ(answer.verdict, expected ? Verdict::yes : Verdict::no) << to_string(a) << " | " << to_string(b) << ": " << answer.how;
        if (!expected) {
            ASSERT_TRUE(answer.witness);
            ASSERT_EQ(a(answer.witness->first), b(answer.witness->second)) << answer.how;
        }
        ++verdicts[expected];
    }
    EXPECT_GT(verdicts[0], 1000);
    EXPECT_GT(verdicts[1], 500);
    // Even and odd bytes of a gigabyte.
    EXPECT_EQ(are_disjoint(parse("536870912:2"), parse("Sw<0,0,0> o 1 o 536870912:2")).verdict, Verdict::yes);
    EXPECT_EQ(are_disjoint(parse("536870912:2"), parse("Sw<0,0,0> o 1 o 536870912:3")).verdict, Verdict::no);
}

TEST(EqualFunctions, AgreesWithComparing) {
    Random random(84);
    int equal = 0;
    for (int round = 0; round < 6000; ++round) {
        const ComposedLayout a = random_composed(random, 48);
        ComposedLayout b = random_composed(random, 48);
        if (random.chance(40)) {
            // Something that may be equal: another writing of the same layout, or another swizzle.
            const Layout inner = random.chance(50) ? coalesce(a.layout()) : flatten(a.layout());
            const auto made = ComposedLayout::make(random.chance(50) ? a.swizzle() : random.swizzle(), a.offset(), inner);
            b = *made;
        }
        bool expected = a.size() == b.size();
        for (std::int64_t i = 0; i < a.size() && expected; ++i) expected = a(i) == b(i);
        const ImageAnswer answer = equal_functions(a, b);
        ASSERT_EQ(answer.verdict, expected ? Verdict::yes : Verdict::no) << to_string(a) << " | " << to_string(b) << ": " << answer.how;
        if (!expected && a.size() == b.size()) {
            ASSERT_TRUE(answer.witness) << to_string(a) << " | " << to_string(b);
            ASSERT_NE(a(answer.witness->first), b(answer.witness->second)) << to_string(a) << " | " << to_string(b);
        }
        equal += expected;
    }
    EXPECT_GT(equal, 800);
    // A swizzle that XORs bits which the layout never sets is no swizzle: proved, not enumerated.
    EXPECT_EQ(equal_functions(parse("Sw<1,0,40> o 0 o (1048576,1048576):(1,1048576)"), parse("(1048576,1048576):(1,1048576)")).verdict,
              Verdict::yes);
}

TEST(Contains, AgreesWithSearching) {
    Random random(85);
    for (int round = 0; round < 2000; ++round) {
        const ComposedLayout a = random_composed(random, 32);
        const std::int64_t offset = random.below(80);
        bool expected = false;
        for (std::int64_t i = 0; i < a.size(); ++i) expected = expected || a(i) == offset;
        const ImageAnswer answer = contains(a, offset);
        ASSERT_EQ(answer.verdict, expected ? Verdict::yes : Verdict::no) << to_string(a) << " " << offset;
        if (expected) {
            ASSERT_EQ(a(answer.witness->first), offset);
        }
    }
}

}  // namespace image_test
}  // namespace tw::layout
