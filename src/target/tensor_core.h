// How the tensor cores add, bit for bit.
//
// A tensor core does not round after each product. It forms the exact products of one instruction's K steps, aligns them and
// the accumulator to the largest exponent among them, cuts each term off a fixed number of bits below that exponent, adds
// the integers, and cuts the sum off to the result's precision. Order does not matter inside one instruction; between
// instructions it does. Fitted to and then checked on an H200, for every type, by the `sums` probes:
//
//   instruction           terms added at once      bits kept below the largest exponent     result
//   f16, bf16, tf32       all of K, and C          25                                       f32, towards zero
//   wgmma fp8             all 32, and C            13                                       f32 with 13 fraction bits, towards zero
//   mma.sync fp8          k % 4 < 2, then the others, 25 each; C is added last by an ordinary f32 addition, to nearest
//   f16 accumulator       as above without the cut to f32; the sum is rounded to nearest f16
//   8-bit integers        exact, modulo 2^32
//
// A product's exponent is the sum of its factors' exponents: significands are multiplied, not normalised (1.5 * 1.5 counts as
// exponent 0). This decides "values", which are tested and not proved; no proof leans on it.
#pragma once

#include <cstdint>
#include <span>

#include "target/dtype.h"
#include "target/legality.h"

namespace tw::target {

enum class MatrixUnit : std::uint8_t { MmaSync, Wgmma };

// One factor, decoded once and used for a whole row or column.
struct MatrixFactor {
    std::int32_t significand = 0;  // signed; the value is significand * 2^(exponent - fraction bits of the type)
    std::int16_t exponent = 0;     // of the leading place, whether or not a one stands there
    enum class Kind : std::uint8_t { Finite, Infinite, Nan } kind = Kind::Finite;
};
MatrixFactor matrix_factor(std::uint64_t bits, DType type);

// The bit pattern of one element of D for one instruction. `a` and `b` are its K factors in the order of k; `c` is a bit pattern
// of type acc (F32, F16 or I32). Pre: a.size() == b.size() <= 64, types as mma_legal / wgmma_legal admit.
std::uint32_t matrix_sum(MatrixUnit unit, DType a_type, DType b_type, DType acc, std::span<const MatrixFactor> a,
                         std::span<const MatrixFactor> b, std::uint32_t c);

}  // namespace tw::target
