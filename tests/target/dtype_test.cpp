// Conversions against independent formulas: bit tricks where they exist, "no neighbour is nearer, ties go to even"
// elsewhere; every 8- and 16-bit value is tried, and random f32 patterns (the seed is printed on failure).
#include "target/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace tw::target {
namespace dtype_test {

constexpr std::uint64_t seed = 20240917;

float as_float(std::uint32_t v) { return std::bit_cast<float>(v); }
std::uint32_t as_bits(float v) { return std::bit_cast<std::uint32_t>(v); }

// Straight from the format's definition, in double arithmetic.
double decode(std::uint32_t v, int exponent_bits, int fraction_bits, bool has_infinity) {
    const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    const int exponent = static_cast<int>(v >> fraction_bits) & top;
    const auto fraction = static_cast<int>(v & ((1u << fraction_bits) - 1));
    const double sign = (v >> (exponent_bits + fraction_bits)) & 1 ? -1 : 1;
    if (exponent == top && has_infinity) return fraction ? NAN : sign * INFINITY;
    if (exponent == top && !has_infinity && fraction == (1 << fraction_bits) - 1) return NAN;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

struct NarrowFormat {
    const char* name;
    DType type;
    int exponent_bits, fraction_bits;
    bool has_infinity, saturates;
    std::uint32_t max_finite;
};
constexpr NarrowFormat narrow[] = {{"f16", DType::F16, 5, 10, true, false, 0x7bff},
                                   {"bf16", DType::BF16, 8, 7, true, false, 0x7f7f},
                                   {"e4m3", DType::E4M3, 4, 3, false, true, 0x7e},
                                   {"e5m2", DType::E5M2, 5, 2, true, true, 0x7b}};

std::uint32_t from_f32(const NarrowFormat& f, std::uint32_t v) {
    switch (f.type) {
        case DType::F16: return f32_to_f16(v);
        case DType::BF16: return f32_to_bf16(v);
        case DType::E4M3: return f32_to_e4m3(v);
        default: return f32_to_e5m2(v);
    }
}

// Checks one rounding without repeating the algorithm.
void expect_nearest(const NarrowFormat& f, std::uint32_t source) {
    const double x = as_float(source);
    const std::uint32_t got = from_f32(f, source);
    const std::uint32_t magnitude = got & ((1u << (f.exponent_bits + f.fraction_bits)) - 1);
    if (std::isnan(x)) {
        EXPECT_EQ(got, f.type == DType::E4M3 || f.type == DType::E5M2 ? 0x7fu : 0x7fffu) << f.name;
        return;
    }
    EXPECT_EQ(std::signbit(x), (got >> (f.exponent_bits + f.fraction_bits)) != 0) << f.name << " of " << x;
    const double a = std::fabs(x);
    const double largest = decode(f.max_finite, f.exponent_bits, f.fraction_bits, f.has_infinity);
    const double step = largest - decode(f.max_finite - 1, f.exponent_bits, f.fraction_bits, f.has_infinity);
    const double overflow_at = largest + step / 2;  // the tie goes away from the (odd) largest fraction, except for E4M3
    if (a > largest) {
        const bool beyond = a > overflow_at || (a == overflow_at && (f.max_finite & 1));
        if (f.saturates || !beyond) EXPECT_EQ(magnitude, f.max_finite) << f.name << " of " << x;
        else EXPECT_EQ(magnitude, f.max_finite + 1) << f.name << " of " << x;
        return;
    }
    const double r = decode(magnitude, f.exponent_bits, f.fraction_bits, f.has_infinity);
    const double error = std::fabs(a - r);
    if (magnitude < f.max_finite) {
        const double up = std::fabs(a - decode(magnitude + 1, f.exponent_bits, f.fraction_bits, f.has_infinity));
        ASSERT_LE(error, up) << f.name << " of " << x;
        EXPECT_TRUE(error != up || (magnitude & 1) == 0) << f.name << " tie at " << x;
    }
    if (magnitude > 0) {
        const double down = std::fabs(a - decode(magnitude - 1, f.exponent_bits, f.fraction_bits, f.has_infinity));
        ASSERT_LE(error, down) << f.name << " of " << x;
        EXPECT_TRUE(error != down || (magnitude & 1) == 0) << f.name << " tie at " << x;
    }
}

TEST(DType, TableIsInEnumerationOrderAndNamesRoundTrip) {
    for (const DType t : all_dtypes) {
        EXPECT_EQ(info(t).type, t);
        EXPECT_EQ(dtype_from_name(name(t)), t);
    }
    EXPECT_EQ(dtype_from_name("float"), std::nullopt);
}

TEST(DType, WideningIsExactForEveryPattern) {
    for (std::uint32_t v = 0; v < 0x10000; ++v) {
        const auto h = static_cast<std::uint16_t>(v);
        const double f16 = decode(v, 5, 10, true), bf16 = decode(v, 8, 7, true);
        if (std::isnan(f16)) EXPECT_EQ(f16_to_f32(h), 0x7fffffffu);
        else EXPECT_EQ(f16_to_f32(h), as_bits(static_cast<float>(f16))) << v;
        if (std::isnan(bf16)) EXPECT_TRUE(std::isnan(as_float(bf16_to_f32(h))));
        else EXPECT_EQ(bf16_to_f32(h), as_bits(static_cast<float>(bf16))) << v;
    }
    for (std::uint32_t v = 0; v < 0x100; ++v) {
        const auto b = static_cast<std::uint8_t>(v);
        const double e4m3 = decode(v, 4, 3, false), e5m2 = decode(v, 5, 2, true);
        if (std::isnan(e4m3)) EXPECT_EQ(e4m3_to_f16(b), 0x7fff);
        else EXPECT_EQ(decode(e4m3_to_f16(b), 5, 10, true), e4m3) << v;
        if (std::isnan(e5m2)) EXPECT_EQ(e5m2_to_f16(b), 0x7fff);
        else EXPECT_EQ(decode(e5m2_to_f16(b), 5, 10, true), e5m2) << v;
        EXPECT_TRUE(std::isnan(e4m3) || std::signbit(e4m3) == ((e4m3_to_f16(b) & 0x8000) != 0)) << v;
    }
}

TEST(DType, NarrowAndBackIsTheIdentityOnEveryValue) {
    for (const NarrowFormat& f : narrow)
        for (std::uint32_t v = 0; v < (1u << (1 + f.exponent_bits + f.fraction_bits)); ++v) {
            const double x = decode(v, f.exponent_bits, f.fraction_bits, f.has_infinity);
            if (std::isnan(x) || (std::isinf(x) && f.saturates)) continue;
            EXPECT_EQ(from_f32(f, as_bits(static_cast<float>(x))), v) << f.name << " " << v;
        }
}

TEST(DType, EveryMidpointAndItsNeighboursRoundCorrectly) {
    for (const NarrowFormat& f : narrow)
        for (std::uint32_t v = 0; v < f.max_finite; ++v) {
            const double low = decode(v, f.exponent_bits, f.fraction_bits, f.has_infinity);
            const double high = decode(v + 1, f.exponent_bits, f.fraction_bits, f.has_infinity);
            const auto middle = static_cast<float>((low + high) / 2);  // one bit more than the format: exact in f32
            for (const float x : {middle, std::nextafterf(middle, 0.0f), std::nextafterf(middle, INFINITY)}) {
                expect_nearest(f, as_bits(x));
                expect_nearest(f, as_bits(-x));
            }
        }
}

TEST(DType, RandomPatternsRoundToNearest) {
    std::mt19937_64 random(seed);
    for (const NarrowFormat& f : narrow)
        for (int i = 0; i < 400000; ++i) {
            const auto v = static_cast<std::uint32_t>(random());
            expect_nearest(f, v);
            if (HasFailure()) FAIL() << "seed " << seed << ", case " << i;
        }
}

TEST(DType, OverflowAndSpecialValues) {
    EXPECT_EQ(f32_to_f16(as_bits(65519.99f)), 0x7bff);
    EXPECT_EQ(f32_to_f16(as_bits(65520.0f)), 0x7c00);
    EXPECT_EQ(f32_to_f16(0xff800000), 0xfc00);
    EXPECT_EQ(f32_to_bf16(0x7f7fffff), 0x7f80);
    EXPECT_EQ(f32_to_bf16(0x7f7fffff, Rounding::Rz), 0x7f7f);
    EXPECT_EQ(f32_to_e4m3(as_bits(464.0f)), 0x7e);  // 448 is the largest; nothing becomes NaN
    EXPECT_EQ(f32_to_e4m3(0x7f800000), 0x7e);
    EXPECT_EQ(f32_to_e4m3(0xff800000), 0xfe);
    EXPECT_EQ(f32_to_e5m2(0x7f800000), 0x7b);
    EXPECT_EQ(f32_to_e5m2(0x7fc00000), 0x7f);
    EXPECT_EQ(f32_to_bf16(0x00000001), 0x0000);  // the smallest f32 denormal
    EXPECT_EQ(f32_to_bf16(0x00008001), 0x0001);
    EXPECT_EQ(f32_to_bf16(0x80000000), 0x8000);
}

TEST(DType, Tf32IsIntegerRoundingOfThePattern) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 2000000; ++i) {
        const auto v = static_cast<std::uint32_t>(random());
        if (std::isnan(as_float(v))) {
            EXPECT_EQ(f32_to_tf32(v), v & ~0x1fffu);
            continue;
        }
        if (std::isinf(as_float(v))) continue;
        EXPECT_EQ(f32_to_tf32(v), (v + 0x1000) & ~0x1fffu) << std::hex << v << " seed " << seed;
        EXPECT_EQ(f32_to_tf32(v, Rounding::Rz), v & ~0x1fffu) << std::hex << v;
        EXPECT_EQ(tf32_as_read_by_mma(v), v & ~0x1fffu);
    }
    EXPECT_EQ(f32_to_tf32(0x7f800000), 0x7f800000u);
    EXPECT_EQ(f32_to_tf32(0x7f7fffff), 0x7f800000u);
}

