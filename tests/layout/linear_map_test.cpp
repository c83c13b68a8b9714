#include "layout/linear_map.h"

#include <gtest/gtest.h>

#include <set>

#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace linear_map_test {

using testing::Random;

LinearMap random_map(Random& random, int in_bits, int out_bits) {
    std::vector<std::uint64_t> columns;
    for (int j = 0; j < in_bits; ++j) columns.push_back(static_cast<std::uint64_t>(random.below(std::int64_t{1} << out_bits)));
    return LinearMap(columns, out_bits);
}

TEST(AffineMap, IsTheLayoutAtEveryCoordinate) {
    Random random(71);
    int made = 0, refused = 0;
    for (int round = 0; round < 3000; ++round) {
        const Layout l = random.chance(60) ? random.binary() : random.any(64);
        const ComposedLayout c = ComposedLayout::make(random.swizzle(), random.pick<std::int64_t>({0, 0, 1, 32, 1024}), l).value();
        const auto map = affine_map(c);
        // Over GF(2) is exactly: extents are powers of two, and offset(i ^ j) = offset(i) ^ offset(j) ^ offset(0).
        bool powers = true;
        for (const Mode& m : l.modes()) powers = powers && is_power_of_two(m.shape);
        bool linear = powers;
        for (std::int64_t i = 0; i < c.size() && linear; ++i) {
            std::int64_t x = c(0);
            for (std::int64_t b = 1; b < c.size(); b *= 2)
                if (i & b) x ^= c(b) ^ c(0);
            linear = x == c(i);
        }
        // An offset may carry and the sum be affine all the same; without one the conversion is exact.
        if (c.offset() == 0 || map) {
            ASSERT_EQ(map.has_value(), linear) << to_string(c) << (map ? "" : map.error().message);
        }
        (map ? made : refused) += 1;
        if (!map) continue;
        std::int64_t largest = 0;
        for (std::int64_t i = 0; i < c.size(); ++i) {
            ASSERT_EQ(static_cast<std::int64_t>((*map)(static_cast<std::uint64_t>(i))), c(i)) << to_string(c);
            largest = std::max(largest, c(i));
        }
        ASSERT_EQ(static_cast<std::int64_t>(map->max_value()), largest);
    }
    EXPECT_GT(made, 800);
    EXPECT_GT(refused, 300);
}

TEST(LinearMap, TheMatrixInTheHeader) {
    const auto map = affine_map(parse_composed("Sw<2,0,3> o 0 o (4,8):(8,1)").value()).value();
    EXPECT_EQ(to_string(map.linear), "1 . 1 . .\n. 1 . 1 .\n. . . . 1\n1 . . . .\n. 1 . . .\n");
}

TEST(LinearMap, RankKernelAndSolveAgreeWithCounting) {
    Random random(72);
    for (int round = 0; round < 1000; ++round) {
        const int in = static_cast<int>(random.below(7)), out = static_cast<int>(random.between(1, 7));
        const LinearMap m = random_map(random, in, out);
        std::set<std::uint64_t> image;
        std::int64_t zeros = 0;
        for (std::uint64_t x = 0; x < (1u << in); ++x) {
            image.insert(m(x));
            zeros += m(x) == 0;
        }
        ASSERT_EQ(image.size(), std::size_t{1} << m.rank());
        ASSERT_EQ(zeros, std::int64_t{1} << m.kernel().size());
        for (std::uint64_t k : m.kernel()) ASSERT_EQ(m(k), 0u);
        ASSERT_EQ(m.is_injective(), zeros == 1);
        for (std::uint64_t y = 0; y < (1u << out); ++y) {
            const auto x = m.solve(y);
            ASSERT_EQ(x.has_value(), image.count(y) == 1);
            if (x) {
                ASSERT_EQ(m(*x), y);
            }
        }
        ASSERT_EQ(m.transpose().transpose(), m);
        ASSERT_EQ(m.transpose().rank(), m.rank());
        for (int i = 0; i < out; ++i)
            for (std::uint64_t x = 0; x < (1u << in); ++x)
                ASSERT_EQ(m(x) >> i & 1, static_cast<std::uint64_t>(__builtin_parityll(m.row(i) & x)));
    }
}

TEST(LinearMap, ComposeInvertJoin) {
    Random random(73);
    int inverted = 0;
    for (int round = 0; round < 1000; ++round) {
        const int a = static_cast<int>(random.between(1, 6)), b = static_cast<int>(random.between(1, 6)),
                  c = static_cast<int>(random.between(1, 6));
        const LinearMap f = random_map(random, b, c), g = random_map(random, a, b);
        const LinearMap fg = compose(f, g).value();
        for (std::uint64_t x = 0; x < (1u << a); ++x) ASSERT_EQ(fg(x), f(g(x)));
        const LinearMap square = random_map(random, a, a);
        const auto inverse = invert(square);
        ASSERT_EQ(inverse.has_value(), square.is_injective());
        if (inverse) {
            ++inverted;
            ASSERT_EQ(compose(*inverse, square).value(), LinearMap::identity(a));
            ASSERT_EQ(compose(square, *inverse).value(), LinearMap::identity(a));
        }
        const LinearMap both = join(g, f).value();
        for (std::uint64_t x = 0; x < (1u << a); ++x)
            for (std::uint64_t y = 0; y < (1u << b); ++y) ASSERT_EQ(both(x | y << a), g(x) ^ f(y));
    }
    EXPECT_GT(inverted, 200);
    EXPECT_FALSE(compose(LinearMap::identity(2), LinearMap::identity(3)));
    EXPECT_FALSE(invert(LinearMap::zero(2, 3)));
}

TEST(LinearMap, SwizzleIsItsOwnInverse) {
    Random random(74);
    for (int round = 0; round < 300; ++round) {
        const Swizzle s = random.swizzle();
        const auto m = swizzle_matrix(s, 14);
        ASSERT_TRUE(m);
        EXPECT_EQ(compose(*m, *m).value(), LinearMap::identity(14));
        for (std::uint64_t x = 0; x < 1u << 14; x += 37) ASSERT_EQ((*m)(x), static_cast<std::uint64_t>(s(static_cast<std::int64_t>(x))));
    }
    EXPECT_FALSE(swizzle_matrix(Swizzle::make(1, 0, -4).value(), 4));
}

}  // namespace linear_map_test
}  // namespace tw::layout
