#include "layout/swizzle.h"

#include <gtest/gtest.h>

#include <set>

#include "layout/image.h"
#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace swizzle_test {

using testing::Random;

ComposedLayout parse(const char* text) { return parse_composed(text).value(); }

// Bit by bit, as the picture in the header says it.
std::int64_t by_bits(int bits, int base, int shift, std::int64_t x) {
    std::int64_t out = x;
    for (int k = 0; k < bits; ++k) {
        const int y = base + k + std::max(shift, 0), z = base + k + std::max(-shift, 0);
        out ^= (x >> y & 1) << z;
    }
    return out;
}

TEST(Swizzle, MovesTheFieldsThatTheHeaderDraws) {
    for (int bits = 0; bits <= 3; ++bits)
        for (int base = 0; base <= 4; ++base)
            for (int shift = -5; shift <= 5; ++shift) {
                const auto s = Swizzle::make(bits, base, shift);
                ASSERT_EQ(s.has_value(), std::abs(shift) >= bits);
                if (!s) continue;
                std::set<std::int64_t> seen;
                const std::int64_t n = std::int64_t{1} << (bits + base + std::abs(shift));
                for (std::int64_t x = 0; x < n; ++x) {
                    ASSERT_EQ((*s)(x), by_bits(bits, base, shift, x));
                    ASSERT_EQ((*s)((*s)(x)), x);
                    ASSERT_EQ((x ^ (*s)(x)) & ~s->zzz_mask(), 0);
                    seen.insert((*s)(x));
                }
                ASSERT_EQ(static_cast<std::int64_t>(seen.size()), n);
                ASSERT_EQ(*seen.rbegin(), n - 1);
            }
    EXPECT_FALSE(Swizzle::make(-1, 0, 0));
    EXPECT_FALSE(Swizzle::make(3, 60, 3));
    EXPECT_FALSE(Swizzle::make(1, 1, 2000000000));
    EXPECT_TRUE(Swizzle::make(0, 4, 3).value() == Swizzle());
}

TEST(ComposedLayout, IsSwizzleOfOffsetPlusLayout) {
    Random random(51);
    for (int round = 0; round < 1000; ++round) {
        const Layout l = random.any();
        const Swizzle s = random.swizzle();
        const std::int64_t k = random.below(50);
        const ComposedLayout c = ComposedLayout::make(s, k, l).value();
        std::int64_t largest = 0;
        for (std::int64_t i = 0; i < l.size(); ++i) {
            ASSERT_EQ(c(i), by_bits(s.bits(), s.base(), s.shift(), k + l(i)));
            ASSERT_EQ(c.at(idx2crd(i, l.shape()).value()).value(), c(i));
            largest = std::max(largest, c(i));
        }
        ASSERT_EQ(cosize(c).value(), largest + 1) << to_string(c);
    }
    EXPECT_FALSE(ComposedLayout::make(Swizzle::make(1, 0, 1).value(), 0, parse_layout("4:-1").value()));
    EXPECT_FALSE(ComposedLayout::make(Swizzle(), kMaxExtent - 1, parse_layout("4:1").value()));
}

TEST(ComposedLayout, RearrangingActsInside) {
    Random random(52);
    int made = 0;
    for (int round = 0; round < 1000; ++round) {
        const ComposedLayout a = ComposedLayout::make(random.swizzle(), random.below(20), random.nested(96)).value();
        const Layout b = random.compact(24);
        const auto r = composition(a, Tiler(b));
        if (!r || b.cosize() > a.size()) continue;
        ++made;
        for (std::int64_t i = 0; i < b.size(); ++i) ASSERT_EQ((*r)(i), a(b(i)));
        const auto divided = on_inner(a, [&](const Layout& inner) { return logical_divide(inner, Tiler(b)); });
        if (!divided) continue;
        for (std::int64_t i = 0; i < b.size(); ++i) ASSERT_EQ(divided->at(tuple(i, 0)).value(), a(b(i)));
    }
    EXPECT_GT(made, 200);
}

TEST(ComposedLayout, TwoSwizzlesOnlyWhereOneIsEnough) {
    const Swizzle s = Swizzle::make(3, 4, 3).value();
    EXPECT_EQ(to_string(composition(s, parse("(8,64):(64,1)")).value()), "Sw<3,4,3> o 0 o (8,64):(64,1)");
    EXPECT_EQ(to_string(composition(s, composition(s, parse("(8,64):(64,1)")).value()).value()), "(8,64):(64,1)");
    EXPECT_FALSE(composition(Swizzle::make(2, 4, 3).value(), parse("Sw<3,4,3> o 0 o (8,64):(64,1)")));
}

TEST(RightInverse, ThroughASwizzle) {
    Random random(53);
    int made = 0;
    for (int round = 0; round < 3000; ++round) {
        const ComposedLayout a =
            ComposedLayout::make(random.swizzle(), 0, random.chance(50) ? random.binary() : random.compact(64)).value();
        const auto r = right_inverse(a);
        if (!r) continue;
        made += !r->is_plain() && r->size() > 1;
        for (std::int64_t i = 0; i < r->size(); ++i) ASSERT_EQ(a((*r)(i)), i) << to_string(a) << " -> " << to_string(*r);
    }
    EXPECT_GT(made, 80);
    EXPECT_EQ(to_string(right_inverse(parse("Sw<3,3,3> o 0 o (64,64):(64,1)")).value()), "Sw<3,0,-9> o 0 o (64,64):(64,1)");
    EXPECT_FALSE(right_inverse(parse("Sw<3,3,3> o 8 o (64,64):(64,1)")));
}

