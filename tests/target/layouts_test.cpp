// The layout form of every map is the same function as the table.
#include "target/layouts.h"

#include <gtest/gtest.h>

#include "target/ldmatrix.h"
#include "target/mma.h"

namespace tw::target {
namespace layouts_test {

void expect_same(const FragmentMap& map, const std::string& what) {
    const layout::ThreadValueLayout tv = thread_value_layout(map);
    ASSERT_EQ(tv.threads(), map.threads()) << what;
    ASSERT_EQ(tv.values(), map.values()) << what;
    for (int t = 0; t < map.threads(); ++t)
        for (int v = 0; v < map.values(); ++v) {
            const Coord c = map.at(t, v);
            ASSERT_EQ(tv.map()(t + map.threads() * v), c.row + c.col * map.rows) << what << " " << t << " " << v;
        }
    EXPECT_EQ(layout::to_string(tv.map()), map.tv_notation()) << what;
    ASSERT_TRUE(layout::owner_layout(tv).has_value()) << what;
}

TEST(Layouts, Fragments) {
    for (const MmaInstruction& m : all_mma()) {
        expect_same(m.a_map, m.ptx_name() + " A");
        expect_same(m.b_map, m.ptx_name() + " B");
        expect_same(m.c_map, m.ptx_name() + " C");
    }
    for (int n = 8; n <= 256; n += 8) expect_same(wgmma_accumulator_map(n), "wgmma D " + std::to_string(n));
    for (const DType t : {DType::BF16, DType::TF32, DType::E4M3}) expect_same(wgmma_a_register_map(t), "wgmma A");
    for (const bool transpose : {false, true}) expect_same(matrix_move_map(transpose), "matrix move");
}

TEST(Layouts, SwizzlesActOnAddresses) {
    for (const SwizzleMode m : all_swizzles)
        for (std::uint32_t a = 0; a < 8192; a += 2) {
            ASSERT_EQ(byte_swizzle(m)(a), swizzled(m, a));
            ASSERT_EQ(element_swizzle(m, DType::BF16)(a / 2) * 2, swizzled(m, a));
        }
}

TEST(Layouts, TilesOfEveryForm) {
    int tiles = 0;
    for (const DType type : {DType::BF16, DType::TF32, DType::E4M3})
        for (const Major major : {Major::K, Major::MN})
            for (const SwizzleMode swizzle : all_swizzles)
                for (const int mn : {64, 128, 192})
                    for (const int k_bytes : {32, 128, 256}) {
                        const OperandTile t{type, major, swizzle, mn, k_bytes / bytes(type)};
                        if (!tile_legal(t)) continue;
                        ++tiles;
                        const layout::ComposedLayout l = tile_layout(t);
                        for (int r = 0; r < t.mn; ++r)
                            for (int k = 0; k < t.k; ++k)
                                ASSERT_EQ(l(r + t.mn * k) * bytes(type), tile_address(t, 0, r, k)) << tile_notation(t);
                    }
    EXPECT_GT(tiles, 50);
}

}  // namespace layouts_test
}  // namespace tw::target
