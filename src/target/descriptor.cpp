#include "target/descriptor.h"

#include <bit>

namespace tw::target {

namespace {

constexpr std::uint32_t field_limit = 1u << 18;  // 14 bits of 16-byte units

// Swizzle codes of bits 62-63.
constexpr std::uint64_t code(SwizzleMode m) {
    switch (m) {
        case SwizzleMode::None: return 0;
        case SwizzleMode::B128: return 1;
        case SwizzleMode::B64: return 2;
        case SwizzleMode::B32: return 3;
    }
    return 0;
}

constexpr SwizzleMode mode_of(std::uint64_t code) {
    constexpr SwizzleMode modes[] = {SwizzleMode::None, SwizzleMode::B128, SwizzleMode::B64, SwizzleMode::B32};
    return modes[code & 3];
}

Legality field_legal(std::uint32_t bytes, const char* what) {
    if (bytes % 16 != 0) return Legality::no(std::string(what) + " is " + std::to_string(bytes) + " bytes; it must be a multiple of 16");
    if (bytes >= field_limit)
        return Legality::no(std::string(what) + " is " + std::to_string(bytes) + " bytes; the descriptor holds less than " +
                            std::to_string(field_limit));
    return Legality::yes();
}

int chunk_elements(DType type) { return 16 / bytes(type); }
int k_step(DType type) { return wgmma_k_bytes / bytes(type); }

}  // namespace

Legality descriptor_legal(const MatrixDescriptor& d) {
    if (Legality l = field_legal(d.start_address, "matrix start address"); !l) return l;
    if (Legality l = field_legal(d.leading_bytes, "leading dimension byte offset"); !l) return l;
    if (Legality l = field_legal(d.stride_bytes, "stride dimension byte offset"); !l) return l;
    if (d.base_offset < 0 || d.base_offset > 7)
        return Legality::no("base offset is " + std::to_string(d.base_offset) + "; it has three bits (0 to 7)");
    return Legality::yes();
}

std::uint64_t encode_descriptor(const MatrixDescriptor& d) {
    const auto field = [](std::uint32_t bytes) { return static_cast<std::uint64_t>((bytes & (field_limit - 1)) >> 4); };
    return field(d.start_address) | field(d.leading_bytes) << 16 | field(d.stride_bytes) << 32 |
           static_cast<std::uint64_t>(d.base_offset & 7) << 49 | code(d.swizzle) << 62;
}

MatrixDescriptor decode_descriptor(std::uint64_t v) {
    const auto field = [v](int shift) { return static_cast<std::uint32_t>((v >> shift) & 0x3fff) << 4; };
    return {.start_address = field(0),
            .leading_bytes = field(16),
            .stride_bytes = field(32),
            .base_offset = static_cast<int>((v >> 49) & 7),
            .swizzle = mode_of(v >> 62)};
}

std::uint32_t descriptor_address(const MatrixDescriptor& d, Major major, DType type, int mn, int k) {
    const auto lbo = static_cast<int>(d.leading_bytes), sbo = static_cast<int>(d.stride_bytes);
    const int span = span_bytes(d.swizzle), size = bytes(type), chunk = chunk_elements(type);
    int offset;
    if (major == Major::K) {
        const int chunk_stride = d.swizzle == SwizzleMode::None ? lbo : 16;
        offset = mn % 8 * span + mn / 8 * sbo + k / chunk * chunk_stride + k % chunk * size;
    } else {
        const int per_span = span / size;
        const bool plain = d.swizzle == SwizzleMode::None;
        offset = mn % per_span * size + mn / per_span * (plain ? sbo : lbo) + k % 8 * span + k / 8 * (plain ? lbo : sbo);
    }
    return swizzled(d.swizzle, d.start_address + static_cast<std::uint32_t>(offset));
}

int OperandTile::columns() const { return (contiguous() + span_elements() - 1) / span_elements(); }
int OperandTile::column_bytes() const { return other() * span_bytes(swizzle); }

Legality tile_legal(const OperandTile& t) {
    if (t.mn < 1 || t.k < 1) return Legality::no("operand tile is empty");
    if (bits(t.type) > 32) return Legality::no("wgmma has no operands of type " + std::string(name(t.type)));
    if (t.major == Major::MN && bits(t.type) != 16)
        return Legality::no("a " + std::string(name(t.type)) +
                            " operand must be K-major in shared memory; only 16-bit types have the transposed form");
    if (t.k % k_step(t.type) != 0)
        return Legality::no("K extent " + std::to_string(t.k) + " is not a multiple of the instruction's k = " +
                            std::to_string(k_step(t.type)) + " for " + std::string(name(t.type)));
    if (t.mn % 8 != 0) return Legality::no("M/N extent " + std::to_string(t.mn) + " is not a multiple of 8");
    if (t.contiguous() % t.span_elements() != 0)
        return Legality::no("the contiguous extent (" + std::to_string(t.contiguous()) + " x " + std::string(name(t.type)) + " = " +
                            std::to_string(t.contiguous() * bytes(t.type)) + " bytes) is not a multiple of the swizzle span of " +
                            std::to_string(span_bytes(t.swizzle)) + " bytes");
    if (t.column_bytes() >= static_cast<int>(field_limit))
        return Legality::no("a column of the tile takes " + std::to_string(t.column_bytes()) +
                            " bytes; the descriptor's offsets hold less than " + std::to_string(field_limit));
    return Legality::yes();
}

int tile_linear_offset(const OperandTile& t, int mn, int k) {
    const int along = t.major == Major::K ? k : mn, across = t.major == Major::K ? mn : k;
    const int span = t.span_elements();
    return along / span * t.column_bytes() + across * span_bytes(t.swizzle) + along % span * bytes(t.type);
}

std::uint32_t tile_address(const OperandTile& t, std::uint32_t base, int mn, int k) {
    return swizzled(t.swizzle, base + static_cast<std::uint32_t>(tile_linear_offset(t, mn, k)));
}

MatrixDescriptor tile_descriptor(const OperandTile& t, std::uint32_t base, int mn0, int k0) {
    const auto column = static_cast<std::uint32_t>(t.column_bytes());
    const auto eight_rows = static_cast<std::uint32_t>(8 * span_bytes(t.swizzle));
    const bool plain = t.swizzle == SwizzleMode::None;
    MatrixDescriptor d{.start_address = base + static_cast<std::uint32_t>(tile_linear_offset(t, mn0, k0)), .swizzle = t.swizzle};
    if (t.major == Major::K) {
        d.stride_bytes = eight_rows;
        d.leading_bytes = plain ? column : 16;  // unused with a swizzle; 16 is its conventional value
    } else {
        d.leading_bytes = plain ? eight_rows : column;
        d.stride_bytes = plain ? column : eight_rows;
    }
    return d;
}

Legality tile_descriptor_legal(const OperandTile& t, std::uint32_t base, int mn0, int k0, int mn_extent) {
    if (Legality l = tile_legal(t); !l) return l;
    if (base % static_cast<std::uint32_t>(pattern_bytes(t.swizzle)) != 0)
        return Legality::no("the tile starts at shared address " + std::to_string(base) + ", which is not a multiple of " +
                            std::to_string(pattern_bytes(t.swizzle)) + " (the " + std::string(name(t.swizzle)) +
                            " swizzle repeats that often)");
    if (k0 < 0 || k0 % k_step(t.type) != 0 || k0 + k_step(t.type) > t.k)
        return Legality::no("K position " + std::to_string(k0) + " is not a k step of the tile (steps of " +
                            std::to_string(k_step(t.type)) + ", extent " + std::to_string(t.k) + ")");
    const int unit = t.major == Major::K ? 8 : t.span_elements();
    if (mn0 < 0 || mn0 % unit != 0)
        return Legality::no("M/N position " + std::to_string(mn0) + " is not a multiple of " + std::to_string(unit));
    if (mn0 + mn_extent > t.mn)
        return Legality::no("rows " + std::to_string(mn0) + " to " + std::to_string(mn0 + mn_extent) + " leave the tile, which has " +
                            std::to_string(t.mn));
    return descriptor_legal(tile_descriptor(t, base, mn0, k0));
}

std::string tile_notation(const OperandTile& t) {
    const int span = t.span_elements(), column = t.column_bytes() / bytes(t.type);
    const auto pair = [](int a, int b) { return "(" + std::to_string(a) + "," + std::to_string(b) + ")"; };
    const std::string along_shape = pair(span, t.contiguous() / span), along_stride = pair(1, column);
    const std::string across_shape = pair(8, t.other() / 8), across_stride = pair(span, 8 * span);
    const bool k_major = t.major == Major::K;
    const std::string layout = "(" + (k_major ? across_shape : along_shape) + "," + (k_major ? along_shape : across_shape) + "):(" +
                               (k_major ? across_stride : along_stride) + "," + (k_major ? along_stride : across_stride) + ")";
    if (t.swizzle == SwizzleMode::None) return layout;
    const int element_shift = std::countr_zero(static_cast<unsigned>(bytes(t.type)));
    return "Sw<" + std::to_string(swizzle_bits(t.swizzle)) + "," + std::to_string(4 - element_shift) + ",3> o " + layout;
}

}  // namespace tw::target
