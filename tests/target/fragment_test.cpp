// Fragment maps against the row/column formulas of the PTX ISA, and bijectivity of every map.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "target/ldmatrix.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tw::target {
namespace fragment_test {

const Arch& sm_80 = *find_arch("sm_80");
const Arch& sm_90a = *find_arch("sm_90a");

void expect_bijective(const FragmentMap& map, const std::string& what) {
    std::set<std::pair<int, int>> seen;
    for (int t = 0; t < map.threads(); ++t)
        for (int v = 0; v < map.values(); ++v) {
            const Coord c = map.at(t, v);
            ASSERT_TRUE(c.row >= 0 && c.row < map.rows && c.col >= 0 && c.col < map.cols) << what << " t" << t << " v" << v;
            ASSERT_TRUE(seen.insert({c.row, c.col}).second) << what << ": (" << c.row << "," << c.col << ") twice";
        }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(map.rows * map.cols)) << what;
}

void expect_map(const FragmentMap& map, int threads, int values, const std::function<Coord(int, int)>& formula, const std::string& what) {
    ASSERT_EQ(map.threads(), threads) << what;
    ASSERT_EQ(map.values(), values) << what;
    for (int t = 0; t < threads; ++t)
        for (int i = 0; i < values; ++i) ASSERT_EQ(map.at(t, i), formula(t, i)) << what << " thread " << t << " value " << i;
}

TEST(Fragment, EveryMmaMapIsABijection) {
    for (const MmaInstruction& m : all_mma()) {
        expect_bijective(m.a_map, m.ptx_name() + " A");
        expect_bijective(m.b_map, m.ptx_name() + " B");
        expect_bijective(m.c_map, m.ptx_name() + " C");
        EXPECT_EQ(m.a_map.rows, m.shape.m);
        EXPECT_EQ(m.a_map.cols, m.shape.k);
        EXPECT_EQ(m.b_map.rows, m.shape.k);
        EXPECT_EQ(m.b_map.cols, m.shape.n);
    }
}

