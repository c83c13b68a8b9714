#include "target/warp.h"

#include <array>

namespace tw::target {

std::string_view name(ShuffleMode m) {
    constexpr std::array<std::string_view, 4> names = {"up", "down", "bfly", "idx"};
    return names[static_cast<std::size_t>(m)];
}

ShuffleSource shuffle_source(ShuffleMode mode, int lane, std::uint32_t b, std::uint32_t c) {
    const int delta = static_cast<int>(b & 31), clamp = static_cast<int>(c & 31), segment = static_cast<int>((c >> 8) & 31);
    const int last = (lane & segment) | (clamp & ~segment & 31);
    const int first = lane & segment;
    int source = lane;
    bool in_range = false;
    switch (mode) {
        case ShuffleMode::Up:
            source = lane - delta;
            in_range = source >= last;
            break;
        case ShuffleMode::Down:
            source = lane + delta;
            in_range = source <= last;
            break;
        case ShuffleMode::Bfly:
            source = lane ^ delta;
            in_range = source <= last;
            break;
        case ShuffleMode::Idx:
            source = first | (delta & ~segment & 31);
            in_range = source <= last;
            break;
    }
    return {in_range ? source : lane, in_range};
}

std::uint32_t shuffle_clamp(ShuffleMode mode, int width) {
    const std::uint32_t segment = static_cast<std::uint32_t>(32 - width) << 8;
    return segment | (mode == ShuffleMode::Up ? 0u : 31u);
}

Legality shuffle_legal(int width, std::uint32_t member_mask, std::uint32_t executing_mask) {
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        return Legality::no("shuffle width " + std::to_string(width) + " is not a power of two up to 32");
    if ((executing_mask & ~member_mask) != 0) return Legality::no("a lane executes the shuffle but is not in its member mask");
    if ((member_mask & ~executing_mask) != 0) return Legality::no("the member mask names a lane that does not execute the shuffle");
    return Legality::yes();
}

std::string MemoryReduce::ptx_name() const {
    std::string text = returns ? "atom" : "red";
    text += shared ? ".shared" : ".global";
    text += ".add";
    if (bits(type) == 16) {
        text += ".noftz";
        if (count > 2) text += ".v" + std::to_string(count / 2);
        text += "." + std::string(info(type).ptx) + (count > 1 ? "x2" : "");
        return text;
    }
    if (count > 1) text += ".v" + std::to_string(count);
    return text + "." + std::string(info(type).ptx);
}

Legality memory_reduce_legal(const Arch& arch, const MemoryReduce& r) {
    const std::string what = r.ptx_name();
    switch (r.type) {
        case DType::F32:
            if (r.count == 1) return Legality::yes();
            if (r.count != 2 && r.count != 4) return Legality::no(what + ": an f32 reduction has 1, 2 or 4 elements");
            if (r.shared) return Legality::no(what + ": vector reductions exist in global memory only");
            if (!arch.has(Feature::RedVectorF32))
                return Legality::no(what + " does not exist on " + std::string(arch.name) + " (sm_90 and later)");
            return Legality::yes();
        case DType::F16:
        case DType::BF16:
            if (r.count != 1 && r.count != 2 && r.count != 4 && r.count != 8)
                return Legality::no(what + ": a 16-bit reduction has 1, 2, 4 or 8 elements");
            if (r.type == DType::BF16 && !arch.has(Feature::RedBf16x2))
                return Legality::no(what + " does not exist on " + std::string(arch.name) + " (sm_90 and later)");
            if (r.count > 2 && r.shared) return Legality::no(what + ": vector reductions exist in global memory only");
            if (r.count > 2 && !arch.has(Feature::RedVectorF32))
                return Legality::no(what + " does not exist on " + std::string(arch.name) + " (sm_90 and later)");
            return Legality::yes();
        case DType::F64:
        case DType::I32:
        case DType::U32:
            if (r.count != 1) return Legality::no(what + ": only one element at a time");
            return Legality::yes();
        default: return Legality::no("there is no atomic add of " + std::string(name(r.type)));
    }
}

Legality memory_reduce_aligned(const MemoryReduce& r, std::uint64_t address) {
    if (address % static_cast<std::uint64_t>(r.bytes()) != 0)
        return Legality::no("address " + std::to_string(address) + " is not a multiple of the " + std::to_string(r.bytes()) + " bytes of " +
                            r.ptx_name());
    return Legality::yes();
}

}  // namespace tw::target