TEST(DType, Bf16MatchesTheUsualBitTrick) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 2000000; ++i) {
        const auto v = static_cast<std::uint32_t>(random());
        if (std::isnan(as_float(v))) continue;
        EXPECT_EQ(f32_to_bf16(v), static_cast<std::uint16_t>((v + 0x7fff + ((v >> 16) & 1)) >> 16)) << std::hex << v;
    }
}

TEST(DType, DoubleToFloatMatchesTheHost) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 1000000; ++i) {
        // Exponents around the f32 range, so that overflow, denormals and zero are all met.
        const std::uint64_t exponent = 1023 - 160 + random() % 310;
        const std::uint64_t v = (random() & 0x800fffffffffffff) | exponent << 52;
        EXPECT_EQ(f64_to_f32(v), as_bits(static_cast<float>(std::bit_cast<double>(v)))) << std::hex << v;
        const auto f = static_cast<std::uint32_t>(random());
        // NaNs too: the host's conversion keeps sign and payload and quiets, as the GPU's does.
        EXPECT_EQ(f32_to_f64(f), std::bit_cast<std::uint64_t>(static_cast<double>(as_float(f))));
    }
}

TEST(DType, FloatToIntegerClampsAndRounds) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 1000000; ++i) {
        const auto v = static_cast<std::uint32_t>(random());
        const double x = as_float(v);
        if (std::isnan(x)) {
            EXPECT_EQ(f32_to_i32(v, Rounding::Rz), 0);
            EXPECT_EQ(f32_to_u32(v, Rounding::Rz), 0u);
            continue;
        }
        const auto clamp = [](double value, double low, double high) { return std::fmin(std::fmax(value, low), high); };
        EXPECT_EQ(f32_to_i32(v, Rounding::Rz), static_cast<std::int32_t>(clamp(std::trunc(x), INT32_MIN, INT32_MAX)));
        EXPECT_EQ(f32_to_i32(v, Rounding::Rn), static_cast<std::int32_t>(clamp(std::nearbyint(x), INT32_MIN, INT32_MAX)));
        EXPECT_EQ(f32_to_u32(v, Rounding::Rz), static_cast<std::uint32_t>(clamp(std::trunc(x), 0, UINT32_MAX)));
        EXPECT_EQ(f32_to_i8_sat(v), static_cast<std::int8_t>(clamp(std::nearbyint(x), -128, 127)));
        EXPECT_EQ(f32_to_u8_sat(v), static_cast<std::uint8_t>(clamp(std::nearbyint(x), 0, 255)));
        const auto n = static_cast<std::int32_t>(random());
        EXPECT_EQ(i32_to_f32(n), as_bits(static_cast<float>(n)));
        EXPECT_EQ(u32_to_f32(static_cast<std::uint32_t>(n)), as_bits(static_cast<float>(static_cast<std::uint32_t>(n))));
        const auto wide = static_cast<std::int64_t>(random());
        EXPECT_EQ(i64_to_f32(wide), as_bits(static_cast<float>(wide)));
    }
    EXPECT_EQ(f32_to_i64(0x7fc00000, Rounding::Rz), INT64_MIN);
    EXPECT_EQ(f32_to_i64(as_bits(-1.5f), Rounding::Rz), -1);
    EXPECT_EQ(f32_to_i32(as_bits(2.5f), Rounding::Rn), 2);
    EXPECT_EQ(f32_to_i32(as_bits(3.5f), Rounding::Rn), 4);
}

