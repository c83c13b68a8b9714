#include "target/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tw::target {

namespace {

constexpr std::array<DTypeInfo, 14> table = {{
    //                name     ptx     cuda              bits  float  signed exp frac bias  inf
    {DType::F64, "f64", "f64", "double", 64, true, true, 11, 52, 1023, true},
    {DType::F32, "f32", "f32", "float", 32, true, true, 8, 23, 127, true},
    {DType::TF32, "tf32", "tf32", "float", 32, true, true, 8, 10, 127, true},
    {DType::BF16, "bf16", "bf16", "__nv_bfloat16", 16, true, true, 8, 7, 127, true},
    {DType::F16, "f16", "f16", "__half", 16, true, true, 5, 10, 15, true},
    {DType::E4M3, "e4m3", "e4m3", "unsigned char", 8, true, true, 4, 3, 7, false},
    {DType::E5M2, "e5m2", "e5m2", "unsigned char", 8, true, true, 5, 2, 15, true},
    {DType::I64, "i64", "s64", "long long", 64, false, true, 0, 0, 0, false},
    {DType::I32, "i32", "s32", "int", 32, false, true, 0, 0, 0, false},
    {DType::U32, "u32", "u32", "unsigned", 32, false, false, 0, 0, 0, false},
    {DType::I16, "i16", "s16", "short", 16, false, true, 0, 0, 0, false},
    {DType::I8, "i8", "s8", "signed char", 8, false, true, 0, 0, 0, false},
    {DType::U8, "u8", "u8", "unsigned char", 8, false, false, 0, 0, 0, false},
    {DType::Bool, "bool", "pred", "bool", 8, false, false, 0, 0, 0, false},
}};

// A float format as the arithmetic below needs it. TF32 is handled as 19 bits and shifted into its 32-bit place.
struct Format {
    int exponent_bits;
    int fraction_bits;
    int bias;
    std::uint64_t max_finite;  // encoding without the sign
    std::uint64_t infinity;    // encoding without the sign; for E4M3 the saturated value
    std::uint64_t nan;         // what `cvt` makes of any NaN, sign included
};

// A narrower NaN becomes 0x7fffffff in f32 first, and cvt.f64.f32 moves that payload up.
constexpr Format f64_format{11, 52, 1023, 0x7fefffffffffffff, 0x7ff0000000000000, 0x7fffffffe0000000};
constexpr Format f32_format{8, 23, 127, 0x7f7fffff, 0x7f800000, 0x7fffffff};
constexpr Format tf32_format{8, 10, 127, 0x3fbff, 0x3fc00, 0x3ffff};
constexpr Format bf16_format{8, 7, 127, 0x7f7f, 0x7f80, 0x7fff};
constexpr Format f16_format{5, 10, 15, 0x7bff, 0x7c00, 0x7fff};
constexpr Format e4m3_format{4, 3, 7, 0x7e, 0x7e, 0x7f};
constexpr Format e5m2_format{5, 2, 15, 0x7b, 0x7c, 0x7f};

enum class Kind { Finite, Infinite, Nan };

// (-1)^negative * significand * 2^exponent
struct Unpacked {
    Kind kind;
    bool negative;
    std::uint64_t significand;
    int exponent;
};

Unpacked unpack(std::uint64_t v, const Format& f, bool has_infinity = true) {
    const std::uint64_t fraction_mask = (std::uint64_t{1} << f.fraction_bits) - 1;
    const std::uint64_t exponent_mask = (std::uint64_t{1} << f.exponent_bits) - 1;
    const std::uint64_t fraction = v & fraction_mask;
    const std::uint64_t exponent = (v >> f.fraction_bits) & exponent_mask;
    const bool negative = ((v >> (f.fraction_bits + f.exponent_bits)) & 1) != 0;
    if (has_infinity && exponent == exponent_mask) return {fraction == 0 ? Kind::Infinite : Kind::Nan, negative, 0, 0};
    if (!has_infinity && exponent == exponent_mask && fraction == fraction_mask) return {Kind::Nan, negative, 0, 0};
    if (exponent == 0) return {Kind::Finite, negative, fraction, 1 - f.bias - f.fraction_bits};
    return {Kind::Finite, negative, fraction | (std::uint64_t{1} << f.fraction_bits),
            static_cast<int>(exponent) - f.bias - f.fraction_bits};
}

// significand / 2^shift, rounded. Pre: shift > 0.
std::uint64_t shift_right_rounded(std::uint64_t significand, int shift, Rounding rounding) {
    if (shift > 64) return 0;  // below half of the smallest step: nothing can round up
    if (shift == 64) {
        const std::uint64_t half = std::uint64_t{1} << 63;
        if (rounding == Rounding::Rz) return 0;
        return significand > half || (significand == half && rounding == Rounding::Rna) ? 1 : 0;
    }
    const std::uint64_t kept = significand >> shift;
    const std::uint64_t lost = significand & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    switch (rounding) {
        case Rounding::Rz: return kept;
        case Rounding::Rna: return kept + (lost >= half ? 1 : 0);
        case Rounding::Rn: return kept + (lost > half || (lost == half && (kept & 1)) ? 1 : 0);
    }
    return kept;
}

std::uint64_t pack(const Unpacked& u, const Format& f, Rounding rounding, bool saturate_finite) {
    if (u.kind == Kind::Nan) return f.nan;
    const std::uint64_t sign = u.negative ? std::uint64_t{1} << (f.fraction_bits + f.exponent_bits) : 0;
    const std::uint64_t overflow = saturate_finite ? f.max_finite : f.infinity;
    if (u.kind == Kind::Infinite) return sign | overflow;
    if (u.significand == 0) return sign;

    const int top = 63 - std::countl_zero(u.significand);
    const int value_exponent = u.exponent + top;
    const int minimum_exponent = 1 - f.bias;
    const bool normal = value_exponent >= minimum_exponent;
    const int step_exponent = (normal ? value_exponent : minimum_exponent) - f.fraction_bits;
    const int shift = step_exponent - u.exponent;
    const std::uint64_t rounded = shift > 0 ? shift_right_rounded(u.significand, shift, rounding) : u.significand << -shift;
    // The hidden bit of a normal number adds one to the exponent field, and a carry out of the fraction adds another.
    std::uint64_t encoded = rounded;
    if (normal) encoded += static_cast<std::uint64_t>(value_exponent + f.bias - 1) << f.fraction_bits;
    if (value_exponent > f.bias + 1 || encoded > f.max_finite) return sign | (rounding == Rounding::Rz ? f.max_finite : overflow);
    return sign | encoded;
}

double as_double(const Unpacked& u) {
    if (u.kind == Kind::Nan) return std::numeric_limits<double>::quiet_NaN();
    const double magnitude =
        u.kind == Kind::Infinite ? std::numeric_limits<double>::infinity() : std::ldexp(static_cast<double>(u.significand), u.exponent);
    return u.negative ? -magnitude : magnitude;
}

// The value rounded to an integer and clamped to [low, high]. NaN gives `nan`.
std::int64_t to_integer(const Unpacked& u, Rounding rounding, std::int64_t low, std::int64_t high, std::int64_t nan) {
    if (u.kind == Kind::Nan) return nan;
    const std::int64_t clamped = u.negative ? low : high;
    if (u.kind == Kind::Infinite) return clamped;
    if (u.significand == 0) return 0;
    std::uint64_t magnitude;
    if (u.exponent >= 0) {
        if (u.exponent + (63 - std::countl_zero(u.significand)) > 63) return clamped;
        magnitude = u.significand << u.exponent;
    } else {
        magnitude = shift_right_rounded(u.significand, -u.exponent, rounding);
    }
    if (u.negative) {
        const std::uint64_t limit = static_cast<std::uint64_t>(-(low + 1)) + 1;  // |low| without overflow
        return magnitude >= limit ? low : -static_cast<std::int64_t>(magnitude);
    }
    return magnitude >= static_cast<std::uint64_t>(high) ? high : static_cast<std::int64_t>(magnitude);
}

Unpacked unpack_integer(std::int64_t v) {
    const bool negative = v < 0;
    const std::uint64_t magnitude = negative ? ~static_cast<std::uint64_t>(v) + 1 : static_cast<std::uint64_t>(v);
    return {Kind::Finite, negative, magnitude, 0};
}

Unpacked unpack_any(std::uint64_t v, DType type) {
    switch (type) {
        case DType::F64: return unpack(v, f64_format);
        case DType::F32: return unpack(v, f32_format);
        case DType::TF32: return unpack(tf32_as_read_by_mma(static_cast<std::uint32_t>(v)), f32_format);
        case DType::BF16: return unpack(v, bf16_format);
        case DType::F16: return unpack(v, f16_format);
        case DType::E4M3: return unpack(v, e4m3_format, false);
        case DType::E5M2: return unpack(v, e5m2_format);
        case DType::I64: return unpack_integer(static_cast<std::int64_t>(v));
        case DType::I32: return unpack_integer(static_cast<std::int32_t>(v));
        case DType::U32: return unpack_integer(static_cast<std::uint32_t>(v));
        case DType::I16: return unpack_integer(static_cast<std::int16_t>(v));
        case DType::I8: return unpack_integer(static_cast<std::int8_t>(v));
        case DType::U8: return unpack_integer(static_cast<std::uint8_t>(v));
        case DType::Bool: return unpack_integer((v & 0xff) != 0 ? 1 : 0);
    }
    return {Kind::Nan, false, 0, 0};
}

std::uint64_t pack_any(const Unpacked& u, DType type) {
    constexpr auto rz = Rounding::Rz;
    switch (type) {
        case DType::F64: return pack(u, f64_format, Rounding::Rn, false);
        case DType::F32: return pack(u, f32_format, Rounding::Rn, false);
        case DType::TF32: return pack(u, tf32_format, Rounding::Rna, false) << 13;
        case DType::BF16: return pack(u, bf16_format, Rounding::Rn, false);
        case DType::F16: return pack(u, f16_format, Rounding::Rn, false);
        case DType::E4M3: return pack(u, e4m3_format, Rounding::Rn, true);
        case DType::E5M2: return pack(u, e5m2_format, Rounding::Rn, true);
        case DType::I64:
            return static_cast<std::uint64_t>(to_integer(u, rz, std::numeric_limits<std::int64_t>::min(),
                                                         std::numeric_limits<std::int64_t>::max(),
                                                         std::numeric_limits<std::int64_t>::min()));
        case DType::I32: return static_cast<std::uint32_t>(to_integer(u, rz, INT32_MIN, INT32_MAX, 0));
        case DType::U32: return static_cast<std::uint32_t>(to_integer(u, rz, 0, UINT32_MAX, 0));
        case DType::I16: return static_cast<std::uint16_t>(to_integer(u, rz, INT16_MIN, INT16_MAX, 0));
        case DType::I8: return static_cast<std::uint8_t>(to_integer(u, rz, INT8_MIN, INT8_MAX, 0));
        case DType::U8: return static_cast<std::uint8_t>(to_integer(u, rz, 0, UINT8_MAX, 0));
        case DType::Bool: return u.kind != Kind::Finite || u.significand != 0 ? 1 : 0;
    }
    return 0;
}

std::uint64_t storage_mask(DType type) { return bits(type) == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits(type)) - 1; }

}  // namespace

