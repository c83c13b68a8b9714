// Exchanges inside a warp, and reductions into memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "target/arch.h"
#include "target/dtype.h"
#include "target/legality.h"

namespace tw::target {

// ---- shfl.sync ----
enum class ShuffleMode : std::uint8_t { Up, Down, Bfly, Idx };
std::string_view name(ShuffleMode m);  // "up", "down", "bfly", "idx"

struct ShuffleSource {
    int lane;       // whose value this lane receives
    bool in_range;  // the predicate result: false means the lane keeps its own value
};
// `b` is the delta, lane mask or source lane; `clamp_and_mask` the packed operand c of the instruction.
ShuffleSource shuffle_source(ShuffleMode mode, int lane, std::uint32_t b, std::uint32_t clamp_and_mask);
// Operand c for sub-warps of `width` lanes (1, 2, 4, ..., 32), as the CUDA intrinsics pass it.
std::uint32_t shuffle_clamp(ShuffleMode mode, int width);
Legality shuffle_legal(int width, std::uint32_t member_mask, std::uint32_t executing_mask);

// ---- red / atom .add ----
struct MemoryReduce {
    DType type;
    int count;                                   // elements per instruction and lane: 1; 2 for packed f16/bf16; 2 or 4 for vectors of f32
    bool shared;                                 // destination in shared memory, else global
    bool returns;                                // atom (returns the old value) rather than red
    [[nodiscard]] std::string ptx_name() const;  // "red.global.add.v4.f32"
    [[nodiscard]] int bytes() const { return count * tw::target::bytes(type); }
};
Legality memory_reduce_legal(const Arch& arch, const MemoryReduce& r);
Legality memory_reduce_aligned(const MemoryReduce& r, std::uint64_t byte_address);

}  // namespace tw::target