// ---- element width ------------------------------------------------------------------------------------------------------

TEST(Upcast, OffsetsAreDividedAndCoordinatesFollow) {
    Random random(54);
    int made = 0, refused = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout l = random.any();
        const std::int64_t n = random.pick<std::int64_t>({1, 2, 3, 4, 6, 8, 16});
        const auto r = upcast(l, n);
        if (!r) {
            ++refused;
            continue;
        }
        ++made;
        ASSERT_TRUE(congruent(r->shape(), l.shape()));
        const FlatModes modes = l.modes();
        for (std::int64_t i = 0; i < l.size(); ++i) {
            FlatInts x = leaves(idx2crd(i, l.shape()).value());
            for (std::size_t k = 0; k < modes.size(); ++k)
                if (modes[k].stride > 0 && modes[k].stride < n && n % modes[k].stride == 0) x[k] /= n / modes[k].stride;
            ASSERT_EQ(r->at(unflatten(x, l.shape())).value(), l(i) / n) << to_string(l) << " by " << n << " = " << to_string(*r);
        }
    }
    EXPECT_GT(made, 800);
    EXPECT_GT(refused, 800);
    EXPECT_EQ(to_string(upcast(parse_layout("(8,64):(64,1)").value(), 8).value()), "(8,8):(8,1)");
    const auto bad = upcast(parse_layout("(8,(6,2)):(64,(1,6))").value(), 4);
    ASSERT_FALSE(bad);
    EXPECT_NE(bad.error().message.find("mode 1.0 (6:1)"), std::string::npos) << bad.error().message;
    EXPECT_FALSE(upcast(parse_layout("(2,2):(1,1)").value(), 2));  // 1 + 1 carries into the next element
}

TEST(Downcast, EachElementBecomesSeveral) {
    Random random(55);
    int made = 0;
    for (int round = 0; round < 3000; ++round) {
        const Layout l = random.compact(60);
        const std::int64_t n = random.between(1, 8);
        const auto r = downcast(l, n);
        if (!r) continue;
        ++made;
        const FlatModes modes = l.modes();
        const FlatInts wide = leaves(r->shape());
        // The leaf that grew.
        std::size_t unit = 0;
        while (unit < modes.size() && wide[unit] == modes[unit].shape) ++unit;
        ASSERT_TRUE(n == 1 || unit < modes.size());
        for (std::int64_t i = 0; i < r->size(); ++i) {
            FlatInts x = leaves(idx2crd(i, r->shape()).value());
            const std::int64_t part = n == 1 ? 0 : x[unit] % n;
            if (n > 1) x[unit] /= n;
            ASSERT_EQ((*r)(i), n * l.at(unflatten(x, l.shape())).value() + part) << to_string(l) << " " << to_string(*r);
        }
        // Up again is where we came from.
        EXPECT_EQ(coalesce(upcast(*r, n).value()), coalesce(l));
    }
    EXPECT_GT(made, 2000);
    EXPECT_FALSE(downcast(parse_layout("4:2").value(), 2));
    EXPECT_FALSE(downcast(parse_layout("(4,2):(1,1)").value(), 2));
}

TEST(Recast, ThroughASwizzleKeepsTheBytes) {
    // 2-byte elements to 16-byte vectors and back; byte addresses must agree at both widths.
    const ComposedLayout halves = parse("Sw<3,3,3> o 512 o (64,64):(64,1)");
    const ComposedLayout vectors = recast(halves, 16, 128).value();
    EXPECT_EQ(to_string(vectors), "Sw<3,0,3> o 64 o (64,8):(8,1)");
    for (std::int64_t m = 0; m < 64; ++m)
        for (std::int64_t n = 0; n < 64; ++n)
            ASSERT_EQ(vectors.at(tuple(m, n / 8)).value() * 16 + n % 8 * 2, halves.at(tuple(m, n)).value() * 2);
    EXPECT_EQ(recast(vectors, 128, 16).value(), halves);
    EXPECT_EQ(to_string(recast(parse("Sw<3,3,3> o 0 o (64,64):(64,1)"), 16, 8).value()), "Sw<3,4,3> o 0 o (64,128):(128,1)");
    const auto torn = recast(halves, 16, 256);
    ASSERT_FALSE(torn);
    EXPECT_NE(torn.error().message.find("apart"), std::string::npos) << torn.error().message;
    EXPECT_FALSE(recast(parse("Sw<3,3,3> o 4 o (64,64):(64,1)"), 16, 128));
    EXPECT_FALSE(recast(halves, 16, 0));
}

TEST(Recast, RandomSwizzlesKeepTheBytes) {
    Random random(56);
    int made = 0;
    for (int round = 0; round < 3000; ++round) {
        const ComposedLayout a = ComposedLayout::make(random.swizzle(), 8 * random.below(4), random.binary()).value();
        const std::int64_t n = random.pick<std::int64_t>({2, 4, 8});
        const auto r = upcast(a, n);
        if (!r) continue;
        ++made;
        const FlatModes modes = a.layout().modes();
        for (std::int64_t i = 0; i < a.size(); ++i) {
            FlatInts x = leaves(idx2crd(i, a.layout().shape()).value());
            for (std::size_t k = 0; k < modes.size(); ++k)
                if (modes[k].stride > 0 && modes[k].stride < n) x[k] /= n / modes[k].stride;
            ASSERT_EQ(r->at(unflatten(x, a.layout().shape())).value(), a(i) / n) << to_string(a) << " by " << n;
        }
    }
    EXPECT_GT(made, 500);
}

}  // namespace swizzle_test
}  // namespace tw::layout
