#include <gtest/gtest.h>

#include <set>

#include "layout/algebra.h"
#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace tiling_test {

using testing::Random;

Layout parse(const char* text) { return parse_layout(text).value(); }

TEST(LogicalDivide, IsCompositionWithTheTileAndItsComplement) {
    Random random(41);
    int made = 0;
    for (int round = 0; round < 4000; ++round) {
        const Layout a = random.any(96), b = random.nested(16);
        const auto r = logical_divide(a, Tiler(b));
        const auto rest = complement(b, a.size());
        if (!rest) {
            EXPECT_FALSE(r);
            continue;
        }
        if (!r) continue;
        ++made;
        ASSERT_EQ(r->rank(), 2);
        ASSERT_EQ((*r)[0].size(), b.size());
        ASSERT_GE(r->size(), a.size());
        for (std::int64_t t = 0; t < rest->size(); ++t)
            for (std::int64_t i = 0; i < b.size(); ++i)
                ASSERT_EQ(r->at(tuple(i, t)).value(), evaluate_extended(a, b(i) + (*rest)(t)).value()) << to_string(a) << to_string(b);
    }
    EXPECT_GT(made, 1000);
}

TEST(LogicalDivide, EvenTilesVisitEveryElementOnce) {
    Random random(42);
    int made = 0;
    for (int round = 0; round < 2000; ++round) {
        const Layout a = random.compact(96);
        const std::int64_t n = random.between(1, 12);
        if (a.size() % n != 0) continue;
        const auto r = logical_divide(a, Tiler(Layout::make_mode(n, 1).value()));
        if (!r) continue;
        ++made;
        ASSERT_EQ(r->size(), a.size());
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < r->size(); ++i) seen.insert((*r)(i));
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), a.size());
    }
    EXPECT_GT(made, 300);
}

// The four groupings hold the same numbers: checked coordinate by coordinate on two modes.
template <class Logical, class Zipped, class Tiled, class Flat>
void check_groupings(Logical logical, Zipped zipped, Tiled tiled, Flat flat, std::uint64_t stream) {
    Random random(stream);
    int made = 0;
    for (int round = 0; round < 1500; ++round) {
        const Layout a = make_layout({random.compact(16), random.nested(16), random.compact(4)}).value();
        const Tiler tiler(std::vector<Tiler>{Tiler(random.nested(6)), Tiler(Layout::make_mode(random.between(1, 4), 1).value())});
        const auto l = logical(a, tiler);
        const auto z = zipped(a, tiler);
        ASSERT_EQ(l.has_value(), z.has_value());
        if (!l) continue;
        ++made;
        const Layout t = tiled(a, tiler).value(), f = flat(a, tiler).value();
        ASSERT_EQ(z->rank(), 2);
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ((*z)[0][i], (*l)[i][0]);
            ASSERT_EQ((*z)[1][i], (*l)[i][1]);
        }
        ASSERT_EQ((*z)[1][2], a[2]);
        ASSERT_EQ(t.rank(), 4);
        ASSERT_EQ(t[0], (*z)[0]);
        ASSERT_EQ(f.rank(), 5);
        for (int i = 0; i < 3; ++i) {
            ASSERT_EQ(t[1 + i], (*z)[1][i]);
            ASSERT_EQ(f[2 + i], (*z)[1][i]);
        }
        ASSERT_EQ(f[0], (*z)[0][0]);
        ASSERT_EQ(f[1], (*z)[0][1]);
        for (std::int64_t i = 0; i < z->size(); ++i) ASSERT_EQ(t(i), (*z)(i));
    }
    EXPECT_GT(made, 300);
}

TEST(Divide, GroupingsHoldTheSameModes) { check_groupings(logical_divide, zipped_divide, tiled_divide, flat_divide, 43); }
TEST(Product, GroupingsHoldTheSameModes) { check_groupings(logical_product, zipped_product, tiled_product, flat_product, 44); }

TEST(Divide, Examples) {
    EXPECT_EQ(to_string(logical_divide(parse("(4,2,3):(2,1,8)"), Tiler(parse("4:2"))).value()), "((2,2),(2,3)):((4,1),(2,8))");
    const Layout a = parse("(9,(4,8)):(59,(13,1))");
    const Tiler t(std::vector<Tiler>{Tiler(parse("3:3")), Tiler(parse("(2,4):(1,8)"))});
    EXPECT_EQ(to_string(logical_divide(a, t).value()), "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))");
    EXPECT_EQ(to_string(zipped_divide(a, t).value()), "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))");
    EXPECT_EQ(to_string(zipped_divide(a, Tiler(std::vector<Tiler>{Tiler(), Tiler(parse("4:1"))})).value()),
              "((1,4),(9,8)):((0,13),(59,1))");
}

