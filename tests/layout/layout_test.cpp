#include "layout/layout.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace layout_test {

using testing::Random;
using testing::some_layout_has;

Layout parse(const char* text) { return parse_layout(text).value(); }

// Every coordinate of a shape, by counting leaves: independent of idx2crd.
std::vector<IntTuple> all_coordinates(const IntTuple& shape) {
    const FlatInts extents = leaves(shape);
    FlatInts x;
    for (std::size_t i = 0; i < extents.size(); ++i) x.push_back(0);
    std::vector<IntTuple> out;
    for (;;) {
        out.push_back(unflatten(x, shape));
        std::size_t i = 0;
        while (i < extents.size() && ++x[i] == extents[i]) x[i++] = 0;
        if (i == extents.size()) return out;
    }
}

TEST(Layout, TheTableInTheHeader) {
    const Layout a = parse("(2,(2,2)):(4,(1,2))");
    const std::int64_t expected[] = {0, 4, 1, 5, 2, 6, 3, 7};
    for (int i = 0; i < 8; ++i) EXPECT_EQ(a(i), expected[i]);
    EXPECT_EQ(to_string(coalesce(a, tuple(1, 1)).value()), "(2,4):(4,1)");
}

TEST(Layout, OffsetIsTheInnerProduct) {
    Random random(1);
    for (int round = 0; round < 500; ++round) {
        const Layout l = random.any();
        const FlatInts d = leaves(l.stride());
        std::int64_t i = 0, largest = 0;
        for (const IntTuple& c : all_coordinates(l.shape())) {
            const FlatInts x = leaves(c);
            std::int64_t expected = 0;
            for (std::size_t k = 0; k < x.size(); ++k) expected += x[k] * d[k];
            EXPECT_EQ(l.at(c).value(), expected) << to_string(l) << to_string(c);
            EXPECT_EQ(l(i), expected) << to_string(l) << i;
            EXPECT_EQ(idx2crd(i, l.shape()).value(), c);
            largest = std::max(largest, expected);
            ++i;
        }
        EXPECT_EQ(i, l.size());
        EXPECT_EQ(l.cosize(), largest + 1);
    }
}

TEST(Layout, CoordinatesBetweenIntegerAndFullAgree) {
    const Layout l = parse("((2,3),(4,5)):((1,100),(7,1000))");
    for (std::int64_t i = 0; i < 6; ++i)
        for (std::int64_t j = 0; j < 20; ++j)
            EXPECT_EQ(l.at(tuple(i, j)).value(), l.at(tuple(tuple(i % 2, i / 2), tuple(j % 4, j / 4))).value());
}

TEST(Layout, CompactIdx2crdFindsTheCoordinate) {
    Random random(2);
    for (int round = 0; round < 200; ++round) {
        const Layout l = random.compact();
        for (std::int64_t i = 0; i < l.size(); ++i)
            EXPECT_EQ(idx2crd(l(i), l.shape(), l.stride()).value(), idx2crd(i, l.shape()).value()) << to_string(l);
    }
}

TEST(Layout, NegativeStridesHaveASpan) {
    const Layout l = parse("(4,2):(-1,10)");
    EXPECT_EQ(l.min_offset(), -3);
    EXPECT_EQ(l.max_offset(), 10);
    EXPECT_EQ(l.cosize(), 14);
    EXPECT_EQ(l(7), 7);
}

TEST(Layout, BadInputNamesTheMode) {
    const auto message = [](IntTuple shape, IntTuple stride) {
        const auto r = Layout::make(std::move(shape), std::move(stride));
        return r ? std::string("no error") : r.error().message;
    };
    EXPECT_NE(message(tuple(4, tuple(2, 0)), tuple(1, tuple(1, 1))).find("mode 1.1"), std::string::npos);
    EXPECT_NE(message(tuple(4, tuple(2, 2)), tuple(1, 2)).find("at mode 1 "), std::string::npos);
    EXPECT_NE(message(tuple(4, 2), tuple(1, 2, 3)).find("2 modes"), std::string::npos);
    EXPECT_NE(message(tuple(std::int64_t{1} << 40, std::int64_t{1} << 40), tuple(1, 1)).find("mode 1"), std::string::npos);
    EXPECT_NE(message(tuple(4, 3), tuple(1, std::int64_t{1} << 61)).find("mode 1"), std::string::npos);
    EXPECT_NE(message(tuple(4, kUnderscore), tuple(1, 1)).find("`_`"), std::string::npos);
    const Layout l = parse("(4,8):(8,1)");
    EXPECT_FALSE(l.at(tuple(4, 0)));
    EXPECT_FALSE(l.at(tuple(0, 0, 0)));
    EXPECT_FALSE(l.at(IntTuple(32)));
    EXPECT_FALSE(l.at(IntTuple(-1)));
    EXPECT_FALSE(idx2crd(32, l.shape()));
}

