// wgmma.mma_async: D (+)= A * B by a warpgroup (4 warps, 128 threads, warp rank 0 a multiple of 4).
// D is m64 x N in registers; A (m64 x k) from registers or shared memory; B (k x N) from shared memory.
// One instruction always consumes 32 bytes along K: k = 8 (tf32), 16 (16-bit), 32 (8-bit).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "target/arch.h"
#include "target/dtype.h"
#include "target/fragment.h"
#include "target/legality.h"
#include "target/swizzle.h"

namespace tw::target {

// Which dimension is contiguous in shared memory. K-major is "not transposed" in the instruction's immediates.
enum class Major : std::uint8_t { K, MN };
constexpr std::string_view name(Major m) { return m == Major::K ? "K" : "MN"; }

inline constexpr int wgmma_m = 64;
inline constexpr int wgmma_k_bytes = 32;

struct WgmmaInstruction {
    int n;  // columns of D
    DType a, b, d;
    bool a_in_registers;
    Major a_major;  // K when a_in_registers
    Major b_major;

    [[nodiscard]] int k() const { return wgmma_k_bytes / bytes(a); }
    [[nodiscard]] int d_registers() const;       // 32-bit registers per thread
    [[nodiscard]] int a_registers() const;       // 4 when A is in registers, else 0
    [[nodiscard]] std::string ptx_name() const;  // "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16"
    // The whole statement with %0.. operands as inline assembly needs it: accumulators first, then A (registers or
    // descriptor), B descriptor, scale-d predicate operand, and the immediates the type admits.
    [[nodiscard]] std::string ptx_statement() const;
    friend bool operator==(const WgmmaInstruction&, const WgmmaInstruction&) = default;
};

// Types, N (8..256 step 8; integers: 8, 16, 24, 32, then step 16), major-ness (MN only for 16-bit types).
Legality wgmma_legal(const Arch& arch, const WgmmaInstruction& w);
std::vector<int> wgmma_legal_n(DType a);
// The accumulator types that go with A and B of these types, widest first. Empty: no such instruction.
std::vector<DType> wgmma_accumulators(DType a, DType b);

FragmentMap wgmma_accumulator_map(int n);   // 64 x n, 128 threads, n / 2 values per thread
FragmentMap wgmma_a_register_map(DType a);  // 64 x k, 128 threads
// The m64 x N accumulator of one wgmma, narrowed to 16 bits, *is* N / 16 A fragments of m64 x k16: accumulator values
// 8 * j .. 8 * j + 7 are the A values 0..7 of K block j. No data moves between threads.
// Post: wgmma_a_register_map(BF16).at(t, v) shifted right by 16 * j columns == wgmma_accumulator_map(n).at(t, 8 * j + v).
// 8-bit and tf32 A fragments do not have this property: there values must move between the lanes of a quad.

}  // namespace tw::target
