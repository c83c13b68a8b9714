// The shared-memory swizzles of TMA and wgmma: within an aligned pattern, 16-byte chunks are permuted by XOR.
// The XOR acts on bits of the shared-memory *address* (not on an offset inside a tile), so a tile that starts inside a
// pattern is read with the phase of its address; a tile whose base is a multiple of pattern_bytes() may use offsets.
//
//   mode   XOR of address bits   with bits    row span   pattern (repeat)   CuTe
//   None   -                     -            16 B       16 B               Swizzle<0,4,3>
//   B32    [4,5)                 [7,8)        32 B       256 B              Swizzle<1,4,3>
//   B64    [4,6)                 [7,9)        64 B       512 B              Swizzle<2,4,3>
//   B128   [4,7)                 [7,10)       128 B      1024 B             Swizzle<3,4,3>
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tw::target {

enum class SwizzleMode : std::uint8_t { None, B32, B64, B128 };

inline constexpr std::array<SwizzleMode, 4> all_swizzles = {SwizzleMode::None, SwizzleMode::B32, SwizzleMode::B64, SwizzleMode::B128};

// Swizzle(B, M, S) on byte addresses: base_bits = B; M = 4 and S = 3 always.
constexpr int swizzle_bits(SwizzleMode m) { return static_cast<int>(m); }
constexpr int span_bytes(SwizzleMode m) { return 16 << swizzle_bits(m); }
constexpr int pattern_bytes(SwizzleMode m) { return m == SwizzleMode::None ? 16 : 128 << swizzle_bits(m); }

// An involution: swizzled(swizzled(a)) == a. Bits outside [4,7) never change.
constexpr std::uint32_t swizzled(SwizzleMode m, std::uint32_t byte_address) {
    const std::uint32_t mask = ((1u << swizzle_bits(m)) - 1u) << 4;
    return byte_address ^ ((byte_address >> 3) & mask);
}

constexpr std::string_view name(SwizzleMode m) {
    constexpr std::array<std::string_view, 4> names = {"none", "32B", "64B", "128B"};
    return names[static_cast<std::size_t>(m)];
}

// From the language's number: 0, 32, 64, 128.
constexpr std::optional<SwizzleMode> swizzle_from_bytes(int span) {
    switch (span) {
        case 0: return SwizzleMode::None;
        case 32: return SwizzleMode::B32;
        case 64: return SwizzleMode::B64;
        case 128: return SwizzleMode::B128;
        default: return std::nullopt;
    }
}

}  // namespace tw::target
