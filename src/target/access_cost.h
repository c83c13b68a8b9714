// What a warp's memory access costs: shared-memory wavefronts and global 32-byte sectors, from the byte addresses alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "target/arch.h"

namespace tw::target {

// Addresses of the 32 lanes; an inactive lane has none.
using LaneAddresses = std::span<const std::optional<std::uint32_t>>;

struct SharedCost {
    int wavefronts;  // passes through the banks
    int ideal;       // the fewest passes that could carry the distinct bytes asked for
};
// bytes_per_lane is 1, 2, 4, 8 or 16, each lane's address a multiple of it. A wavefront serves each bank one 32-bit word
// and broadcasts it to every lane that asks. Lanes are served in groups of 32, 16 or 8 for up to 4, 8 or 16 bytes; two
// neighbouring groups (the halves of a warp for 8 bytes, of a half-warp for 16) are served as one when every lane in them asks
// for the same as lane ^ 1 does, or every lane the same as lane ^ 2. Checked by the clock on an H200 (probes).
SharedCost shared_wavefronts(const Arch& arch, LaneAddresses lanes, int bytes_per_lane);
// ldmatrix/stmatrix: one group of 8 row addresses (16 bytes each) per matrix.
SharedCost matrix_move_wavefronts(const Arch& arch, std::span<const std::uint32_t> row_addresses);

struct GlobalCost {
    int sectors;        // distinct 32-byte sectors touched
    int lines;          // distinct 128-byte lines touched
    int ideal_sectors;  // ceil(distinct bytes asked for / sector size)
};
GlobalCost global_sectors(const Arch& arch, std::span<const std::optional<std::uint64_t>> lanes, int bytes_per_lane);

}  // namespace tw::target
