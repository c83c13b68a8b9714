#include "runtime/tensor_map.h"

#include <gtest/gtest.h>

namespace tw::runtime {
namespace tensor_map_test {

// 4096 x 1024 bf16, boxes of 64 x 128 with the 128-byte swizzle: what a GEMM operand looks like.
TensorMapRequest operand() {
    TensorMapRequest request;
    request.address = 0x10000;
    request.sizes = {1024, 4096};
    request.byte_strides = {2048};
    request.box = {64, 128};
    request.swizzle_bytes = 128;
    return request;
}

TEST(TensorMap, AnEncodableRequestHasNoComplaint) {
    EXPECT_EQ(explain_bad_tensor_map(operand()), "");
    auto vector = operand();
    vector.sizes = {1024}, vector.byte_strides = {}, vector.box = {64};
    EXPECT_EQ(explain_bad_tensor_map(vector), "");
}

struct BadCase {
    const char* name;
    void (*change)(TensorMapRequest&);
    const char* said;  // a part of the sentence
};

class BadTensorMap : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadTensorMap, IsRefusedWithTheOffendingArgument) {
    auto request = operand();
    GetParam().change(request);
    const auto reason = explain_bad_tensor_map(request);
    EXPECT_NE(reason.find(GetParam().said), std::string::npos) << reason;
    const auto encoded = encode_tensor_map(request);  // refused before any driver is asked for
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().kind, FailureKind::bad_input);
}

INSTANTIATE_TEST_SUITE_P(
    TensorMap, BadTensorMap,
    ::testing::Values(
        BadCase{"dtype", [](TensorMapRequest& r) { r.dtype = "bf17"; }, "'bf17'"},
        BadCase{"rank", [](TensorMapRequest& r) { r.sizes.clear(), r.byte_strides.clear(), r.box.clear(); }, "1 to 5 dimensions"},
        BadCase{"strides", [](TensorMapRequest& r) { r.byte_strides.push_back(16); }, "2 strides for 2 dimensions"},
        BadCase{"box_rank", [](TensorMapRequest& r) { r.box.push_back(1); }, "3 extents"},
        BadCase{"address", [](TensorMapRequest& r) { r.address += 8; }, "8 past"},
        BadCase{"stride_alignment", [](TensorMapRequest& r) { r.byte_strides[0] = 1554; }, "1554 bytes"},
        BadCase{"stride_range", [](TensorMapRequest& r) { r.byte_strides[0] = 1ull << 40; }, "below 2^40"},
        BadCase{"size", [](TensorMapRequest& r) { r.sizes[1] = 0; }, "size 1 is 0"},
        BadCase{"box", [](TensorMapRequest& r) { r.box[1] = 257; }, "box extent 1 is 257"},
        BadCase{"swizzle_width", [](TensorMapRequest& r) { r.box[0] = 128; }, "256 bytes; with a 128-byte swizzle"},
        BadCase{"swizzle", [](TensorMapRequest& r) { r.swizzle_bytes = 48; }, "swizzle is 48"},
        BadCase{"promotion", [](TensorMapRequest& r) { r.l2_promotion_bytes = 32; }, "l2_promotion is 32"},
        BadCase{"interleave", [](TensorMapRequest& r) { r.interleave_bytes = 8; }, "interleave is 8"},
        BadCase{"inner_bytes", [](TensorMapRequest& r) { r.box[0] = 4; }, "multiple of 16"},
        BadCase{"fill", [](TensorMapRequest& r) { r.dtype = "i32", r.box[0] = 32, r.fill_with_nan = true; }, "floating-point"}),
    [](const auto& given) { return std::string(given.param.name); });

}  // namespace tensor_map_test
}  // namespace tw::runtime
