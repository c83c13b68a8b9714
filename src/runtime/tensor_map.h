// TMA descriptors, with the hardware's rules checked first so that the message names the argument.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/driver_types.h"
#include "runtime/failure.h"

namespace tw::runtime {

struct TensorMapRequest {
    std::uint64_t address = 0;  // device address of element 0
    std::string dtype = "bf16";
    std::vector<std::uint64_t> sizes;         // elements, innermost first
    std::vector<std::uint64_t> byte_strides;  // of dimensions 1, 2, ...: one fewer than sizes
    std::vector<std::uint32_t> box;           // elements, innermost first
    int swizzle_bytes = 0;                    // 0, 32, 64, 128
    int l2_promotion_bytes = 0;               // 0, 64, 128, 256
    int interleave_bytes = 0;                 // 0, 16, 32
    bool fill_with_nan = false;               // what out-of-bounds elements read as; otherwise zero
};

// One rule is about the instruction and not the descriptor: a kernel that starts a box at an innermost coordinate which is not
// a multiple of 16 bytes faults with "illegal instruction" (seen on an H200, with and without swizzle, no interleave).
//
// The rules of cuTensorMapEncodeTiled, without the driver. An empty result means the request is encodable.
std::string explain_bad_tensor_map(const TensorMapRequest& request);

Result<cu::TensorMap> encode_tensor_map(const TensorMapRequest& request);

}  // namespace tw::runtime
