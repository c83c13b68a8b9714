// Copies, TMA, access costs.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "target/access_cost.h"
#include "target/copy.h"
#include "target/tma.h"

namespace tw::target {
namespace memory_test {

const Arch& sm_80 = *find_arch("sm_80");
const Arch& sm_90a = *find_arch("sm_90a");
constexpr std::uint64_t seed = 11;

TEST(VectorAccess, Legality) {
    EXPECT_TRUE(vector_access_legal(sm_90a, {4, 4}));
    EXPECT_TRUE(vector_access_legal(sm_90a, {8, 2}));
    EXPECT_FALSE(vector_access_legal(sm_90a, {8, 4}));
    EXPECT_FALSE(vector_access_legal(sm_90a, {4, 3}));
    EXPECT_FALSE(vector_access_legal(sm_90a, {3, 1}));
    EXPECT_TRUE(vector_access_aligned({4, 4}, 32));
    EXPECT_FALSE(vector_access_aligned({4, 4}, 8));
}

TEST(CpAsync, Legality) {
    EXPECT_TRUE(cp_async_legal(sm_80, {16, CpAsyncCache::Cg}));
    EXPECT_TRUE(cp_async_legal(sm_80, {4, CpAsyncCache::Ca}));
    EXPECT_FALSE(cp_async_legal(sm_80, {8, CpAsyncCache::Cg}));
    EXPECT_FALSE(cp_async_legal(sm_80, {2, CpAsyncCache::Ca}));
    EXPECT_TRUE(cp_async_operands_legal({16, CpAsyncCache::Cg}, 32, 64, 0));
    EXPECT_FALSE(cp_async_operands_legal({16, CpAsyncCache::Cg}, 32, 64, 17));
    EXPECT_FALSE(cp_async_operands_legal({16, CpAsyncCache::Cg}, 8, 64, 16));
    EXPECT_FALSE(cp_async_operands_legal({16, CpAsyncCache::Cg}, 16, 4, 16));
}

TEST(BulkCopy, Legality) {
    EXPECT_TRUE(bulk_copy_legal(sm_90a, BulkDirection::GlobalToShared, 16, 32, 4096));
    EXPECT_FALSE(bulk_copy_legal(sm_80, BulkDirection::GlobalToShared, 16, 32, 4096));
    EXPECT_FALSE(bulk_copy_legal(sm_90a, BulkDirection::GlobalToShared, 16, 32, 24));
    EXPECT_FALSE(bulk_copy_legal(sm_90a, BulkDirection::SharedToGlobal, 8, 32, 32));
    EXPECT_FALSE(bulk_copy_legal(sm_90a, BulkDirection::SharedToGlobal, 16, 36, 32));
    EXPECT_FALSE(bulk_copy_legal(sm_90a, BulkDirection::SharedToCluster, 16, 16, 1 << 20));
}

TensorMapSpec matrix(DType type, std::uint64_t columns, std::uint64_t rows, std::uint32_t box_columns, std::uint32_t box_rows) {
    TensorMapSpec t;
    t.type = type;
    t.rank = 2;
    t.dims = {columns, rows};
    t.strides = {0, columns * static_cast<std::uint64_t>(bytes(type))};
    t.box = {box_columns, box_rows};
    return t;
}

TEST(Tma, Legality) {
    TensorMapSpec t = matrix(DType::BF16, 1024, 512, 64, 128);
    t.swizzle = SwizzleMode::B128;
    EXPECT_TRUE(tensor_map_legal(sm_90a, t));
    EXPECT_FALSE(tensor_map_legal(sm_80, t));
    EXPECT_TRUE(tma_load_legal(sm_90a, t, 1024));
    EXPECT_FALSE(tma_load_legal(sm_90a, t, 64));
    auto with = [&t](auto change) {
        TensorMapSpec copy = t;
        change(copy);
        return tensor_map_legal(sm_90a, copy);
    };
    EXPECT_FALSE(with([](auto& c) { c.box[0] = 128; }));  // 256 bytes in a 128-byte span
    EXPECT_TRUE(with([](auto& c) { c.box[0] = 128, c.swizzle = SwizzleMode::None; }));
    EXPECT_FALSE(with([](auto& c) { c.box[1] = 257; }));
    EXPECT_FALSE(with([](auto& c) { c.box[0] = 4; }));  // 8 bytes
    EXPECT_FALSE(with([](auto& c) { c.strides[1] = 1000; }));
    EXPECT_FALSE(with([](auto& c) { c.global_address = 8; }));
    EXPECT_FALSE(with([](auto& c) { c.dims[1] = 0; }));
    EXPECT_FALSE(with([](auto& c) { c.rank = 6; }));
    EXPECT_FALSE(with([](auto& c) { c.element_strides[1] = 9; }));
    EXPECT_TRUE(with([](auto& c) { c.fill = TmaFill::Nan; }));
    EXPECT_FALSE(with([](auto& c) { c.type = DType::I8, c.fill = TmaFill::Nan; }));
    EXPECT_TRUE(tma_store_legal(sm_90a, t, 1024, TmaReduce::Add));
    TensorMapSpec bytes_map = matrix(DType::I8, 1024, 8, 64, 8);
    EXPECT_FALSE(tma_store_legal(sm_90a, bytes_map, 1024, TmaReduce::Add));
    EXPECT_TRUE(tma_store_legal(sm_90a, bytes_map, 1024, TmaReduce::None));
    EXPECT_TRUE(multicast_legal(sm_90a, 3, 2));
    EXPECT_FALSE(multicast_legal(sm_90a, 4, 2));
    EXPECT_FALSE(multicast_legal(sm_90a, 0, 2));
    EXPECT_FALSE(multicast_legal(sm_80, 1, 1));
}

// A load, done by hand: a row-major box, filled where the tensor ends, 16-byte chunks of row r permuted by r.
TEST(Tma, LoadOfASwizzledRaggedBox) {
    TensorMapSpec t = matrix(DType::BF16, 100, 50, 64, 16);
    t.strides[1] = 208;
    t.swizzle = SwizzleMode::B128;
    EXPECT_EQ(box_bytes(t), 64 * 16 * 2);
    EXPECT_EQ(box_footprint(t), 64 * 16 * 2);
    int outside = 0;
    for (std::int64_t r = 0; r < 16; ++r)
        for (std::int64_t c = 0; c < 64; ++c) {
            const std::uint32_t a = tma_shared_address(t, 4096, {c, r});
            EXPECT_EQ(a, 4096 + r * 128 + ((c / 8) ^ (r % 8)) * 16 + c % 8 * 2);
            const auto source = tma_global_offset(t, {64, 40}, {c, r});
            if (64 + c < 100 && 40 + r < 50) EXPECT_EQ(source, (40 + r) * 208 + (64 + c) * 2);
            else {
                EXPECT_EQ(source, std::nullopt);
                ++outside;
            }
        }
    EXPECT_EQ(outside, 16 * 64 - 10 * 36);
    EXPECT_EQ(tma_global_offset(t, {-8, 0}, {7, 0}), std::nullopt);
    EXPECT_EQ(tma_global_offset(t, {-8, 0}, {8, 0}), 0);
    // 200-byte rows: a store also writes the four elements up to the next 16-byte boundary, and no more.
    EXPECT_EQ(tma_store_overrun(t), 4);
    EXPECT_EQ(tma_store_offset(t, {64, 40}, {39, 0}), 40 * 208 + 103 * 2);
    EXPECT_EQ(tma_store_offset(t, {64, 40}, {40, 0}), std::nullopt);
    EXPECT_EQ(tma_store_offset(t, {64, 40}, {0, 10}), std::nullopt);
    EXPECT_TRUE(tma_load_coordinate_legal(t, {-8, 3}));
    EXPECT_FALSE(tma_load_coordinate_legal(t, {4, 0}));
    EXPECT_FALSE(tma_store_coordinate_legal(t, {-8, 3}));
    EXPECT_FALSE(tma_store_coordinate_legal(t, {8, -1}));
    EXPECT_TRUE(tma_store_coordinate_legal(t, {8, 1000}));
}

TEST(Tma, BoxIsABijectionOntoItsFootprint) {
    std::mt19937 random(seed);
    for (int trial = 0; trial < 200; ++trial) {
        TensorMapSpec t;
        constexpr DType types[] = {DType::BF16, DType::F32, DType::E4M3};
        t.type = types[random() % 3];
        t.rank = 1 + static_cast<int>(random() % 5);
        t.swizzle = all_swizzles[random() % 4];
        const int span = t.swizzle == SwizzleMode::None ? 64 : span_bytes(t.swizzle);
        for (int d = 0; d < t.rank; ++d) {
            const auto i = static_cast<std::size_t>(d);
            t.dims[i] = 1000;
            t.strides[i] = 16 * 1000;
            t.box[i] = d == 0 ? static_cast<std::uint32_t>(span / bytes(t.type)) : 1 + random() % 4;
            if (d > 0) t.element_strides[i] = 1 + random() % 3;
        }
        ASSERT_TRUE(tensor_map_legal(sm_90a, t)) << tensor_map_legal(sm_90a, t).reason;
        std::set<std::uint32_t> seen;
        for (std::int64_t flat = 0; flat < box_elements(t); ++flat) {
            TmaCoord c{};
            std::int64_t rest = flat;
            for (int d = 0; d < t.rank; ++d) {
                c[static_cast<std::size_t>(d)] = rest % box_extent(t, d);
                rest /= box_extent(t, d);
            }
            const std::uint32_t a = tma_shared_address(t, 1024, c);
            ASSERT_TRUE(a >= 1024 && a < 1024 + box_footprint(t));
            ASSERT_TRUE(seen.insert(a).second);
        }
        EXPECT_EQ(static_cast<std::int64_t>(seen.size()) * bytes(t.type), box_bytes(t)) << "seed " << seed;
    }
}

std::vector<std::optional<std::uint32_t>> lanes(const std::function<std::uint32_t(std::uint32_t)>& f) {
    std::vector<std::optional<std::uint32_t>> out;
    for (std::uint32_t lane = 0; lane < 32; ++lane) out.push_back(f(lane));
    return out;
}

TEST(AccessCost, TextbookBankConflicts) {
    const auto cost = [](int width, auto f) { return shared_wavefronts(sm_90a, lanes(f), width).wavefronts; };
    EXPECT_EQ(cost(4, [](auto l) { return 4 * l; }), 1);
    EXPECT_EQ(cost(4, [](auto) { return 64u; }), 1);  // broadcast
    for (const std::uint32_t stride : {2u, 4u, 8u, 16u, 32u})
        EXPECT_EQ(cost(4, [stride](auto l) { return 4 * stride * l; }), static_cast<int>(stride));
    EXPECT_EQ(cost(4, [](auto l) { return 4 * 33 * l; }), 1);  // padded column
    EXPECT_EQ(cost(8, [](auto l) { return 8 * l; }), 2);
    EXPECT_EQ(cost(16, [](auto l) { return 16 * l; }), 4);
    EXPECT_EQ(cost(16, [](auto l) { return 128 * l; }), 32);  // a column of 128-byte rows
    EXPECT_EQ(cost(16, [](auto l) { return swizzled(SwizzleMode::B128, 128 * l); }), 4);
    EXPECT_EQ(cost(2, [](auto l) { return 2 * l; }), 1);
    std::vector<std::optional<std::uint32_t>> none(32);
    EXPECT_EQ(shared_wavefronts(sm_90a, none, 4).wavefronts, 0);
}

// Two groups of lanes become one when neighbours (lane ^ 1, or lane ^ 2) ask for the same.
TEST(AccessCost, WideBroadcastsMerge) {
    const auto cost = [](int width, auto f) { return shared_wavefronts(sm_90a, lanes(f), width).wavefronts; };
    EXPECT_EQ(cost(8, [](auto) { return 0u; }), 1);
    EXPECT_EQ(cost(8, [](auto l) { return l / 2 * 8; }), 1);
    EXPECT_EQ(cost(8, [](auto l) { return l % 16 * 8; }), 2);  // halves agree, neighbours do not
    EXPECT_EQ(cost(16, [](auto) { return 0u; }), 2);
    EXPECT_EQ(cost(16, [](auto l) { return l / 2 * 16; }), 2);
    EXPECT_EQ(cost(16, [](auto l) { return l % 16 * 16; }), 4);
}

TEST(AccessCost, MatrixMove) {
    std::vector<std::uint32_t> rows;
    for (std::uint32_t r = 0; r < 32; ++r) rows.push_back(128 * r);
    EXPECT_EQ(matrix_move_wavefronts(sm_90a, rows).wavefronts, 32);
    for (std::uint32_t r = 0; r < 32; ++r) rows[r] = swizzled(SwizzleMode::B128, 128 * r);
    EXPECT_EQ(matrix_move_wavefronts(sm_90a, rows).wavefronts, 4);
    EXPECT_EQ(matrix_move_wavefronts(sm_90a, rows).ideal, 4);
}

TEST(AccessCost, Sectors) {
    const auto cost = [](int width, auto f) {
        std::vector<std::optional<std::uint64_t>> addresses;
        for (std::uint64_t lane = 0; lane < 32; ++lane) addresses.push_back(f(lane));
        return global_sectors(sm_90a, addresses, width);
    };
    EXPECT_EQ(cost(4, [](auto l) { return 4 * l; }).sectors, 4);
    EXPECT_EQ(cost(4, [](auto l) { return 4 * l + 16; }).sectors, 5);
    EXPECT_EQ(cost(16, [](auto l) { return 16 * l; }).sectors, 16);
    EXPECT_EQ(cost(4, [](auto l) { return 1024 * l; }).sectors, 32);
    EXPECT_EQ(cost(4, [](auto l) { return 1024 * l; }).lines, 32);
    EXPECT_EQ(cost(4, [](auto l) { return 8 * l; }).ideal_sectors, 4);
}

}  // namespace memory_test
}  // namespace tw::target
