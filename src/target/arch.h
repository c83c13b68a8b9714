// What a GPU generation has: limits and which optional instruction families exist. Adding a target is adding a row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tw::target {

// Families that do not exist on every architecture. Instruction rows name the feature they need.
enum class Feature : std::uint8_t {
    MmaSync16,   // mma.sync f16/bf16/tf32/s8 m16n8k*
    MmaSyncFp8,  // mma.sync e4m3/e5m2 m16n8k32 (sm_89 and later)
    Ldmatrix,
    Stmatrix,
    CpAsync,          // non-bulk cp.async and its commit/wait groups
    CpAsyncMbarrier,  // cp.async.mbarrier.arrive
    Mbarrier,         // mbarrier init/arrive/test_wait in shared::cta
    MbarrierTx,       // expect_tx/complete_tx, try_wait, remote arrive
    Bulk,             // cp.async.bulk (1D) and bulk groups
    Tma,              // cp.async.bulk.tensor
    Cluster,          // thread block clusters, barrier.cluster, mapa, distributed shared memory
    Wgmma,            // warpgroup MMA (architecture-specific: the "a" in sm_90a)
    SetMaxNReg,       // setmaxnreg (architecture-specific)
    ProxyFence,       // fence.proxy.async, fence.mbarrier_init
    ElectSync,
    RedF16x2,        // red/atom .noftz.f16x2 in global memory
    RedBf16x2,       // red/atom .noftz.bf16x2
    RedVectorF32,    // red.global.add.v2/.v4.f32
    GridDepControl,  // programmatic dependent launch
    CvtFp8,          // cvt to and from e4m3x2/e5m2x2
    CvtBf16Direct,   // cvt.rn.bf16.f32 (sm_80+); f32 from bf16 as cvt (sm_90+)
};

struct Arch {
    std::string_view name;   // "sm_90a", as the compiler spells it
    int compute_capability;  // 90
    int warp_size;
    int max_threads_per_block;
    int max_warps_per_sm;
    int max_blocks_per_sm;
    int registers_per_sm;  // 32-bit registers
    int max_registers_per_thread;
    int register_allocation_unit;    // registers are granted per warp in multiples of this
    int max_shared_bytes_per_block;  // dynamic opt-in maximum
    int shared_bytes_per_sm;
    int reserved_shared_bytes_per_block;  // taken by the system from the SM's total for every resident block
    int static_shared_bytes;              // the limit without opt-in
    int shared_banks;
    int bank_bytes;
    int named_barriers;                  // per block; id 0 is __syncthreads
    int max_cluster_blocks;              // what every device of this kind or later takes; 1 where there are no clusters
    int max_cluster_blocks_nonportable;  // what this one takes when the launch asks for it
    int max_grid_x_log2;                 // grid.x <= 2^31 - 1
    int max_vector_bytes;                // widest ld/st per lane
    int l2_sector_bytes;                 // granularity of global traffic
    int l2_line_bytes;
    std::span<const Feature> features;

    [[nodiscard]] bool has(Feature f) const;
};

std::span<const Arch> all_archs();
const Arch* find_arch(std::string_view name);  // nullptr when unknown

// How many blocks of this shape an SM holds (registers, shared memory, warps, block slots); 0 when it cannot run at all.
int occupancy_blocks_per_sm(const Arch& arch, int threads_per_block, int registers_per_thread, int dynamic_shared_bytes);

}  // namespace tw::target