const DTypeInfo& info(DType type) { return table[static_cast<std::size_t>(type)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const DTypeInfo& row : table)
        if (row.name == name) return row.type;
    return std::nullopt;
}

std::uint16_t f32_to_bf16(std::uint32_t v, Rounding r) {
    return static_cast<std::uint16_t>(pack(unpack(v, f32_format), bf16_format, r, false));
}
std::uint16_t f32_to_f16(std::uint32_t v, Rounding r) {
    return static_cast<std::uint16_t>(pack(unpack(v, f32_format), f16_format, r, false));
}
std::uint32_t f32_to_tf32(std::uint32_t v, Rounding r) {
    const Unpacked u = unpack(v, f32_format);
    if (u.kind == Kind::Nan) return v & ~std::uint32_t{0x1fff};  // a payload in the low bits only is lost: infinity
    return static_cast<std::uint32_t>(pack(u, tf32_format, r, false) << 13);
}
std::uint32_t tf32_as_read_by_mma(std::uint32_t v) { return v & ~std::uint32_t{0x1fff}; }
std::uint8_t f32_to_e4m3(std::uint32_t v) {
    return static_cast<std::uint8_t>(pack(unpack(v, f32_format), e4m3_format, Rounding::Rn, true));
}
std::uint8_t f32_to_e5m2(std::uint32_t v) {
    return static_cast<std::uint8_t>(pack(unpack(v, f32_format), e5m2_format, Rounding::Rn, true));
}
std::uint8_t f16_to_e4m3(std::uint16_t v) {
    return static_cast<std::uint8_t>(pack(unpack(v, f16_format), e4m3_format, Rounding::Rn, true));
}
std::uint8_t f16_to_e5m2(std::uint16_t v) {
    return static_cast<std::uint8_t>(pack(unpack(v, f16_format), e5m2_format, Rounding::Rn, true));
}
std::uint32_t bf16_to_f32(std::uint16_t v) { return static_cast<std::uint32_t>(v) << 16; }
std::uint32_t f16_to_f32(std::uint16_t v) {
    return static_cast<std::uint32_t>(pack(unpack(v, f16_format), f32_format, Rounding::Rn, false));
}
std::uint16_t e4m3_to_f16(std::uint8_t v) {
    return static_cast<std::uint16_t>(pack(unpack(v, e4m3_format, false), f16_format, Rounding::Rn, false));
}
std::uint16_t e5m2_to_f16(std::uint8_t v) {
    return static_cast<std::uint16_t>(pack(unpack(v, e5m2_format), f16_format, Rounding::Rn, false));
}
// Between f32 and f64 a NaN keeps its sign and the upper part of its payload, and becomes quiet.
std::uint32_t f64_to_f32(std::uint64_t v) {
    const Unpacked u = unpack(v, f64_format);
    if (u.kind == Kind::Nan) return static_cast<std::uint32_t>((v >> 32 & 0x80000000) | 0x7fc00000 | (v >> 29 & 0x3fffff));
    return static_cast<std::uint32_t>(pack(u, f32_format, Rounding::Rn, false));
}
std::uint64_t f32_to_f64(std::uint32_t v) {
    const Unpacked u = unpack(v, f32_format);
    if (u.kind == Kind::Nan) return (std::uint64_t{v} & 0x80000000) << 32 | 0x7ff8000000000000 | (std::uint64_t{v} & 0x3fffff) << 29;
    return pack(u, f64_format, Rounding::Rn, false);
}

