// The part of cuBLASLt's C interface that we use, declared by us; tests/runtime/driver_abi_test.cpp compares it with the
// toolkit's headers where they exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/driver_types.h"
#include "runtime/failure.h"

namespace tw::runtime::blaslt {

using Handle = struct HandleObject*;
using MatmulDescription = struct MatmulDescriptionObject*;
using MatrixLayout = struct MatrixLayoutObject*;
using Preference = struct PreferenceObject*;

enum DataType : int { real_f32 = 0, real_f16 = 2, real_bf16 = 14, real_f8_e4m3 = 28 };
enum ComputeType : int { compute_f32 = 68, compute_f32_fast_tf32 = 77 };
enum Transposition : std::int32_t { not_transposed = 0, transposed = 1 };
enum MatmulAttribute : int { matmul_transpose_a = 3, matmul_transpose_b = 4, matmul_scale_a = 17, matmul_scale_b = 18 };
enum PreferenceAttribute : int { preference_max_workspace = 1 };
enum AlgorithmAttribute : int {
    algorithm_id = 0,
    algorithm_tile = 1,
    algorithm_split_k = 2,
    algorithm_reduction = 3,
    algorithm_swizzle = 4,
    algorithm_custom = 5,
    algorithm_stages = 6,
    algorithm_inner = 7,
    algorithm_cluster = 8,
};

struct Algorithm {
    std::uint64_t opaque[8];
};

struct HeuristicResult {
    Algorithm algorithm;
    std::size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96 && offsetof(HeuristicResult, state) == 72);

struct Calls {
    std::size_t (*version)() = nullptr;
    int (*create)(Handle*) = nullptr;
    int (*destroy)(Handle) = nullptr;
    int (*description_create)(MatmulDescription*, int compute, int scale_type) = nullptr;
    int (*description_destroy)(MatmulDescription) = nullptr;
    int (*description_set)(MatmulDescription, MatmulAttribute, const void* value, std::size_t bytes) = nullptr;
    int (*layout_create)(MatrixLayout*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) = nullptr;
    int (*layout_destroy)(MatrixLayout) = nullptr;
    int (*preference_create)(Preference*) = nullptr;
    int (*preference_destroy)(Preference) = nullptr;
    int (*preference_set)(Preference, PreferenceAttribute, const void* value, std::size_t bytes) = nullptr;
    int (*heuristic)(Handle, MatmulDescription, MatrixLayout a, MatrixLayout b, MatrixLayout c, MatrixLayout d, Preference, int requested,
                     HeuristicResult* results, int* returned) = nullptr;
    int (*algorithm_get)(const Algorithm*, AlgorithmAttribute, void* value, std::size_t bytes, std::size_t* written) = nullptr;
    int (*matmul)(Handle, MatmulDescription, const void* alpha, const void* a, MatrixLayout, const void* b, MatrixLayout, const void* beta,
                  const void* c, MatrixLayout, void* d, MatrixLayout, const Algorithm*, void* workspace, std::size_t workspace_bytes,
                  cu::Stream) = nullptr;
};

struct Library {
    Calls call;
    std::string path;
};

// The library, or why there is none. The answer is kept.
Result<const Library*> library();

}  // namespace tw::runtime::blaslt
