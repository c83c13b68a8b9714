#include "target/arch.h"

#include <algorithm>
#include <array>

namespace tw::target {

namespace {

constexpr std::array sm_80_features = {Feature::MmaSync16, Feature::Ldmatrix, Feature::CpAsync,      Feature::CpAsyncMbarrier,
                                       Feature::Mbarrier,  Feature::RedF16x2, Feature::CvtBf16Direct};

constexpr std::array sm_90a_features = {
    Feature::MmaSync16,      Feature::MmaSyncFp8, Feature::Ldmatrix,     Feature::Stmatrix, Feature::CpAsync,   Feature::CpAsyncMbarrier,
    Feature::Mbarrier,       Feature::MbarrierTx, Feature::Bulk,         Feature::Tma,      Feature::Cluster,   Feature::Wgmma,
    Feature::SetMaxNReg,     Feature::ProxyFence, Feature::ElectSync,    Feature::RedF16x2, Feature::RedBf16x2, Feature::RedVectorF32,
    Feature::GridDepControl, Feature::CvtFp8,     Feature::CvtBf16Direct};

constexpr std::array<Arch, 2> archs = {{
    {.name = "sm_80",
     .compute_capability = 80,
     .warp_size = 32,
     .max_threads_per_block = 1024,
     .max_warps_per_sm = 64,
     .max_blocks_per_sm = 32,
     .registers_per_sm = 65536,
     .max_registers_per_thread = 255,
     .register_allocation_unit = 256,
     .max_shared_bytes_per_block = 163 * 1024,
     .shared_bytes_per_sm = 164 * 1024,
     .reserved_shared_bytes_per_block = 1024,
     .static_shared_bytes = 48 * 1024,
     .shared_banks = 32,
     .bank_bytes = 4,
     .named_barriers = 16,
     .max_cluster_blocks = 1,
     .max_cluster_blocks_nonportable = 1,
     .max_grid_x_log2 = 31,
     .max_vector_bytes = 16,
     .l2_sector_bytes = 32,
     .l2_line_bytes = 128,
     .features = sm_80_features},
    {.name = "sm_90a",
     .compute_capability = 90,
     .warp_size = 32,
     .max_threads_per_block = 1024,
     .max_warps_per_sm = 64,
     .max_blocks_per_sm = 32,
     .registers_per_sm = 65536,
     .max_registers_per_thread = 255,
     .register_allocation_unit = 256,
     .max_shared_bytes_per_block = 227 * 1024,
     .shared_bytes_per_sm = 228 * 1024,
     .reserved_shared_bytes_per_block = 1024,
     .static_shared_bytes = 48 * 1024,
     .shared_banks = 32,
     .bank_bytes = 4,
     .named_barriers = 16,
     .max_cluster_blocks = 8,
     .max_cluster_blocks_nonportable = 16,
     .max_grid_x_log2 = 31,
     .max_vector_bytes = 16,
     .l2_sector_bytes = 32,
     .l2_line_bytes = 128,
     .features = sm_90a_features},
}};

constexpr int round_up(int v, int unit) { return (v + unit - 1) / unit * unit; }

}  // namespace

bool Arch::has(Feature f) const { return std::find(features.begin(), features.end(), f) != features.end(); }

std::span<const Arch> all_archs() { return archs; }

const Arch* find_arch(std::string_view name) {
    for (const Arch& a : archs)
        if (a.name == name) return &a;
    return nullptr;
}

int occupancy_blocks_per_sm(const Arch& arch, int threads, int registers, int dynamic_shared_bytes) {
    if (threads < 1 || threads > arch.max_threads_per_block || registers > arch.max_registers_per_thread ||
        dynamic_shared_bytes > arch.max_shared_bytes_per_block)
        return 0;
    const int warps = round_up(threads, arch.warp_size) / arch.warp_size;
    // Warps are given to the four partitions of an SM; a partition's registers hold whole warps only.
    constexpr int partitions = 4;
    const int registers_per_warp = round_up(std::max(registers, 1) * arch.warp_size, arch.register_allocation_unit);
    const int warps_by_registers = arch.registers_per_sm / partitions / registers_per_warp * partitions;
    const int by_registers = warps_by_registers / warps;
    const int by_warps = arch.max_warps_per_sm / warps;
    const int shared_per_block = round_up(dynamic_shared_bytes, 128) + arch.reserved_shared_bytes_per_block;
    const int by_shared = arch.shared_bytes_per_sm / shared_per_block;
    return std::min({by_registers, by_warps, by_shared, arch.max_blocks_per_sm});
}

}  // namespace tw::target
