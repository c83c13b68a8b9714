// Element types and their exact conversions.
//
// A value is carried on the host as its bit pattern (low bits of a uint64_t), because the same code must be able to say
// what a NaN, a denormal or a padding bit becomes. The conversion routines below are what the hardware's `cvt` does, bit
// for bit (bench/probes compares them with the H200); host floating point is never used to round.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::target {

enum class DType : std::uint8_t { F64, F32, TF32, BF16, F16, E4M3, E5M2, I64, I32, U32, I16, I8, U8, Bool };

inline constexpr std::array<DType, 14> all_dtypes = {DType::F64,  DType::F32,  DType::TF32, DType::BF16, DType::F16,
                                                     DType::E4M3, DType::E5M2, DType::I64,  DType::I32,  DType::U32,
                                                     DType::I16,  DType::I8,   DType::U8,   DType::Bool};

struct DTypeInfo {
    DType type;
    std::string_view name;  // as the language and the JSON spell it
    std::string_view ptx;   // PTX type suffix of a matrix operand or arithmetic instruction, without the dot
    std::string_view cuda;  // the C++ type that holds one element in emitted code
    int storage_bits;       // bits one element occupies in memory (Bool: 8, TF32: 32)
    bool is_float;
    bool is_signed;
    int exponent_bits;  // floats only
    int fraction_bits;  // floats only: stored significand bits without the hidden one
    int exponent_bias;  // floats only
    bool has_infinity;  // E4M3 has none
};

const DTypeInfo& info(DType type);
inline int bits(DType type) { return info(type).storage_bits; }
inline int bytes(DType type) { return info(type).storage_bits / 8; }
inline std::string_view name(DType type) { return info(type).name; }
inline bool is_float(DType type) { return info(type).is_float; }
inline bool is_fp8(DType type) { return type == DType::E4M3 || type == DType::E5M2; }
std::optional<DType> dtype_from_name(std::string_view name);

// ---- conversions on bit patterns ----
// Rn: to nearest, ties to even. Rna: to nearest, ties away from zero. Rz: towards zero (truncation).
enum class Rounding : std::uint8_t { Rn, Rna, Rz };

std::uint16_t f32_to_bf16(std::uint32_t f32, Rounding r = Rounding::Rn);   // NaN -> 0x7fff
std::uint16_t f32_to_f16(std::uint32_t f32, Rounding r = Rounding::Rn);    // NaN -> 0x7fff
std::uint32_t f32_to_tf32(std::uint32_t f32, Rounding r = Rounding::Rna);  // cvt.rna.tf32.f32; low 13 bits of the result 0, of a NaN too
std::uint8_t f32_to_e4m3(std::uint32_t f32);                               // rn.satfinite; NaN -> 0x7f
std::uint8_t f32_to_e5m2(std::uint32_t f32);                               // rn.satfinite; NaN -> 0x7f
std::uint8_t f16_to_e4m3(std::uint16_t f16);                               // rn.satfinite
std::uint8_t f16_to_e5m2(std::uint16_t f16);                               // rn.satfinite
std::uint32_t bf16_to_f32(std::uint16_t v);                                // exact (a shift; NaN payload kept)
std::uint32_t f16_to_f32(std::uint16_t v);                                 // exact; NaN -> 0x7fffffff
std::uint16_t e4m3_to_f16(std::uint8_t v);                                 // exact; NaN -> 0x7fff
std::uint16_t e5m2_to_f16(std::uint8_t v);                                 // exact; NaN -> 0x7fff
std::uint32_t f64_to_f32(std::uint64_t f64);                               // rn; a NaN keeps sign and upper payload, quiet
std::uint64_t f32_to_f64(std::uint32_t f32);                               // exact; a NaN keeps sign and payload, quiet

// What a tensor core sees of an f32 bit pattern that is used as a tf32 operand without cvt: the low 13 bits are ignored.
std::uint32_t tf32_as_read_by_mma(std::uint32_t f32);

std::int32_t f32_to_i32(std::uint32_t f32, Rounding r);  // Rn: cvt.rni, Rz: cvt.rzi; saturates; NaN -> 0
std::uint32_t f32_to_u32(std::uint32_t f32, Rounding r);
std::int64_t f32_to_i64(std::uint32_t f32, Rounding r);  // NaN -> INT64_MIN (0x8000...)
std::int8_t f32_to_i8_sat(std::uint32_t f32);            // cvt.rni.sat.s8.f32
std::uint8_t f32_to_u8_sat(std::uint32_t f32);           // cvt.rni.sat.u8.f32
std::uint32_t i32_to_f32(std::int32_t v);                // rn
std::uint32_t u32_to_f32(std::uint32_t v);               // rn
std::uint32_t i64_to_f32(std::int64_t v);                // rn

// Any type to any type, as one cast in the language means it: through f32 for float formats narrower than f32 (exact that
// way), satfinite for fp8, rna for tf32, truncation towards zero for float to integer, rn for integer to float, low bits
// for integer to integer, `!= 0` for Bool. Bits above the type's storage are zero in the result.
std::uint64_t convert(std::uint64_t value_bits, DType from, DType to);

// The value as a double (exact for every type but I64), for references and printing.
double to_double(std::uint64_t value_bits, DType type);
// The nearest value of `type` to `v`, by the rules of convert() from F64 (double rounding avoided).
std::uint64_t from_double(double v, DType type);

}  // namespace tw::target