TEST(DType, ConvertRoundsOnceAndWrapsIntegers) {
    // 1 + 2^-8 + 2^-30: rounding first to f32 would lose the last bit and turn the bf16 rounding into a tie.
    EXPECT_EQ(from_double(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -30), DType::BF16), 0x3f81u);
    EXPECT_EQ(from_double(1.0 + std::ldexp(1.0, -8), DType::BF16), 0x3f80u);
    EXPECT_EQ(convert(0xffffffff, DType::I32, DType::I64), 0xffffffffffffffffu);
    EXPECT_EQ(convert(0xffffffff, DType::U32, DType::I64), 0xffffffffu);
    EXPECT_EQ(convert(0x180, DType::I32, DType::U8), 0x80u);
    EXPECT_EQ(convert(0x180, DType::I32, DType::Bool), 1u);
    EXPECT_EQ(convert(as_bits(0.25f), DType::F32, DType::Bool), 1u);
    EXPECT_EQ(convert(as_bits(-3.7f), DType::F32, DType::I8), 0xfdu);
    EXPECT_EQ(convert(1, DType::Bool, DType::F16), 0x3c00u);
    EXPECT_EQ(convert(0x38, DType::E4M3, DType::BF16), 0x3f80u);
    EXPECT_EQ(to_double(0xfe, DType::E4M3), -448.0);
    for (const DType t : all_dtypes)
        for (const int v : {0, 1}) EXPECT_EQ(to_double(from_double(v, t), t), v) << name(t);
}

}  // namespace dtype_test
}  // namespace tw::target
