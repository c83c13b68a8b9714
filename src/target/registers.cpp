#include "target/registers.h"

#include "target/sync.h"

namespace tw::target {

int registers_for(DType type, int elements) { return (elements * bits(type) + 31) / 32; }

int accumulator_registers(int m, int n, int warpgroups) { return m * n / (128 * warpgroups); }

int max_registers_for_block(const Arch& arch, int threads, int blocks) {
    const int warps = (threads + arch.warp_size - 1) / arch.warp_size;
    const int per_thread = arch.registers_per_sm / (blocks * warps * arch.warp_size);
    const int unit = arch.register_allocation_unit / arch.warp_size;
    const int granted = per_thread / unit * unit;
    return granted < arch.max_registers_per_thread ? granted : arch.max_registers_per_thread;
}

Legality setmaxnreg_plan_legal(const Arch& arch, int launch_registers, std::span<const WarpgroupRegisters> plan) {
    int warpgroups = 0, asked = 0;
    for (const WarpgroupRegisters& p : plan) {
        if (Legality l = setmaxnreg_legal(arch, p.registers); !l) return l;
        warpgroups += p.warpgroups;
        asked += p.warpgroups * p.registers;
    }
    // A kernel compiled with R registers per thread is granted R rounded up to a multiple of 8.
    const int granted = (launch_registers + 7) / 8 * 8 * warpgroups;
    if (asked > granted)
        return Legality::no("setmaxnreg asks for " + std::to_string(asked * 128) + " registers in all; the block was launched with " +
                            std::to_string(granted * 128) + ", so an increase would wait for ever");
    return Legality::yes();
}

}  // namespace tw::target