// "groupID = laneid >> 2, threadID_in_group = laneid % 4", and the case distinctions of each section.
TEST(Fragment, MmaMapsAreTheFormulasOfTheIsa) {
    const auto accumulator = [](int t, int i) { return Coord{i < 2 ? t / 4 : t / 4 + 8, t % 4 * 2 + (i & 1)}; };

    const MmaInstruction* k16 = find_mma({16, 8, 16}, DType::BF16, DType::BF16, DType::F32);
    ASSERT_TRUE(k16);
    expect_map(
        k16->a_map, 32, 8,
        [](int t, int i) {
            const bool upper = (i >= 0 && i < 2) || (i >= 4 && i < 6);
            return Coord{upper ? t / 4 : t / 4 + 8, t % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
        },
        "m16n8k16 A");
    expect_map(
        k16->b_map, 32, 4,
        [](int t, int i) {
            return Coord{t % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0), t / 4};
        },
        "m16n8k16 B");
    expect_map(k16->c_map, 32, 4, accumulator, "m16n8k16 C");

    const MmaInstruction* k8 = find_mma({16, 8, 8}, DType::F16, DType::F16, DType::F32);
    ASSERT_TRUE(k8);
    expect_map(
        k8->a_map, 32, 4,
        [](int t, int i) {
            return Coord{i < 2 ? t / 4 : t / 4 + 8, t % 4 * 2 + (i & 1)};
        },
        "m16n8k8 f16 A");
    expect_map(
        k8->b_map, 32, 2,
        [](int t, int i) {
            return Coord{t % 4 * 2 + i, t / 4};
        },
        "m16n8k8 f16 B");

    const MmaInstruction* tf32 = find_mma({16, 8, 8}, DType::TF32, DType::TF32, DType::F32);
    ASSERT_TRUE(tf32);
    expect_map(
        tf32->a_map, 32, 4,
        [](int t, int i) {
            return Coord{i == 0 || i == 2 ? t / 4 : t / 4 + 8, i < 2 ? t % 4 : t % 4 + 4};
        },
        "m16n8k8 tf32 A");
    expect_map(
        tf32->b_map, 32, 2,
        [](int t, int i) {
            return Coord{i == 0 ? t % 4 : t % 4 + 4, t / 4};
        },
        "m16n8k8 tf32 B");
    const MmaInstruction* k4 = find_mma({16, 8, 4}, DType::TF32, DType::TF32, DType::F32);
    ASSERT_TRUE(k4);
    expect_map(
        k4->a_map, 32, 2,
        [](int t, int i) {
            return Coord{t / 4 + 8 * i, t % 4};
        },
        "m16n8k4 tf32 A");
    expect_map(
        k4->b_map, 32, 1,
        [](int t, int) {
            return Coord{t % 4, t / 4};
        },
        "m16n8k4 tf32 B");

    const MmaInstruction* k32 = find_mma({16, 8, 32}, DType::E4M3, DType::E5M2, DType::F32);
    ASSERT_TRUE(k32);
    expect_map(
        k32->a_map, 32, 16,
        [](int t, int i) {
            const bool upper = i < 4 || (i >= 8 && i < 12);
            return Coord{upper ? t / 4 : t / 4 + 8, t % 4 * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
        },
        "m16n8k32 A");
    expect_map(
        k32->b_map, 32, 8,
        [](int t, int i) {
            return Coord{t % 4 * 4 + (i & 3) + (i >= 4 ? 16 : 0), t / 4};
        },
        "m16n8k32 B");
    const MmaInstruction* k16i = find_mma({16, 8, 16}, DType::I8, DType::U8, DType::I32);
    ASSERT_TRUE(k16i);
    expect_map(
        k16i->a_map, 32, 8,
        [](int t, int i) {
            return Coord{i < 4 ? t / 4 : t / 4 + 8, t % 4 * 4 + (i & 3)};
        },
        "m16n8k16 s8 A");
    expect_map(
        k16i->b_map, 32, 4,
        [](int t, int i) {
            return Coord{t % 4 * 4 + i, t / 4};
        },
        "m16n8k16 s8 B");
}

TEST(Fragment, MmaRegisterCountsAndNames) {
    const MmaInstruction* m = find_mma({16, 8, 16}, DType::BF16, DType::BF16, DType::F32);
    ASSERT_TRUE(m);
    EXPECT_EQ(m->ptx_name(), "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
    EXPECT_EQ(m->a_registers(), 4);
    EXPECT_EQ(m->b_registers(), 2);
    EXPECT_EQ(m->c_registers(), 4);
    EXPECT_EQ(find_mma({16, 8, 16}, DType::F16, DType::F16, DType::F16)->c_registers(), 2);
    // The accumulator as CuTe writes it.
    EXPECT_EQ(m->c_map.tv_notation(), "((4,8),(2,2)):((32,1),(16,8))");
    EXPECT_EQ(m->a_map.tv_notation(), "((4,8),(2,2,2)):((32,1),(16,8,128))");
}

TEST(Fragment, MmaLegality) {
    EXPECT_TRUE(mma_legal(sm_80, {16, 8, 16}, DType::BF16, DType::BF16, DType::F32));
    EXPECT_TRUE(mma_legal(sm_90a, {16, 8, 32}, DType::E4M3, DType::E4M3, DType::F32));
    const Legality fp8 = mma_legal(sm_80, {16, 8, 32}, DType::E4M3, DType::E4M3, DType::F32);
    EXPECT_FALSE(fp8);
    EXPECT_NE(fp8.reason.find("sm_89"), std::string::npos) << fp8.reason;
    EXPECT_FALSE(mma_legal(sm_90a, {16, 8, 16}, DType::BF16, DType::BF16, DType::BF16));
    EXPECT_FALSE(mma_legal(sm_90a, {16, 8, 16}, DType::BF16, DType::F16, DType::F32));
    EXPECT_FALSE(mma_legal(sm_90a, {16, 8, 16}, DType::TF32, DType::TF32, DType::F32));
    EXPECT_NE(mma_legal(sm_90a, {16, 16, 16}, DType::F16, DType::F16, DType::F32).reason.find("m16n8k16"), std::string::npos);
}

TEST(Fragment, WgmmaAccumulatorForEveryN) {
    for (int n = 8; n <= 256; n += 8) {
        const FragmentMap map = wgmma_accumulator_map(n);
        expect_bijective(map, "wgmma D n" + std::to_string(n));
        expect_map(
            map, 128, n / 2,
            [](int t, int i) {
                const int warp = t / 32, lane = t % 32;
                return Coord{16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2};
            },
            "wgmma D");
    }
}

TEST(Fragment, WgmmaARegisters) {
    expect_map(
        wgmma_a_register_map(DType::F16), 128, 8,
        [](int t, int i) {
            const int lane = t % 32;
            return Coord{16 * (t / 32) + lane / 4 + (i / 2 % 2 ? 8 : 0), lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
        },
        "wgmma A 16-bit");
    expect_map(
        wgmma_a_register_map(DType::TF32), 128, 4,
        [](int t, int i) {
            return Coord{16 * (t / 32) + t % 32 / 4 + (i % 2 ? 8 : 0), t % 4 + (i >= 2 ? 4 : 0)};
        },
        "wgmma A tf32");
    expect_map(
        wgmma_a_register_map(DType::E4M3), 128, 16,
        [](int t, int i) {
            return Coord{16 * (t / 32) + t % 32 / 4 + (i / 4 % 2 ? 8 : 0), t % 4 * 4 + i % 4 + (i >= 8 ? 16 : 0)};
        },
        "wgmma A 8-bit");
    for (const DType t : {DType::F16, DType::BF16, DType::TF32, DType::E4M3, DType::E5M2, DType::I8, DType::U8})
        expect_bijective(wgmma_a_register_map(t), "wgmma A " + std::string(name(t)));
}

// The reuse on which attention's second product stands.
TEST(Fragment, AccumulatorIsAFragmentForSixteenBitTypesOnly) {
    for (const DType t : {DType::F16, DType::BF16, DType::TF32, DType::E4M3}) {
        const FragmentMap a = wgmma_a_register_map(t), d = wgmma_accumulator_map(256);
        bool same = true;
        for (int block = 0; block < 256 / a.cols; ++block)
            for (int thread = 0; thread < 128; ++thread)
                for (int v = 0; v < a.values(); ++v) {
                    const Coord in_a = a.at(thread, v);
                    const Coord in_d = d.at(thread, a.values() * block + v);
                    same = same && in_d == Coord{in_a.row, in_a.col + block * a.cols};
                }
        EXPECT_EQ(same, bits(t) == 16) << name(t);
    }
}

TEST(Fragment, OwnerInvertsTheMap) {
    const FragmentMap d = wgmma_accumulator_map(24);
    for (int r = 0; r < d.rows; ++r)
        for (int c = 0; c < d.cols; ++c) {
            const auto owner = d.owner(r, c);
            ASSERT_TRUE(owner);
            EXPECT_EQ(d.at(owner->thread, owner->value), (Coord{r, c}));
        }
    EXPECT_FALSE(d.owner(64, 0));
}

TEST(Fragment, WgmmaLegality) {
    WgmmaInstruction w{
        .n = 256, .a = DType::BF16, .b = DType::BF16, .d = DType::F32, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K};
    EXPECT_TRUE(wgmma_legal(sm_90a, w));
    EXPECT_FALSE(wgmma_legal(sm_80, w));
    w.b_major = Major::MN;
    EXPECT_TRUE(wgmma_legal(sm_90a, w));
    w.n = 12;
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    w.n = 264;
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    w = {.n = 64, .a = DType::TF32, .b = DType::TF32, .d = DType::F32, .a_in_registers = false, .a_major = Major::K, .b_major = Major::MN};
    EXPECT_NE(wgmma_legal(sm_90a, w).reason.find("K-major"), std::string::npos);
    w = {.n = 40, .a = DType::I8, .b = DType::U8, .d = DType::I32, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K};
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    w.n = 48;
    EXPECT_TRUE(wgmma_legal(sm_90a, w));
    w = {.n = 64, .a = DType::E4M3, .b = DType::E5M2, .d = DType::F16, .a_in_registers = true, .a_major = Major::K, .b_major = Major::K};
    EXPECT_TRUE(wgmma_legal(sm_90a, w));
    w.a_major = Major::MN;
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    w = {.n = 64, .a = DType::BF16, .b = DType::F16, .d = DType::F32, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K};
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    w = {.n = 64, .a = DType::BF16, .b = DType::BF16, .d = DType::F16, .a_in_registers = false, .a_major = Major::K, .b_major = Major::K};
    EXPECT_FALSE(wgmma_legal(sm_90a, w));
    EXPECT_EQ(wgmma_legal_n(DType::BF16).size(), 32u);
    EXPECT_EQ(wgmma_legal_n(DType::I8).size(), 18u);
}

TEST(Fragment, WgmmaStatement) {
    const WgmmaInstruction ss{
        .n = 8, .a = DType::BF16, .b = DType::BF16, .d = DType::F32, .a_in_registers = false, .a_major = Major::K, .b_major = Major::MN};
    EXPECT_EQ(ss.ptx_statement(),
              "{ .reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
              "{%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 1; }");
    const WgmmaInstruction rs{
        .n = 8, .a = DType::E4M3, .b = DType::E4M3, .d = DType::F16, .a_in_registers = true, .a_major = Major::K, .b_major = Major::K};
    EXPECT_EQ(rs.ptx_statement(),
              "{ .reg .pred p; setp.ne.b32 p, %7, 0; wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3 "
              "{%0, %1}, {%2, %3, %4, %5}, %6, p, 1, 1; }");
}

TEST(Fragment, MatrixMoves) {
    const auto plain = [](int t, int i) { return Coord{t / 4, 2 * (t % 4) + i}; };
    expect_map(matrix_move_map(false), 32, 2, plain, "ldmatrix");
    expect_map(
        matrix_move_map(true), 32, 2,
        [&](int t, int i) {
            return Coord{plain(t, i).col, plain(t, i).row};
        },
        "ldmatrix.trans");
    for (const int count : {1, 2, 4})
        for (const bool transpose : {false, true}) {
            const MatrixMove m{.store = false, .count = count, .transpose = transpose};
            expect_bijective(matrix_move_stacked_map(m), m.ptx_name());
            for (int lane = 0; lane < 32; ++lane) {
                const auto row = matrix_move_row_of_lane(m, lane);
                ASSERT_EQ(row.has_value(), lane < 8 * count);
                if (!row) continue;
                EXPECT_EQ(8 * row->matrix + row->row, lane);
            }
            EXPECT_TRUE(matrix_move_legal(sm_80, m));
            EXPECT_FALSE(matrix_move_legal(sm_80, {.store = true, .count = count, .transpose = transpose}));
            EXPECT_TRUE(matrix_move_legal(sm_90a, {.store = true, .count = count, .transpose = transpose}));
        }
    EXPECT_FALSE(matrix_move_legal(sm_90a, {.store = false, .count = 3, .transpose = false}));
    EXPECT_FALSE(matrix_move_address_legal(8));
    EXPECT_TRUE(matrix_move_address_legal(48));
    EXPECT_EQ((MatrixMove{true, 4, true}.ptx_name()), "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
}

// ldmatrix x4 of a 16 x 16 tile of A is the A fragment of m16n8k16 when matrices are (rows 0-7, k 0-7), (rows 8-15, k 0-7),
// (rows 0-7, k 8-15), (rows 8-15, k 8-15).
TEST(Fragment, LdmatrixFeedsMma) {
    const MmaInstruction* m = find_mma({16, 8, 16}, DType::BF16, DType::BF16, DType::F32);
    const FragmentMap stacked = matrix_move_stacked_map({.store = false, .count = 4, .transpose = false});
    for (int lane = 0; lane < 32; ++lane)
        for (int v = 0; v < 8; ++v) {
            const Coord c = stacked.at(lane, v);
            const int matrix = c.row / 8;
            EXPECT_EQ(m->a_map.at(lane, v), (Coord{c.row % 8 + 8 * (matrix % 2), c.col + 8 * (matrix / 2)}));
        }
}

}  // namespace fragment_test
}  // namespace tw::target
