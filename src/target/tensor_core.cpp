#include "target/tensor_core.h"

#include <array>
#include <bit>
#include <cassert>

namespace tw::target {

namespace {

using FactorKind = MatrixFactor::Kind;

constexpr std::uint32_t f32_nan = 0x7fffffff;
constexpr std::uint16_t f16_nan = 0x7fff;

// value = significand * 2^(exponent - fraction); `exponent` is what alignment looks at.
struct Term {
    std::int64_t significand;
    int exponent;
    int fraction;
};

// sum * 2^scale
struct FixedSum {
    std::int64_t sum;
    int scale;
};

Term f32_term(std::uint32_t v) {
    const MatrixFactor f = matrix_factor(v, DType::F32);
    return {f.significand, f.exponent, 23};
}

Term accumulator_term(std::uint32_t v, DType acc) {
    if (acc == DType::F32) return f32_term(v);
    const MatrixFactor f = matrix_factor(v, DType::F16);
    return {f.significand, f.exponent, 10};
}

// Collects terms, then aligns them. At most 64 products and C.
class AlignedSum {
public:
    void add(const Term& t) {
        if (t.significand == 0) return;
        largest_ = count_ == 0 || t.exponent > largest_ ? t.exponent : largest_;
        terms_[count_++] = t;
    }
    // Each term is cut off (towards zero) `kept` bits below the largest exponent.
    [[nodiscard]] FixedSum cut(int kept) const {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const Term& t = terms_[i];
            const int shift = (largest_ - kept) - (t.exponent - t.fraction);
            const std::int64_t magnitude = t.significand < 0 ? -t.significand : t.significand;
            const std::int64_t placed = shift >= 63 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
            sum += t.significand < 0 ? -placed : placed;
        }
        return {sum, largest_ - kept};
    }

private:
    std::array<Term, 65> terms_{};
    std::size_t count_ = 0;
    int largest_ = 0;
};

// Towards zero, to f32 with `fraction` of its 23 fraction bits.
std::uint32_t to_f32(FixedSum s, int fraction) {
    if (s.sum == 0) return 0;
    const std::uint32_t sign = s.sum < 0 ? 0x80000000u : 0;
    auto magnitude = static_cast<std::uint64_t>(s.sum < 0 ? -s.sum : s.sum);
    const int top = 63 - std::countl_zero(magnitude);
    const int exponent = top + s.scale;
    if (exponent > 127) return sign | 0x7f800000;
    const int lowest = (exponent < -126 ? -126 : exponent) - fraction;  // weight of the last place kept
    const int cut = lowest - s.scale;
    if (cut > 0) magnitude = cut > 63 ? 0 : magnitude >> cut << cut;
    const int shift = (exponent < -126 ? -126 : exponent) - 23 - s.scale;
    const std::uint64_t places = shift > 63 ? 0 : shift >= 0 ? magnitude >> shift : magnitude << -shift;
    std::uint32_t encoded = static_cast<std::uint32_t>(places);
    if (exponent >= -126) encoded += static_cast<std::uint32_t>(exponent + 126) << 23;
    return sign | encoded;
}

// To nearest f16, ties to even.
std::uint32_t to_f16(FixedSum s) {
    if (s.sum == 0) return 0;
    const std::uint32_t sign = s.sum < 0 ? 0x8000u : 0;
    const auto magnitude = static_cast<std::uint64_t>(s.sum < 0 ? -s.sum : s.sum);
    const int exponent = 63 - std::countl_zero(magnitude) + s.scale;
    if (exponent > 16) return sign | 0x7c00;
    const int place = (exponent < -14 ? -14 : exponent) - 10;
    const int shift = place - s.scale;
    std::uint64_t places;
    if (shift <= 0) {
        places = magnitude << -shift;
    } else if (shift > 63) {
        places = 0;
    } else {
        places = magnitude >> shift;
        const std::uint64_t lost = magnitude & ((std::uint64_t{1} << shift) - 1), half = std::uint64_t{1} << (shift - 1);
        if (lost > half || (lost == half && (places & 1))) ++places;
    }
    std::uint64_t encoded = places;
    if (exponent >= -14) encoded += static_cast<std::uint64_t>(exponent + 14) << 10;
    return sign | static_cast<std::uint32_t>(encoded > 0x7c00 ? 0x7c00 : encoded);
}

std::uint32_t f32_add_nearest(std::uint32_t x, std::uint32_t y) {
    return std::bit_cast<std::uint32_t>(std::bit_cast<float>(x) + std::bit_cast<float>(y));
}

// NaN, or an infinity, when a product or C is one; otherwise nothing.
struct Special {
    bool nan = false, positive = false, negative = false;
    [[nodiscard]] bool any() const { return nan || positive || negative; }
    void infinity(bool is_negative) { (is_negative ? negative : positive) = true; }
};

Special specials(std::span<const MatrixFactor> a, std::span<const MatrixFactor> b, const MatrixFactor& c) {
    Special s;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].kind == FactorKind::Finite && b[i].kind == FactorKind::Finite) continue;
        const bool zero =
            (a[i].kind == FactorKind::Finite && a[i].significand == 0) || (b[i].kind == FactorKind::Finite && b[i].significand == 0);
        if (a[i].kind == FactorKind::Nan || b[i].kind == FactorKind::Nan || zero) s.nan = true;
        else s.infinity((a[i].significand < 0) != (b[i].significand < 0));
    }
    if (c.kind == FactorKind::Nan) s.nan = true;
    if (c.kind == FactorKind::Infinite) s.infinity(c.significand < 0);
    if (s.positive && s.negative) s.nan = true;
    return s;
}

}  // namespace

