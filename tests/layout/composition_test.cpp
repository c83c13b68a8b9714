#include <gtest/gtest.h>

#include "layout/algebra.h"
#include "layout/notation.h"
#include "random_layouts.h"

namespace tw::layout {
namespace composition_test {

using testing::Random;
using testing::some_layout_has;

Layout parse(const char* text) { return parse_layout(text).value(); }

// A^ as the header defines it, written differently from the implementation.
std::int64_t extended(const Layout& a, std::int64_t index) {
    std::int64_t offset = 0;
    const FlatModes modes = coalesce(a).modes();
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const bool last = i + 1 == modes.size();
        offset += (last ? index : index % modes[i].shape) * modes[i].stride;
        index /= modes[i].shape;
    }
    return offset;
}

// Does A^ o B have a layout whose modes refine B's leaves?
bool composition_exists(const Layout& a, const Layout& b) {
    for (const Mode& m : b.modes()) {
        std::vector<std::int64_t> table;
        for (std::int64_t i = 0; i < m.shape; ++i) table.push_back(extended(a, i * m.stride));
        if (!some_layout_has(table)) return false;
    }
    return true;
}

// One leaf of B may pass its own test and yet not add up: A is not additive across leaves that carry into each other.
bool adds_up(const Layout& a, const Layout& b) {
    for (std::int64_t i = 0; i < b.size(); ++i) {
        std::int64_t sum = 0, rest = i;
        for (const Mode& m : b.modes()) {
            sum += extended(a, rest % m.shape * m.stride);
            rest /= m.shape;
        }
        if (sum != extended(a, b(i))) return false;
    }
    return true;
}

TEST(Composition, Examples) {
    EXPECT_EQ(to_string(composition(parse("(6,2):(8,2)"), parse("(4,3):(3,1)")).value()), "((2,2),3):((24,2),8)");
    EXPECT_EQ(to_string(composition(parse("20:2"), parse("(5,4):(4,1)")).value()), "(5,4):(8,2)");
    EXPECT_EQ(to_string(composition(parse("(10,2):(16,4)"), parse("(5,4):(1,5)")).value()), "(5,(2,2)):(16,(80,4))");
    EXPECT_EQ(to_string(composition(parse("4:1"), parse("8:1")).value()), "8:1");                        // the last mode runs on
    EXPECT_EQ(to_string(composition(parse("(4,8):(1,100)"), parse("4:6")).value()), "(2,2):(102,300)");  // found by listing
}

TEST(Composition, FollowsBThenA) {
    Random random(11);
    int made = 0, refused = 0;
    for (int round = 0; round < 6000; ++round) {
        const Layout a = random.any(120), b = random.any(60);
        const auto r = composition(a, b);
        if (!r) {
            ++refused;
            EXPECT_FALSE(composition_exists(a, b) && adds_up(a, b)) << to_string(a) << " o " << to_string(b) << ": " << r.error().message;
            continue;
        }
        ++made;
        ASSERT_EQ(r->size(), b.size());
        for (std::int64_t i = 0; i < b.size(); ++i)
            ASSERT_EQ((*r)(i), extended(a, b(i))) << to_string(a) << " o " << to_string(b) << " = " << to_string(*r) << " at " << i;
        // Coordinates of B are coordinates of R.
        for (std::int64_t i = 0; i < b.size(); ++i) ASSERT_EQ(r->at(idx2crd(i, b.shape()).value()).value(), (*r)(i));
    }
    EXPECT_GT(made, 1500);
    EXPECT_GT(refused, 500);
}

TEST(Composition, IsAssociativeWhereItExists) {
    Random random(12);
    int checked = 0;
    for (int round = 0; round < 3000; ++round) {
        const Layout a = random.nested(96), b = random.compact(48), c = random.compact(24);
        const auto ab = composition(a, b), bc = composition(b, c);
        if (!ab || !bc || b.cosize() > a.size() || c.cosize() > b.size()) continue;
        const auto left = composition(*ab, c), right = composition(a, *bc);
        if (!left || !right) continue;
        ++checked;
        EXPECT_EQ(coalesce(*left), coalesce(*right)) << to_string(a) << to_string(b) << to_string(c);
    }
    EXPECT_GT(checked, 300);
}

TEST(Composition, ByModeTilersActOnTheirMode) {
    Random random(13);
    int checked = 0;
    for (int round = 0; round < 1000; ++round) {
        const Layout a = random.nested(120);
        if (a.shape().is_leaf()) continue;
        std::vector<Tiler> parts;
        for (int i = 0; i < static_cast<int>(random.between(0, a.rank())); ++i)
            parts.push_back(random.chance(20) ? Tiler() : Tiler(Layout::make_mode(random.between(1, 6), random.between(1, 3)).value()));
        const auto r = composition(a, Tiler(parts));
        if (!r) continue;
        ++checked;
        for (int i = 0; i < a.rank(); ++i) {
            const bool kept = i >= static_cast<int>(parts.size()) || std::holds_alternative<Tiler::Keep>(parts[i].what);
            EXPECT_EQ((*r)[i], kept ? a[i] : composition(a[i], parts[i]).value());
        }
    }
    EXPECT_GT(checked, 300);
    EXPECT_FALSE(composition(parse("4:1"), Tiler(std::vector<Tiler>(2))));
}

TEST(Composition, AnImpossibleOneNamesItsModes) {
    const auto r = composition(parse("(4,2):(1,10)"), parse("(2,6):(1,1)"));
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message.find("mode 1 (6:1) of B"), std::string::npos) << r.error().message;
    EXPECT_NE(r.error().message.find("mode 0 (4:1) of coalesced A"), std::string::npos) << r.error().message;
    const auto by_mode = composition(parse("((4,2),8):((1,10),100)"), Tiler::from_shape(tuple(6, 2)).value());
    ASSERT_FALSE(by_mode);
    EXPECT_EQ(by_mode.error().message.rfind("in mode 0:", 0), 0u) << by_mode.error().message;
    EXPECT_FALSE(composition(parse("8:1"), parse("4:-1")));
}

TEST(Composition, HugeValuesAreErrorsNotOverflow) {
    const Layout a = Layout::make_mode(4, (std::int64_t{1} << 58)).value();
    EXPECT_FALSE(composition(a, Layout::make_mode(1 << 20, 1 << 20).value()));
    EXPECT_FALSE(evaluate_extended(a, std::int64_t{1} << 40));
}

}  // namespace composition_test
}  // namespace tw::layout
