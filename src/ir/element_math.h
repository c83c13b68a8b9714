// What each operation on elements is, for each type: the one definition. The emulator evaluates it, the fp64 reference takes its
// conversions from it, the prover's tags follow it (verify/value_types.cpp), the generator prints it (codegen/print_registers.cpp,
// codegen/cuda/tw_tile.cuh), and bench/probes/probe_elements.py compares all of them on a GPU over edge values.
//
//   integers   + - * and unary - keep the low bits of their type (two's complement); // rounds down and % has the sign of the divisor, as
//   in Python; division by 0 has no value. floats     f64 and f32 round to nearest even after every operation; bf16 and f16 compute in f32
//   and round again. max and min drop a NaN. casts      integer to integer: the low bits. Float to integer: towards zero, the least or
//   largest value of the type where it is beyond, 0 for NaN (f32 to i64: the
//              least value). To a float: to nearest even; bf16, f16, tf32 and the 8-bit floats by way of f32. To bool: is it not 0.
//
// Counter-based random numbers. philox(key0, key1, counter0 .. counter3, word), all u32, is one word (word % 4) of Philox4x32-10 of that
// counter under that key, as Salmon, Moraes, Dror and Shaw define it ("Parallel random numbers: as easy as 1, 2, 3", 2011). It is a
// function like others: no state, equal wherever its seven words are. uniform(x) in kernels and in `computes` is f32(x // 256) * 2^-24,
// exact, from 0 to 1 - 2^-24.
//
// Values are doubles, which hold every value of every type but 64-bit integers beyond 2^53.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ir/ir.h"

namespace tw::ir {

double low_bits(double v, DType type);  // Pre: an integer type
std::uint32_t philox(const std::array<std::uint32_t, 2>& key, std::array<std::uint32_t, 4> counter, std::uint32_t word);
double converted(double v, DType from, DType to);
double computed(ElementOp op, DType type,
                const double* args);  // every operation but leaves and casts; `type` is the result's, and the operands' but for comparisons

// The operation of that name in a term of `computes`: any but leaves, casts and what only the device form has.
std::optional<ElementOp> operation_named(const std::string& name);

}  // namespace tw::ir