TEST(LogicalProduct, RepeatsTheBlockWithoutOverlap) {
    Random random(45);
    int made = 0;
    for (int round = 0; round < 3000; ++round) {
        const Layout a = random.nested(24), b = random.compact(12);
        const auto r = logical_product(a, Tiler(b));
        if (!r) continue;
        ++made;
        ASSERT_EQ((*r)[0], a);
        std::set<std::int64_t> seen;
        for (std::int64_t j = 0; j < b.size(); ++j)
            for (std::int64_t i = 0; i < a.size(); ++i) {
                ASSERT_EQ(r->at(tuple(i, j)).value(), a(i) + (*r)[1](j));
                seen.insert(r->at(tuple(i, j)).value());
            }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()), a.size() * b.size()) << to_string(a) << to_string(b);
        // Copies come in the order B gives them.
        const Layout places = complement(a, a.size() * b.cosize()).value();
        for (std::int64_t j = 0; j < b.size(); ++j) ASSERT_EQ((*r)[1](j), evaluate_extended(places, b(j)).value());
    }
    EXPECT_GT(made, 1000);
    EXPECT_EQ(to_string(logical_product(parse("(2,2):(4,1)"), Tiler(parse("6:1"))).value()), "((2,2),(2,3)):((4,1),(2,8))");
}

TEST(RankwiseProduct, BlockedAndRakedAreTheLogicalProductRegrouped) {
    Random random(46);
    int made = 0;
    for (int round = 0; round < 2000; ++round) {
        const Layout a = make_layout({random.compact(6), random.compact(4)}).value();
        const Layout b = make_layout({random.compact(4), random.compact(4)}).value();
        const Layout block = make_ordered_layout(tuple(a[0].size(), a[1].size()), tuple(random.below(2), random.below(2))).value();
        const Layout grid = make_ordered_layout(tuple(b[0].size(), b[1].size()), tuple(random.below(2), random.below(2))).value();
        const auto logical = logical_product(block, Tiler(grid));
        const auto blocked = blocked_product(block, grid), raked = raked_product(block, grid);
        ASSERT_TRUE(logical && blocked && raked) << to_string(block) << to_string(grid);
        ++made;
        for (std::int64_t b0 = 0; b0 < block[0].size(); ++b0)
            for (std::int64_t b1 = 0; b1 < block[1].size(); ++b1)
                for (std::int64_t t0 = 0; t0 < grid[0].size(); ++t0)
                    for (std::int64_t t1 = 0; t1 < grid[1].size(); ++t1) {
                        const std::int64_t expected = logical->at(tuple(tuple(b0, b1), tuple(t0, t1))).value();
                        ASSERT_EQ(blocked->at(tuple(tuple(b0, t0), tuple(b1, t1))).value(), expected);
                        ASSERT_EQ(raked->at(tuple(tuple(t0, b0), tuple(t1, b1))).value(), expected);
                    }
    }
    EXPECT_EQ(made, 2000);
    EXPECT_EQ(to_string(blocked_product(parse("(2,5):(5,1)"), parse("(3,4):(1,3)")).value()), "((2,3),(5,4)):((5,10),(1,30))");
    EXPECT_EQ(to_string(raked_product(parse("(2,5):(5,1)"), parse("(3,4):(1,3)")).value()), "((3,2),(4,5)):((10,5),(30,1))");
}

TEST(TileToShape, CoversTheShapeWithCopies) {
    Random random(47);
    for (int round = 0; round < 1000; ++round) {
        const Layout block =
            make_ordered_layout(tuple(random.between(1, 5), random.between(1, 5)), tuple(random.below(2), random.below(2))).value();
        const std::int64_t m = random.between(1, 20), n = random.between(1, 20);
        const Layout r = tile_to_shape(block, tuple(m, n), tuple(random.below(2), random.below(2))).value();
        ASSERT_EQ(r.rank(), 2);
        const std::int64_t b0 = block[0].size(), b1 = block[1].size();
        ASSERT_EQ(r[0].size(), (m + b0 - 1) / b0 * b0);
        ASSERT_EQ(r[1].size(), (n + b1 - 1) / b1 * b1);
        std::set<std::int64_t> seen;
        for (std::int64_t i = 0; i < r[0].size(); ++i)
            for (std::int64_t j = 0; j < r[1].size(); ++j) {
                const std::int64_t offset = r.at(tuple(i, j)).value();
                seen.insert(offset);
                // Inside its copy, an element is where the block has it.
                ASSERT_EQ(offset, r.at(tuple(i - i % b0, j - j % b1)).value() + block.at(tuple(i % b0, j % b1)).value());
            }
        ASSERT_EQ(static_cast<std::int64_t>(seen.size()), r.size());
        ASSERT_EQ(r.cosize(), r.size());
    }
    EXPECT_EQ(to_string(tile_to_shape(parse("(8,64):(64,1)"), tuple(128, 64)).value()), "(128,64):(64,1)");
    EXPECT_EQ(to_string(tile_to_shape(parse("(8,64):(64,1)"), tuple(16, 128), tuple(1, 0)).value()), "((8,2),(64,2)):((64,1024),(1,512))");
    EXPECT_FALSE(tile_to_shape(parse("(8,64):(64,1)"), IntTuple(128)));
    EXPECT_FALSE(tile_to_shape(parse("(8,64):(64,1)"), tuple(128, 0)));
}

TEST(Tilers, TooManyModesAreNamed) {
    const auto r = logical_divide(parse("(8,8):(8,1)"), Tiler::from_shape(tuple(2, 2, 2)).value());
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("3 modes"), std::string::npos);
    const auto bad = zipped_divide(parse("(8,(4,2)):(1,(8,100))"), Tiler::from_shape(tuple(2, 6)).value());
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().message.rfind("in mode 1:", 0), 0u) << bad.error().message;
    EXPECT_FALSE(Tiler::from_shape(tuple(2, 0)));
}

}  // namespace tiling_test
}  // namespace tw::layout