TEST(Coalesce, SameFunctionFewestModes) {
    Random random(3);
    for (int round = 0; round < 2000; ++round) {
        const Layout l = random.any();
        const Layout r = coalesce(l);
        ASSERT_EQ(r.size(), l.size());
        for (std::int64_t i = 0; i < l.size(); ++i) ASSERT_EQ(r(i), l(i)) << to_string(l) << " -> " << to_string(r);
        EXPECT_LE(r.depth(), 1);
        const FlatModes modes = r.modes();
        for (std::size_t k = 0; k < modes.size(); ++k) {
            EXPECT_TRUE(modes[k].shape > 1 || r == Layout());
            if (k) {
                EXPECT_NE(modes[k - 1].shape * modes[k - 1].stride, modes[k].stride);
            }
        }
    }
}

TEST(Coalesce, ByProfileKeepsTheRank) {
    Random random(4);
    for (int round = 0; round < 1000; ++round) {
        const Layout l = random.any();
        if (l.shape().is_leaf()) continue;
        IntTuple profile = IntTuple::empty();
        for (int i = 0; i < l.rank(); ++i) profile.push_back(IntTuple(1));
        const Layout r = coalesce(l, profile).value();
        ASSERT_EQ(r.rank(), l.rank());
        for (int m = 0; m < l.rank(); ++m) {
            ASSERT_EQ(r[m].size(), l[m].size());
            for (std::int64_t i = 0; i < l[m].size(); ++i) ASSERT_EQ(r[m](i), l[m](i));
            EXPECT_EQ(r[m], coalesce(l[m]));
        }
    }
    EXPECT_FALSE(coalesce(parse("4:1"), tuple(1, 1)));
}

std::set<std::int64_t> image(const Layout& l) {
    std::set<std::int64_t> out;
    for (std::int64_t i = 0; i < l.size(); ++i) out.insert(l(i));
    return out;
}

TEST(Filter, SameOffsetsWithoutRepetition) {
    Random random(5);
    for (int round = 0; round < 1000; ++round) {
        const Layout l = random.layout();
        const Layout z = filter_zeros(l), f = filter(l);
        EXPECT_TRUE(congruent(z.shape(), l.shape()));
        EXPECT_EQ(image(z), image(l)) << to_string(l);
        EXPECT_EQ(image(f), image(l)) << to_string(l);
        for (const Mode& m : f.modes()) EXPECT_TRUE(m.stride != 0 || f == Layout());
    }
    EXPECT_EQ(to_string(filter(parse("(2,4):(0,1)"), tuple(1, 1)).value()), "(1,4):(0,1)");
}

TEST(Modes, FlattenGroupSelectTakeAppendPrepend) {
    Random random(6);
    for (int round = 0; round < 500; ++round) {
        const Layout l = random.any();
        const Layout f = flatten(l);
        EXPECT_LE(f.depth(), 1);
        EXPECT_EQ(f.modes().size(), l.modes().size());
        for (std::int64_t i = 0; i < l.size(); ++i) ASSERT_EQ(f(i), l(i));
        const int begin = static_cast<int>(random.below(l.rank()));
        const int end = static_cast<int>(random.between(begin + 1, l.rank()));
        const Layout g = group(l, begin, end).value();
        EXPECT_EQ(g.rank(), l.rank() - (end - begin) + 1);
        for (std::int64_t i = 0; i < l.size(); ++i) ASSERT_EQ(g(i), l(i));
        EXPECT_EQ(take(l, begin, end).value(), g[begin]);
    }
    const Layout l = parse("(2,3,4):(1,10,100)");
    const int which[] = {2, 0};
    EXPECT_EQ(to_string(select(l, which).value()), "(4,2):(100,1)");
    EXPECT_EQ(to_string(append(l, parse("5:7")).value()), "(2,3,4,5):(1,10,100,7)");
    EXPECT_EQ(to_string(prepend(parse("5:7"), l).value()), "((2,3,4),5):((1,10,100),7)");
    EXPECT_EQ(to_string(append_to_rank(parse("5:7"), 3)), "(5,1,1):(7,0,0)");
    const int wrong[] = {3};
    EXPECT_FALSE(select(l, wrong));
    EXPECT_FALSE(group(l, 1, 4));
    EXPECT_FALSE(group(l, 1, 1));
    EXPECT_FALSE(take(l, -1, 2));
}