std::int32_t f32_to_i32(std::uint32_t v, Rounding r) {
    return static_cast<std::int32_t>(to_integer(unpack(v, f32_format), r, INT32_MIN, INT32_MAX, 0));
}
std::uint32_t f32_to_u32(std::uint32_t v, Rounding r) {
    return static_cast<std::uint32_t>(to_integer(unpack(v, f32_format), r, 0, UINT32_MAX, 0));
}
std::int64_t f32_to_i64(std::uint32_t v, Rounding r) {
    constexpr auto low = std::numeric_limits<std::int64_t>::min();
    return to_integer(unpack(v, f32_format), r, low, std::numeric_limits<std::int64_t>::max(), low);
}
std::int8_t f32_to_i8_sat(std::uint32_t v) {
    return static_cast<std::int8_t>(to_integer(unpack(v, f32_format), Rounding::Rn, INT8_MIN, INT8_MAX, 0));
}
std::uint8_t f32_to_u8_sat(std::uint32_t v) {
    return static_cast<std::uint8_t>(to_integer(unpack(v, f32_format), Rounding::Rn, 0, UINT8_MAX, 0));
}
std::uint32_t i32_to_f32(std::int32_t v) { return static_cast<std::uint32_t>(pack(unpack_integer(v), f32_format, Rounding::Rn, false)); }
std::uint32_t u32_to_f32(std::uint32_t v) { return static_cast<std::uint32_t>(pack(unpack_integer(v), f32_format, Rounding::Rn, false)); }
std::uint32_t i64_to_f32(std::int64_t v) { return static_cast<std::uint32_t>(pack(unpack_integer(v), f32_format, Rounding::Rn, false)); }

