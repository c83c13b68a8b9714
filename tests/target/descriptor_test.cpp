// Matrix descriptors: both directions, and that a descriptor made for a tile reads exactly the tile's elements.
#include "target/descriptor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace tw::target {
namespace descriptor_test {

constexpr std::uint64_t seed = 7;

std::vector<OperandTile> legal_tiles() {
    std::vector<OperandTile> tiles;
    for (const DType type : {DType::BF16, DType::F16, DType::TF32, DType::E4M3, DType::I8})
        for (const Major major : {Major::K, Major::MN})
            for (const SwizzleMode swizzle : all_swizzles)
                for (const int mn : {8, 64, 96, 128, 256})
                    for (const int k_bytes : {32, 64, 128, 256}) {
                        const OperandTile t{type, major, swizzle, mn, k_bytes / bytes(type)};
                        if (tile_legal(t)) tiles.push_back(t);
                    }
    return tiles;
}

TEST(Descriptor, DecodeInvertsEncodeOnRandomDescriptors) {
    std::mt19937 random(seed);
    const auto field = [&random] { return static_cast<std::uint32_t>(random() % 0x4000 * 16); };
    for (int i = 0; i < 200000; ++i) {
        const MatrixDescriptor d{.start_address = field(),
                                 .leading_bytes = field(),
                                 .stride_bytes = field(),
                                 .base_offset = static_cast<int>(random() % 8),
                                 .swizzle = all_swizzles[random() % 4]};
        ASSERT_TRUE(descriptor_legal(d));
        ASSERT_EQ(decode_descriptor(encode_descriptor(d)), d) << "seed " << seed << " case " << i;
    }
}

// The bit positions, written out by hand from the format's table.
TEST(Descriptor, BitPositions) {
    EXPECT_EQ(encode_descriptor({.start_address = 0x3fff0}), 0x3fffull);
    EXPECT_EQ(encode_descriptor({.leading_bytes = 16}), 1ull << 16);
    EXPECT_EQ(encode_descriptor({.stride_bytes = 1024}), 64ull << 32);
    EXPECT_EQ(encode_descriptor({.base_offset = 7}), 7ull << 49);
    EXPECT_EQ(encode_descriptor({.swizzle = SwizzleMode::B128}), 1ull << 62);
    EXPECT_EQ(encode_descriptor({.swizzle = SwizzleMode::B64}), 2ull << 62);
    EXPECT_EQ(encode_descriptor({.swizzle = SwizzleMode::B32}), 3ull << 62);
}

TEST(Descriptor, IllegalFieldsAreNamed) {
    EXPECT_NE(descriptor_legal({.start_address = 8}).reason.find("start address"), std::string::npos);
    EXPECT_NE(descriptor_legal({.leading_bytes = 1 << 18}).reason.find("leading"), std::string::npos);
    EXPECT_NE(descriptor_legal({.stride_bytes = 4}).reason.find("stride"), std::string::npos);
    EXPECT_FALSE(descriptor_legal({.base_offset = 8}));
}

// The swizzle in the words of the ISA: 16-byte chunk number XOR row number, rows of 128 bytes.
TEST(Descriptor, SwizzlePermutesChunksWithinItsPattern) {
    for (std::uint32_t a = 0; a < 4096; ++a) {
        const std::uint32_t row = a / 128 % 8, chunk = a / 16 % 8;
        EXPECT_EQ(swizzled(SwizzleMode::None, a), a);
        EXPECT_EQ(swizzled(SwizzleMode::B128, a), a / 128 * 128 + (chunk ^ row) * 16 + a % 16);
        EXPECT_EQ(swizzled(SwizzleMode::B64, a), a / 128 * 128 + (chunk ^ (row & 3)) * 16 + a % 16);
        EXPECT_EQ(swizzled(SwizzleMode::B32, a), a / 128 * 128 + (chunk ^ (row & 1)) * 16 + a % 16);
        for (const SwizzleMode m : all_swizzles) EXPECT_EQ(swizzled(m, swizzled(m, a)), a);
    }
}

TEST(Descriptor, TilesAreBijectionsOntoTheirBytes) {
    for (const OperandTile& t : legal_tiles()) {
        std::set<std::uint32_t> seen;
        for (int mn = 0; mn < t.mn; ++mn)
            for (int k = 0; k < t.k; ++k) {
                const std::uint32_t a = tile_address(t, 1024, mn, k);
                ASSERT_TRUE(a >= 1024 && a < 1024u + static_cast<unsigned>(t.size_bytes()));
                ASSERT_EQ(a % static_cast<unsigned>(bytes(t.type)), 0u);
                ASSERT_TRUE(seen.insert(a).second);
            }
        EXPECT_EQ(static_cast<int>(seen.size()) * bytes(t.type), t.mn * t.k * bytes(t.type));
        EXPECT_EQ(t.size_bytes(), t.mn * t.k * bytes(t.type));
    }
}

TEST(Descriptor, TileDescriptorsReadTheTile) {
    int checked = 0;
    for (const OperandTile& t : legal_tiles()) {
        const int step = wgmma_k_bytes / bytes(t.type);
        for (int k0 = 0; k0 < t.k; k0 += step)
            for (int mn0 = 0; mn0 < t.mn; mn0 += 32) {
                const int extent = std::min(64, t.mn - mn0);
                const Legality legal = tile_descriptor_legal(t, 2048, mn0, k0, extent);
                if (!legal) {
                    EXPECT_EQ(t.major, Major::MN) << legal.reason;  // mn0 inside a span
                    continue;
                }
                const MatrixDescriptor d = decode_descriptor(encode_descriptor(tile_descriptor(t, 2048, mn0, k0)));
                for (int i = 0; i < extent; ++i)
                    for (int j = 0; j < step; ++j) {
                        ASSERT_EQ(descriptor_address(d, t.major, t.type, i, j), tile_address(t, 2048, mn0 + i, k0 + j))
                            << name(t.type) << " " << name(t.major) << " " << name(t.swizzle) << " " << t.mn << "x" << t.k;
                        ++checked;
                    }
            }
    }
    EXPECT_GT(checked, 100000);
}

TEST(Descriptor, TileLegality) {
    EXPECT_FALSE(tile_legal({DType::TF32, Major::MN, SwizzleMode::B128, 64, 32}));
    EXPECT_FALSE(tile_legal({DType::BF16, Major::K, SwizzleMode::B128, 64, 32}));  // 64 bytes in a 128-byte span
    EXPECT_TRUE(tile_legal({DType::BF16, Major::K, SwizzleMode::B64, 64, 32}));
    EXPECT_FALSE(tile_legal({DType::BF16, Major::MN, SwizzleMode::B128, 32, 64}));
    EXPECT_FALSE(tile_legal({DType::BF16, Major::K, SwizzleMode::None, 64, 24}));
    EXPECT_FALSE(tile_legal({DType::BF16, Major::K, SwizzleMode::None, 60, 32}));
    const OperandTile t{DType::BF16, Major::K, SwizzleMode::B128, 128, 64};
    EXPECT_FALSE(tile_descriptor_legal(t, 512, 0, 0, 64));
    EXPECT_FALSE(tile_descriptor_legal(t, 1024, 0, 8, 64));
    EXPECT_FALSE(tile_descriptor_legal(t, 1024, 96, 0, 64));
    EXPECT_FALSE(tile_descriptor_legal(t, 1024, 4, 0, 64));
    EXPECT_TRUE(tile_descriptor_legal(t, 1024, 64, 48, 64));
}

TEST(Descriptor, Notation) {
    EXPECT_EQ(tile_notation({DType::BF16, Major::K, SwizzleMode::B128, 64, 64}), "Sw<3,3,3> o ((8,8),(64,1)):((64,512),(1,4096))");
    EXPECT_EQ(tile_notation({DType::BF16, Major::MN, SwizzleMode::B64, 64, 32}), "Sw<2,3,3> o ((32,2),(8,4)):((1,1024),(32,256))");
    EXPECT_EQ(tile_notation({DType::TF32, Major::K, SwizzleMode::None, 64, 8}), "((8,8),(4,2)):((4,32),(1,256))");
}

}  // namespace descriptor_test
}  // namespace tw::target