MatrixFactor matrix_factor(std::uint64_t v, DType type) {
    if (!info(type).is_float) {
        const std::uint64_t extended = convert(v, type, DType::I64);
        return {static_cast<std::int32_t>(static_cast<std::int64_t>(extended)), 0, FactorKind::Finite};
    }
    const DTypeInfo& f = info(type);
    if (type == DType::TF32) v = (v & 0xffffffff) >> 13;
    const auto fraction = static_cast<std::int32_t>(v & ((std::uint64_t{1} << f.fraction_bits) - 1));
    const int top = (1 << f.exponent_bits) - 1;
    const int exponent = static_cast<int>(v >> f.fraction_bits) & top;
    const bool negative = (v >> (f.fraction_bits + f.exponent_bits)) & 1;
    MatrixFactor out;
    const bool is_nan = f.has_infinity ? exponent == top && fraction != 0 : exponent == top && fraction == (1 << f.fraction_bits) - 1;
    if (is_nan) out.kind = FactorKind::Nan;
    else if (f.has_infinity && exponent == top) out.kind = FactorKind::Infinite;
    const std::int32_t hidden = exponent == 0 ? 0 : 1 << f.fraction_bits;
    out.significand = negative ? -(fraction | hidden) : fraction | hidden;
    if (out.kind == FactorKind::Infinite) out.significand = negative ? -1 : 1;
    out.exponent = static_cast<std::int16_t>((exponent == 0 ? 1 : exponent) - f.exponent_bias);
    return out;
}

std::uint32_t matrix_sum(MatrixUnit unit, DType a_type, DType b_type, DType acc, std::span<const MatrixFactor> a,
                         std::span<const MatrixFactor> b, std::uint32_t c) {
    assert(a.size() == b.size() && a.size() <= 64);
    if (acc == DType::I32) {
        std::uint32_t sum = c;
        for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<std::uint32_t>(a[i].significand * b[i].significand);
        return sum;
    }
    const Special special = specials(a, b, matrix_factor(c, acc));
    if (special.any()) {
        if (special.nan) return acc == DType::F32 ? f32_nan : f16_nan;
        const std::uint32_t infinity = acc == DType::F32 ? 0x7f800000 : 0x7c00;
        return special.negative ? infinity | (acc == DType::F32 ? 0x80000000u : 0x8000u) : infinity;
    }
    const int fraction = info(a_type).fraction_bits + info(b_type).fraction_bits;
    const auto product = [&](std::size_t i) {
        return Term{std::int64_t{a[i].significand} * b[i].significand, a[i].exponent + b[i].exponent, fraction};
    };
    constexpr int kept = 25, fp8_kept = 13;
    if (is_fp8(a_type) && unit == MatrixUnit::MmaSync) {
        std::uint32_t partial = 0;
        for (const bool upper : {false, true}) {
            AlignedSum sum;
            for (std::size_t i = 0; i < a.size(); ++i)
                if ((i % 4 >= 2) == upper) sum.add(product(i));
            sum.add(f32_term(partial));
            partial = to_f32(sum.cut(kept), 23);
        }
        return f32_add_nearest(partial, c);
    }
    AlignedSum sum;
    for (std::size_t i = 0; i < a.size(); ++i) sum.add(product(i));
    sum.add(accumulator_term(c, acc));
    const bool short_sum = is_fp8(a_type);
    const FixedSum fixed = sum.cut(short_sum ? fp8_kept : kept);
    return acc == DType::F32 ? to_f32(fixed, short_sum ? fp8_kept : 23) : to_f16(fixed);
}

}  // namespace tw::target
