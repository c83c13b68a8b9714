// What outputs hold before a run, so that what was never written is seen.
#pragma once

#include <cstring>

#include "emulate/emulator.h"

namespace tw::emulate {

// The byte that outputs are filled with: floats become a NaN that no arithmetic gives (the sign and every bit of the payload are set),
// integers a value that is no likely result.
inline std::uint8_t poison_of(target::DType dtype) { return target::info(dtype).is_float ? 0xff : 0xa5; }

inline std::uint64_t bits_at(const TensorData& t, const std::vector<std::int64_t>& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * t.strides[i];
    std::uint64_t bits = 0;
    std::memcpy(&bits, &t.bytes[static_cast<std::size_t>(offset * target::bytes(t.dtype))],
                static_cast<std::size_t>(target::bytes(t.dtype)));
    return bits;
}

inline bool is_poison(std::uint64_t bits, target::DType dtype) {
    std::uint64_t poison = 0;
    std::memset(&poison, poison_of(dtype), static_cast<std::size_t>(target::bytes(dtype)));
    return bits == poison;
}

}  // namespace tw::emulate
