// The tables of fragments and tiles say the same as the layout algebra: each is written as a CuTe layout here and compared, element by
// element.
#include <gtest/gtest.h>

#include <bit>
#include <cassert>

#include "layout/swizzle.h"
#include "layout/thread_value.h"
#include "target/descriptor.h"
#include "target/fragment.h"
#include "target/ldmatrix.h"
#include "target/mma.h"

namespace tw::target {
namespace layouts_test {

// These layouts are made from our own tables, so a refusal would be our bug.
template <class R>
auto ours(R result) {
    assert(result.has_value());
    return std::move(*result);
}

layout::Layout digits_layout(const std::vector<FragmentDigit>& digits, int rows) {
    layout::FlatModes modes;
    for (const FragmentDigit& d : digits) modes.push_back({d.size, d.row_step + static_cast<std::int64_t>(d.col_step) * rows});
    return ours(layout::from_modes(modes));
}

layout::Layout two_modes(std::int64_t n0, std::int64_t d0, std::int64_t n1, std::int64_t d1) {
    layout::FlatModes modes;
    modes.push_back({n0, d0});
    modes.push_back({n1, d1});
    return ours(layout::from_modes(modes));
}

// (thread, value) -> row + col * rows.
layout::ThreadValueLayout thread_value_layout(const FragmentMap& map) {
    const layout::Layout tv =
        ours(layout::make_layout({digits_layout(map.thread_digits, map.rows), digits_layout(map.value_digits, map.rows)}));
    return ours(layout::ThreadValueLayout::make(tv, layout::tuple(map.rows, map.cols)));
}

// Sw(B,4,3) on byte addresses, on elements of `type`: Sw(B, 4 - log2 bytes, 3).
layout::Swizzle element_swizzle(SwizzleMode mode, DType type) {
    const int shift = std::countr_zero(static_cast<unsigned>(bytes(type)));
    return ours(layout::Swizzle::make(swizzle_bits(mode), 4 - shift, 3));
}

// (mn, k) -> element offset from the tile's base, swizzle included.
layout::ComposedLayout tile_layout(const OperandTile& t) {
    assert(tile_legal(t));
    const int span = t.span_elements(), column = t.column_bytes() / bytes(t.type);
    const layout::Layout along = two_modes(span, 1, t.contiguous() / span, column);
    const layout::Layout across = two_modes(8, span, t.other() / 8, 8 * span);
    const layout::Layout both = ours(t.major == Major::K ? layout::make_layout({across, along}) : layout::make_layout({along, across}));
    return ours(layout::ComposedLayout::make(element_swizzle(t.swizzle, t.type), 0, both));
}

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
        for (std::uint32_t a = 0; a < 8192; a += 2) ASSERT_EQ(element_swizzle(m, DType::BF16)(a / 2) * 2, swizzled(m, a));
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
