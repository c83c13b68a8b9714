#include "target/tma.h"
#include "base/index.h"

namespace tw::target {

namespace {

std::string words(std::uint64_t v) { return std::to_string(v); }

// Types the driver's tensor map can name; fp8 and bool travel as bytes.
bool nan_fill_admitted(DType t) { return info(t).is_float && bits(t) >= 16; }

Legality shared_legal(const Arch& arch, const TensorMapSpec& t, std::uint32_t shared_address) {
    if (Legality l = tensor_map_legal(arch, t); !l) return l;
    if (shared_address % tma_hardware_shared_alignment != 0)
        return Legality::no("TMA shared address " + words(shared_address) + " is not a multiple of 128");
    if (shared_address + static_cast<std::uint64_t>(box_footprint(t)) > static_cast<std::uint64_t>(arch.max_shared_bytes_per_block) + 1024)
        return Legality::no("TMA box of " + words(static_cast<std::uint64_t>(box_footprint(t))) +
                            " bytes does not fit in shared memory at address " + words(shared_address));
    return Legality::yes();
}

}  // namespace

int tensor_map_data_type(DType type) {
    // The driver's CUtensorMapDataType enumerators.
    switch (type) {
        case DType::U8:
        case DType::I8:
        case DType::E4M3:
        case DType::E5M2:
        case DType::Bool: return 0;  // UINT8
        case DType::I16: return 1;   // UINT16
        case DType::U32: return 2;   // UINT32
        case DType::I32: return 3;   // INT32
        case DType::I64: return 5;   // INT64
        case DType::F16: return 6;   // FLOAT16
        case DType::F32: return 7;   // FLOAT32
        case DType::F64: return 8;   // FLOAT64
        case DType::BF16: return 9;  // BFLOAT16
        case DType::TF32: return 7;  // as FLOAT32: the copy keeps every bit; the tensor core ignores the low 13
    }
    return 0;
}

Legality tensor_map_legal(const Arch& arch, const TensorMapSpec& t) {
    if (!arch.has(Feature::Tma)) return Legality::no("TMA does not exist on " + std::string(arch.name));
    if (t.rank < 1 || t.rank > tma_max_rank) return Legality::no("a tensor map has rank 1 to 5, not " + std::to_string(t.rank));
    if (t.global_address % 16 != 0)
        return Legality::no("tensor base address is not aligned to 16 bytes (it is " + words(t.global_address % 16) + " past)");
    const auto size = static_cast<std::uint64_t>(bytes(t.type));
    for (int d = 0; d < t.rank; ++d) {
        const std::string which = "dimension " + std::to_string(d);
        if (t.dims[at(d)] == 0 || t.dims[at(d)] > (std::uint64_t{1} << 32))
            return Legality::no(which + " has extent " + words(t.dims[at(d)]) + "; it must be 1 to 2^32");
        if (t.box[at(d)] == 0 || t.box[at(d)] > 256)
            return Legality::no("box " + which + " is " + words(t.box[at(d)]) + "; it must be 1 to 256");
        if (d > 0 && (t.element_strides[at(d)] == 0 || t.element_strides[at(d)] > 8))
            return Legality::no("element stride of " + which + " is " + words(t.element_strides[at(d)]) + "; it must be 1 to 8");
        if (d > 0 && t.strides[at(d)] % 16 != 0)
            return Legality::no("global stride of " + which + " is " + words(t.strides[at(d)]) + " bytes; it must be a multiple of 16");
        if (d > 0 && t.strides[at(d)] >= (std::uint64_t{1} << 40))
            return Legality::no("global stride of " + which + " is " + words(t.strides[at(d)]) + " bytes; it must be below 2^40");
    }
    const std::uint64_t inner = t.box[0] * size;
    if (inner % 16 != 0) return Legality::no("the box's inner row is " + words(inner) + " bytes; it must be a multiple of 16");
    if (t.swizzle != SwizzleMode::None && inner > static_cast<std::uint64_t>(span_bytes(t.swizzle)))
        return Legality::no("the box's inner row is " + words(inner) + " bytes; with the " + std::string(name(t.swizzle)) +
                            " swizzle it must be at most " + std::to_string(span_bytes(t.swizzle)));
    if (t.fill == TmaFill::Nan && !nan_fill_admitted(t.type))
        return Legality::no("NaN fill needs a floating-point tensor of 16 bits or more, not " + std::string(name(t.type)));
    return Legality::yes();
}

Legality tma_load_legal(const Arch& arch, const TensorMapSpec& t, std::uint32_t shared_address) {
    return shared_legal(arch, t, shared_address);
}

Legality tma_store_legal(const Arch& arch, const TensorMapSpec& t, std::uint32_t shared_address, TmaReduce reduce) {
    if (Legality l = shared_legal(arch, t, shared_address); !l) return l;
    if (reduce == TmaReduce::Add) {
        switch (t.type) {
            case DType::F32:
            case DType::F16:
            case DType::BF16:
            case DType::I32:
            case DType::U32: break;
            default:
                return Legality::no("TMA reduce-add has no " + std::string(name(t.type)) + " form; f32, f16, bf16, i32 and u32 have one");
        }
    }
    return Legality::yes();
}

Legality tma_load_coordinate_legal(const TensorMapSpec& t, const TmaCoord& start) {
    if (start[0] * bytes(t.type) % 16 != 0)
        return Legality::no("the TMA coordinate " + std::to_string(start[0]) + " is " + std::to_string(start[0] * bytes(t.type)) +
                            " bytes into the row; it must be a multiple of 16 bytes");
    return Legality::yes();
}

Legality tma_store_coordinate_legal(const TensorMapSpec& t, const TmaCoord& start) {
    if (Legality l = tma_load_coordinate_legal(t, start); !l) return l;
    for (int d = 0; d < t.rank; ++d)
        if (start[at(d)] < 0)
            return Legality::no("a TMA store cannot start at the negative coordinate " + std::to_string(start[at(d)]) + " of dimension " +
                                std::to_string(d));
    return Legality::yes();
}

Legality multicast_legal(const Arch& arch, std::uint32_t cta_mask, int cluster_blocks) {
    if (!arch.has(Feature::Cluster)) return Legality::no("multicast needs clusters, which " + std::string(arch.name) + " has not");
    if (cta_mask == 0) return Legality::no("multicast mask is empty");
    if (cta_mask >> cluster_blocks != 0)
        return Legality::no("multicast mask " + words(cta_mask) + " names a block outside the cluster of " +
                            std::to_string(cluster_blocks));
    return Legality::yes();
}

int box_extent(const TensorMapSpec& t, int d) {
    const std::uint32_t stride = d == 0 ? 1 : t.element_strides[at(d)];
    return static_cast<int>((t.box[at(d)] + stride - 1) / stride);
}

std::int64_t box_elements(const TensorMapSpec& t) {
    std::int64_t n = 1;
    for (int d = 0; d < t.rank; ++d) n *= box_extent(t, d);
    return n;
}

std::int64_t box_bytes(const TensorMapSpec& t) { return box_elements(t) * bytes(t.type); }

int box_row_pitch(const TensorMapSpec& t) {
    const int inner = box_extent(t, 0) * bytes(t.type);
    return t.swizzle == SwizzleMode::None ? inner : span_bytes(t.swizzle);
}

std::int64_t box_footprint(const TensorMapSpec& t) { return box_elements(t) / box_extent(t, 0) * box_row_pitch(t); }

std::uint32_t tma_shared_address(const TensorMapSpec& t, std::uint32_t shared_base, const TmaCoord& in_box) {
    std::int64_t row = 0;
    for (int d = t.rank - 1; d >= 1; --d) row = row * box_extent(t, d) + in_box[at(d)];
    const std::int64_t offset = row * box_row_pitch(t) + in_box[0] * bytes(t.type);
    return swizzled(t.swizzle, shared_base + static_cast<std::uint32_t>(offset));
}

static std::optional<std::int64_t> offset_within(const TensorMapSpec& t, const TmaCoord& start, const TmaCoord& in_box,
                                                 std::int64_t inner_extent) {
    std::int64_t offset = 0;
    for (int d = 0; d < t.rank; ++d) {
        const std::int64_t step = d == 0 ? 1 : t.element_strides[at(d)];
        const std::int64_t position = start[at(d)] + in_box[at(d)] * step;
        if (position < 0 || position >= (d == 0 ? inner_extent : static_cast<std::int64_t>(t.dims[at(d)]))) return std::nullopt;
        offset += position * (d == 0 ? bytes(t.type) : static_cast<std::int64_t>(t.strides[at(d)]));
    }
    return offset;
}

std::optional<std::int64_t> tma_global_offset(const TensorMapSpec& t, const TmaCoord& start, const TmaCoord& in_box) {
    return offset_within(t, start, in_box, static_cast<std::int64_t>(t.dims[0]));
}

std::optional<std::int64_t> tma_store_offset(const TensorMapSpec& t, const TmaCoord& start, const TmaCoord& in_box) {
    return offset_within(t, start, in_box, static_cast<std::int64_t>(t.dims[0]) + tma_store_overrun(t));
}

int tma_store_overrun(const TensorMapSpec& t) {
    const auto past = static_cast<int>(t.dims[0] * static_cast<std::uint64_t>(bytes(t.type)) % 16);
    return past == 0 ? 0 : (16 - past) / bytes(t.type);
}

std::uint64_t tma_fill_bits(const TensorMapSpec& t) {
    if (t.fill == TmaFill::Zero) return 0;
    constexpr std::uint64_t pattern = 0x7ff77ff77ff77ff7;
    return bits(t.type) == 64 ? pattern : pattern & ((std::uint64_t{1} << bits(t.type)) - 1);
}

}  // namespace tw::target