TEST(Slice, FixedPartPlusKeptPart) {
    Random random(7);
    for (int round = 0; round < 1000; ++round) {
        const Layout l = random.any();
        const FlatInts extents = leaves(l.shape());
        // Mark each leaf `_` or fix it.
        FlatInts mark;
        for (std::int64_t e : extents) mark.push_back(random.chance(50) ? kUnderscore : random.below(e));
        const Slice s = slice(l, unflatten(mark, l.shape())).value();
        std::int64_t seen = 0;
        for (const IntTuple& c : all_coordinates(l.shape())) {
            const FlatInts x = leaves(c);
            std::int64_t kept = 0, position = 1;
            bool inside = true;
            for (std::size_t k = 0; k < x.size(); ++k) {
                if (mark[k] == kUnderscore) {
                    kept += x[k] * position;
                    position *= extents[k];
                } else {
                    inside = inside && x[k] == mark[k];
                }
            }
            if (!inside) continue;
            ++seen;
            ASSERT_EQ(l.at(c).value(), s.offset + s.layout(kept)) << to_string(l);
        }
        EXPECT_EQ(seen, s.layout.size());
    }
}

TEST(Compact, OrdersAreBijectionsInTheGivenOrder) {
    Random random(8);
    for (int round = 0; round < 500; ++round) {
        const IntTuple shape = random.shape(200);
        FlatInts keys;
        const FlatInts extents = leaves(shape);
        for (std::size_t i = 0; i < extents.size(); ++i) keys.push_back(random.below(5));
        const Layout l = make_ordered_layout(shape, unflatten(keys, shape)).value();
        EXPECT_EQ(static_cast<std::int64_t>(image(l).size()), l.size());
        EXPECT_EQ(l.cosize(), l.size());
        const FlatModes m = l.modes();
        for (std::size_t a = 0; a < m.size(); ++a)
            for (std::size_t b = 0; b < m.size(); ++b)
                if (m[a].shape > 1 && m[b].shape > 1 && keys[a] < keys[b]) {
                    EXPECT_LT(m[a].stride, m[b].stride);
                }
        const Layout column = col_major(shape).value();
        for (std::int64_t i = 0; i < column.size(); ++i) ASSERT_EQ(column(i), i);
    }
    EXPECT_EQ(to_string(row_major(tuple(2, tuple(3, 4))).value()), "(2,(3,4)):(12,(4,1))");
    EXPECT_EQ(to_string(make_ordered_layout(tuple(2, 3, 4), tuple(1, 2, 0)).value()), "(2,3,4):(4,8,1)");
    EXPECT_FALSE(make_ordered_layout(tuple(2, 3), tuple(1, 2, 0)));
}

TEST(FromTable, RecoversEveryLayoutAndRefusesTheRest) {
    Random random(9);
    int refused = 0;
    for (int round = 0; round < 2000; ++round) {
        const Layout l = random.any(64);
        std::vector<std::int64_t> table;
        for (std::int64_t i = 0; i < l.size(); ++i) table.push_back(l(i));
        EXPECT_EQ(layout_from_table(table).value(), coalesce(l)) << to_string(l);
        // Break one entry: recovered exactly if some layout still fits.
        if (table.size() < 2) continue;
        table[random.between(1, l.size() - 1)] += random.between(-2, 2);
        const auto again = layout_from_table(table);
        EXPECT_EQ(again.has_value(), some_layout_has(table)) << to_string(l);
        refused += !again.has_value();
        for (std::int64_t i = 0; again && i < l.size(); ++i) EXPECT_EQ((*again)(i), table[i]);
    }
    EXPECT_GT(refused, 100);
}

}  // namespace layout_test
}  // namespace tw::layout
