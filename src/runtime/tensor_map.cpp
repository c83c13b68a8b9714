#include "runtime/tensor_map.h"

#include <optional>

#include "runtime/driver.h"

namespace tw::runtime {
namespace {

struct ElementType {
    const char* name;
    cu::TensorMapType type;
    unsigned bytes;
};

constexpr ElementType element_types[] = {
    {"u8", cu::tensor_u8, 1},   {"i8", cu::tensor_u8, 1},   {"e4m3", cu::tensor_u8, 1},   {"e5m2", cu::tensor_u8, 1},
    {"u16", cu::tensor_u16, 2}, {"f16", cu::tensor_f16, 2}, {"bf16", cu::tensor_bf16, 2}, {"u32", cu::tensor_u32, 4},
    {"i32", cu::tensor_i32, 4}, {"f32", cu::tensor_f32, 4}, {"tf32", cu::tensor_tf32, 4}, {"u64", cu::tensor_u64, 8},
    {"i64", cu::tensor_i64, 8}, {"f64", cu::tensor_f64, 8},
};

const ElementType* find_type(const std::string& name) {
    for (const auto& type : element_types)
        if (name == type.name) return &type;
    return nullptr;
}

std::optional<int> code_of(int value, std::initializer_list<int> values) {
    int code = 0;
    for (const int candidate : values) {
        if (candidate == value) return code;
        ++code;
    }
    return std::nullopt;
}

}  // namespace

std::string explain_bad_tensor_map(const TensorMapRequest& request) {
    const auto* type = find_type(request.dtype);
    if (!type) return "dtype '" + request.dtype + "' has no TMA encoding";
    const auto rank = request.sizes.size();
    if (rank < 1 || rank > 5) return "a TMA tensor has 1 to 5 dimensions, not " + std::to_string(rank);
    if (request.byte_strides.size() + 1 != rank)
        return std::to_string(request.byte_strides.size()) + " strides for " + std::to_string(rank) +
               " dimensions: give one for every dimension but the innermost";
    if (request.box.size() != rank)
        return "the box has " + std::to_string(request.box.size()) + " extents, the tensor " + std::to_string(rank);
    if (!code_of(request.swizzle_bytes, {0, 32, 64, 128}))
        return "swizzle is " + std::to_string(request.swizzle_bytes) + " bytes; it can be 0, 32, 64 or 128";
    if (!code_of(request.l2_promotion_bytes, {0, 64, 128, 256}))
        return "l2_promotion is " + std::to_string(request.l2_promotion_bytes) + " bytes; it can be 0, 64, 128 or 256";
    if (!code_of(request.interleave_bytes, {0, 16, 32}))
        return "interleave is " + std::to_string(request.interleave_bytes) + " bytes; it can be 0, 16 or 32";
    const std::uint64_t address_alignment = request.interleave_bytes == 32 ? 32 : 16;
    if (request.address % address_alignment != 0)
        return "the tensor's address must be a multiple of " + std::to_string(address_alignment) + " bytes; it is " +
               std::to_string(request.address % address_alignment) + " past one";
    for (std::size_t axis = 0; axis < rank; ++axis) {
        if (request.sizes[axis] == 0 || request.sizes[axis] > (1ull << 32))
            return "size " + std::to_string(axis) + " is " + std::to_string(request.sizes[axis]) + "; it can be 1 to 2^32";
        if (request.box[axis] == 0 || request.box[axis] > 256)
            return "box extent " + std::to_string(axis) + " is " + std::to_string(request.box[axis]) + "; it can be 1 to 256";
    }
    for (std::size_t i = 0; i < request.byte_strides.size(); ++i) {
        const auto stride = request.byte_strides[i];
        if (stride % address_alignment != 0)
            return "the stride of dimension " + std::to_string(i + 1) + " is " + std::to_string(stride) +
                   " bytes; it must be a multiple of " + std::to_string(address_alignment);
        if (stride >= (1ull << 40))
            return "the stride of dimension " + std::to_string(i + 1) + " is " + std::to_string(stride) + " bytes; it must be below 2^40";
    }
    const std::uint64_t inner_bytes = std::uint64_t{request.box[0]} * type->bytes;
    if (request.interleave_bytes == 0 && inner_bytes % 16 != 0)
        return "the box's inner extent is " + std::to_string(inner_bytes) + " bytes; it must be a multiple of 16";
    if (request.interleave_bytes == 0 && request.swizzle_bytes && inner_bytes > static_cast<unsigned>(request.swizzle_bytes))
        return "the box's inner extent is " + std::to_string(inner_bytes) + " bytes; with a " + std::to_string(request.swizzle_bytes) +
               "-byte swizzle it can be at most that";
    const bool is_float =
        request.dtype == "f16" || request.dtype == "bf16" || request.dtype == "f32" || request.dtype == "tf32" || request.dtype == "f64";
    if (request.fill_with_nan && !is_float) return "fill \"nan\" needs a floating-point dtype, not " + request.dtype;
    return {};
}

Result<cu::TensorMap> encode_tensor_map(const TensorMapRequest& request) {
    if (auto reason = explain_bad_tensor_map(request); !reason.empty()) return fail(FailureKind::bad_input, "no TMA descriptor: " + reason);
    auto opened = driver_with_context();
    if (!opened) return std::move(opened).propagate();
    const auto& cuda = **opened;
    cu::TensorMap map{};
    const std::vector<std::uint32_t> element_strides(request.sizes.size(), 1);
    // A vector has no outer stride, but the driver wants an address all the same.
    const std::uint64_t no_stride = 0;
    const auto* byte_strides = request.byte_strides.empty() ? &no_stride : request.byte_strides.data();
    const auto code = cuda.call.tensor_map_encode_tiled(
        &map, find_type(request.dtype)->type, static_cast<std::uint32_t>(request.sizes.size()), reinterpret_cast<void*>(request.address),
        request.sizes.data(), byte_strides, request.box.data(), element_strides.data(),
        static_cast<cu::TensorMapInterleave>(*code_of(request.interleave_bytes, {0, 16, 32})),
        static_cast<cu::TensorMapSwizzle>(*code_of(request.swizzle_bytes, {0, 32, 64, 128})),
        static_cast<cu::TensorMapPromotion>(*code_of(request.l2_promotion_bytes, {0, 64, 128, 256})),
        request.fill_with_nan ? cu::fill_nan : cu::fill_zero);
    if (code) return Unexpected{cuda.failure("encode a TMA descriptor", code)};
    return map;
}

}  // namespace tw::runtime
