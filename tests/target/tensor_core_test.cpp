// The tensor cores' sums: recorded from an H200, and by reasoning where the answer is plain.
#include "target/tensor_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

namespace tw::target {
namespace tensor_core_test {

constexpr std::uint64_t seed = 31;

std::vector<MatrixFactor> factors(const std::vector<std::uint64_t>& patterns, DType type) {
    std::vector<MatrixFactor> out;
    for (const std::uint64_t p : patterns) out.push_back(matrix_factor(p, type));
    return out;
}

// sum of values[i] * 1 + c, with f32 accumulator
float sum_of(MatrixUnit unit, DType type, const std::vector<double>& values, float c) {
    std::vector<std::uint64_t> a, b;
    for (const double v : values) {
        a.push_back(from_double(v, type));
        b.push_back(from_double(1, type));
    }
    return std::bit_cast<float>(
        matrix_sum(unit, type, type, DType::F32, factors(a, type), factors(b, type), std::bit_cast<std::uint32_t>(c)));
}

TEST(TensorCore, RecordedSumsAreReproducedBitForBit) {
    std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "data" / "tensor_core_sums.json");
    ASSERT_TRUE(file) << "tests/target/data/tensor_core_sums.json is missing";
    const nlohmann::json recorded = nlohmann::json::parse(file);
    int checked = 0;
    for (const auto& r : recorded["sums"]) {
        const DType a = *dtype_from_name(r["a_type"].get<std::string>()), b = *dtype_from_name(r["b_type"].get<std::string>());
        const MatrixUnit unit = r["unit"] == "mma" ? MatrixUnit::MmaSync : MatrixUnit::Wgmma;
        const std::uint32_t d = matrix_sum(unit, a, b, DType::F32, factors(r["a"].get<std::vector<std::uint64_t>>(), a),
                                           factors(r["b"].get<std::vector<std::uint64_t>>(), b), r["c"].get<std::uint32_t>());
        EXPECT_EQ(d, r["d"].get<std::uint32_t>()) << r.dump();
        ++checked;
    }
    EXPECT_GT(checked, 100);
}

TEST(TensorCore, SmallIntegersAreExact) {
    std::mt19937 random(seed);
    for (const MatrixUnit unit : {MatrixUnit::MmaSync, MatrixUnit::Wgmma})
        for (const DType type : {DType::F16, DType::BF16, DType::TF32, DType::E4M3, DType::E5M2})
            for (int trial = 0; trial < 200; ++trial) {
                std::vector<std::uint64_t> a, b;
                const int c = static_cast<int>(random() % 21) - 10;
                int expected = c;
                for (int i = 0; i < 32 / bytes(type); ++i) {
                    const int x = static_cast<int>(random() % 9) - 4, y = static_cast<int>(random() % 9) - 4;
                    a.push_back(from_double(x, type));
                    b.push_back(from_double(y, type));
                    expected += x * y;
                }
                const std::uint32_t d = matrix_sum(unit, type, type, DType::F32, factors(a, type), factors(b, type),
                                                   std::bit_cast<std::uint32_t>(static_cast<float>(c)));
                EXPECT_EQ(std::bit_cast<float>(d), static_cast<float>(expected)) << name(type) << " seed " << seed;
            }
}

TEST(TensorCore, IntegersWrap) {
    const auto a = factors(std::vector<std::uint64_t>(32, 0x80), DType::I8), b = factors(std::vector<std::uint64_t>(32, 0xff), DType::U8);
    EXPECT_EQ(static_cast<std::int32_t>(matrix_sum(MatrixUnit::Wgmma, DType::I8, DType::U8, DType::I32, a, b, 5)), 5 - 32 * 128 * 255);
    EXPECT_EQ(matrix_sum(MatrixUnit::Wgmma, DType::I8, DType::U8, DType::I32, a, b, 0x80000000), 0x80000000u - 32 * 128 * 255);
}

TEST(TensorCore, TermsAreCutTwentyFiveBitsBelowTheLargest) {
    const double tiny = std::ldexp(1.0, -25), under = std::ldexp(1.0, -26);
    // Four terms of 2^-25 survive alignment and make one unit in the last place; eight of 2^-26 are cut one by one.
    EXPECT_EQ(sum_of(MatrixUnit::Wgmma, DType::BF16, {1, tiny, tiny, tiny, tiny, 0, 0, 0}, 0), 1.0f + std::ldexp(1.0f, -23));
    EXPECT_EQ(sum_of(MatrixUnit::Wgmma, DType::BF16, {1, under, under, under, under, under, under, under}, 0), 1.0f);
    // The sum itself is cut, not rounded.
    EXPECT_EQ(sum_of(MatrixUnit::Wgmma, DType::BF16, {1, tiny, tiny, tiny}, 0), 1.0f);
}

TEST(TensorCore, WarpgroupFp8KeepsThirteenBits) {
    EXPECT_EQ(sum_of(MatrixUnit::Wgmma, DType::E4M3, {1}, std::ldexp(1.0f, -13)), 1.0f + std::ldexp(1.0f, -13));
    EXPECT_EQ(sum_of(MatrixUnit::Wgmma, DType::E4M3, {1}, std::ldexp(1.0f, -14)), 1.0f);
    // mma.sync adds C afterwards, in full f32.
    EXPECT_EQ(sum_of(MatrixUnit::MmaSync, DType::E4M3, {1}, std::ldexp(1.0f, -14)), 1.0f + std::ldexp(1.0f, -14));
}

TEST(TensorCore, OrderOfKDoesNotMatterWithinAnInstruction) {
    std::mt19937 random(seed);
    for (int trial = 0; trial < 500; ++trial) {
        std::vector<MatrixFactor> a, b;
        for (int i = 0; i < 16; ++i) {
            a.push_back(matrix_factor((random() & 0x80ff) | (0x3e00 + random() % 0x300), DType::BF16));
            b.push_back(matrix_factor((random() & 0x80ff) | (0x3e00 + random() % 0x300), DType::BF16));
        }
        const auto c = static_cast<std::uint32_t>(0x3f000000 + random() % 0x1000000);
        const std::uint32_t before = matrix_sum(MatrixUnit::Wgmma, DType::BF16, DType::BF16, DType::F32, a, b, c);
        std::reverse(a.begin(), a.end());
        std::reverse(b.begin(), b.end());
        EXPECT_EQ(matrix_sum(MatrixUnit::Wgmma, DType::BF16, DType::BF16, DType::F32, a, b, c), before) << "seed " << seed;
    }
}

TEST(TensorCore, InfinitiesAndNaN) {
    const auto one = from_double(1, DType::BF16), infinity = std::uint64_t{0x7f80}, minus = std::uint64_t{0xff80},
               nan = std::uint64_t{0x7fc0};
    const auto sum = [](std::vector<std::uint64_t> a, std::vector<std::uint64_t> b, std::uint32_t c) {
        return matrix_sum(MatrixUnit::Wgmma, DType::BF16, DType::BF16, DType::F32, factors(a, DType::BF16), factors(b, DType::BF16), c);
    };
    EXPECT_EQ(sum({infinity, one}, {one, one}, 0), 0x7f800000u);
    EXPECT_EQ(sum({minus, one}, {one, one}, 0), 0xff800000u);
    EXPECT_EQ(sum({infinity, minus}, {one, one}, 0), 0x7fffffffu);
    EXPECT_EQ(sum({infinity, one}, {0, one}, 0), 0x7fffffffu);
    EXPECT_EQ(sum({nan, one}, {one, one}, 0), 0x7fffffffu);
    EXPECT_EQ(sum({one, one}, {one, one}, 0xff800000), 0xff800000u);
}

}  // namespace tensor_core_test
}  // namespace tw::target
