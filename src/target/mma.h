// mma.sync: D = A * B + C by one warp, all operands in registers.
// A is m x k, B is k x n (each thread holds parts of a column), C and D are m x n.
// Values are numbered in register order, and inside a 32-bit register from the low bits up.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "target/arch.h"
#include "target/dtype.h"
#include "target/fragment.h"
#include "target/legality.h"

namespace tw::target {

struct MmaShape {
    int m, n, k;
    friend bool operator==(const MmaShape&, const MmaShape&) = default;
};

struct MmaInstruction {
    MmaShape shape;
    DType a, b, c, d;  // c and d have the same type in every row
    Feature needs;
    FragmentMap a_map;  // rows = m, cols = k
    FragmentMap b_map;  // rows = k, cols = n
    FragmentMap c_map;  // rows = m, cols = n; also D
    std::string_view ptx_section;

    [[nodiscard]] int a_registers() const;  // 32-bit registers per thread
    [[nodiscard]] int b_registers() const;
    [[nodiscard]] int c_registers() const;
    [[nodiscard]] std::string ptx_name() const;  // "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    // Multiply-adds per instruction.
};

std::span<const MmaInstruction> all_mma();
const MmaInstruction* find_mma(MmaShape shape, DType a, DType b, DType acc);
Legality mma_legal(const Arch& arch, MmaShape shape, DType a, DType b, DType acc);

}  // namespace tw::target
