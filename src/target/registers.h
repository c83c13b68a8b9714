// Facts for register budgets: what a fragment costs, what a block may use, how setmaxnreg redistributes.
#pragma once

#include <span>

#include "target/arch.h"
#include "target/dtype.h"
#include "target/legality.h"

namespace tw::target {

// 32-bit registers per thread that hold `elements` values of `type` per thread, packed.
int registers_for(DType type, int elements_per_thread);
// Registers of one thread's share of an m x n f32 accumulator held by `warpgroups` warpgroups.
int accumulator_registers(int m, int n, int warpgroups);
// The most registers per thread a kernel of this block size can be compiled with when `blocks` of them must fit on an SM.
int max_registers_for_block(const Arch& arch, int threads_per_block, int blocks = 1);
// What is left for other values is a judgement; this is the part that is always there in our kernels: addresses,
// descriptors, loop state, barrier phases. Measured on the shipped kernels, used for estimates only.
inline constexpr int register_overhead = 24;

struct WarpgroupRegisters {
    int warpgroups;
    int registers;  // per thread, after setmaxnreg
};
// setmaxnreg moves registers inside a block: each value legal, and the sum over warpgroups of 128 * registers must not pass
// what the block was launched with (launch_registers * threads).
Legality setmaxnreg_plan_legal(const Arch& arch, int launch_registers, std::span<const WarpgroupRegisters> plan);

}  // namespace tw::target