std::uint64_t convert(std::uint64_t value, DType from, DType to) {
    value &= storage_mask(from);
    if (from == to && from != DType::TF32 && from != DType::Bool) return value;
    if (from == DType::BF16 && to == DType::F32) return bf16_to_f32(static_cast<std::uint16_t>(value));
    if (from == DType::F64 && to == DType::F32) return f64_to_f32(value);
    if (from == DType::F32 && to == DType::F64) return f32_to_f64(static_cast<std::uint32_t>(value));
    if (from == DType::F32 && to == DType::TF32) return f32_to_tf32(static_cast<std::uint32_t>(value));
    if (from == DType::TF32 && (to == DType::F32 || to == DType::TF32)) return tf32_as_read_by_mma(static_cast<std::uint32_t>(value));
    const bool between_integers = !info(from).is_float && !info(to).is_float;
    if (between_integers && to != DType::Bool) {
        const Unpacked u = unpack_any(value, from);
        const std::uint64_t extended = u.negative ? ~u.significand + 1 : u.significand;
        return extended & storage_mask(to);
    }
    return pack_any(unpack_any(value, from), to);
}

double to_double(std::uint64_t value, DType type) {
    if (type == DType::F64) return std::bit_cast<double>(value);
    return as_double(unpack_any(value & storage_mask(type), type));
}

std::uint64_t from_double(double v, DType type) { return convert(std::bit_cast<std::uint64_t>(v), DType::F64, type); }

}  // namespace tw::target
