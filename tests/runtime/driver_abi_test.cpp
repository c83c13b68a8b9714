// What we declare of the driver's and cuBLASLt's interfaces, compared with the toolkit's headers where there are any. A
// difference is a compile error of this file.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>) && __has_include(<cublasLt.h>)
#define TW_HAS_CUDA_HEADERS 1
#include <cublasLt.h>
#include <cuda.h>
#endif

#include <type_traits>

#include "runtime/blaslt_calls.h"
#include "runtime/driver_types.h"

namespace {

TEST(DriverAbi, OurDeclarationsMatchTheToolkitsHeaders) {
#ifndef TW_HAS_CUDA_HEADERS
    GTEST_SKIP() << "no CUDA headers on this machine";
#endif
}

#ifdef TW_HAS_CUDA_HEADERS

namespace cu = tw::runtime::cu;
namespace lt = tw::runtime::blaslt;

#define TW_SAME_OFFSET(ours, member, theirs, their_member) \
    static_assert(offsetof(ours, member) == offsetof(theirs, their_member), #their_member)
static_assert(sizeof(cu::LaunchConfig) == sizeof(CUlaunchConfig));
TW_SAME_OFFSET(cu::LaunchConfig, grid_x, CUlaunchConfig, gridDimX);
TW_SAME_OFFSET(cu::LaunchConfig, block_x, CUlaunchConfig, blockDimX);
TW_SAME_OFFSET(cu::LaunchConfig, shared_bytes, CUlaunchConfig, sharedMemBytes);
TW_SAME_OFFSET(cu::LaunchConfig, stream, CUlaunchConfig, hStream);
TW_SAME_OFFSET(cu::LaunchConfig, attributes, CUlaunchConfig, attrs);
TW_SAME_OFFSET(cu::LaunchConfig, attribute_count, CUlaunchConfig, numAttrs);
static_assert(sizeof(cu::LaunchAttribute) == sizeof(CUlaunchAttribute));
TW_SAME_OFFSET(cu::LaunchAttribute, value, CUlaunchAttribute, value);
static_assert(sizeof(cu::TensorMap) == sizeof(CUtensorMap) && alignof(cu::TensorMap) >= alignof(CUtensorMap));
static_assert(sizeof(lt::HeuristicResult) == sizeof(cublasLtMatmulHeuristicResult_t));
TW_SAME_OFFSET(lt::HeuristicResult, workspace_bytes, cublasLtMatmulHeuristicResult_t, workspaceSize);
TW_SAME_OFFSET(lt::HeuristicResult, state, cublasLtMatmulHeuristicResult_t, state);
static_assert(sizeof(lt::Algorithm) == sizeof(cublasLtMatmulAlgo_t));

#define TW_SAME_NUMBER(ours, theirs) static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)
TW_SAME_NUMBER(cu::device_clock_rate_khz, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
TW_SAME_NUMBER(cu::device_multiprocessor_count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
TW_SAME_NUMBER(cu::device_memory_clock_rate_khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
TW_SAME_NUMBER(cu::device_memory_bus_width_bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
TW_SAME_NUMBER(cu::device_l2_cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
TW_SAME_NUMBER(cu::device_compute_capability_major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
TW_SAME_NUMBER(cu::device_compute_capability_minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
TW_SAME_NUMBER(cu::device_shared_bytes_per_multiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
TW_SAME_NUMBER(cu::device_shared_bytes_per_block_optin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
TW_SAME_NUMBER(cu::function_max_threads_per_block, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
TW_SAME_NUMBER(cu::function_shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
TW_SAME_NUMBER(cu::function_local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
TW_SAME_NUMBER(cu::function_registers, CU_FUNC_ATTRIBUTE_NUM_REGS);
TW_SAME_NUMBER(cu::function_max_dynamic_shared_bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
TW_SAME_NUMBER(cu::function_non_portable_cluster_size_allowed, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
TW_SAME_NUMBER(cu::launch_cooperative, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
TW_SAME_NUMBER(cu::launch_cluster_dimension, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
TW_SAME_NUMBER(cu::launch_programmatic_stream_serialization, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
TW_SAME_NUMBER(cu::tensor_u8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
TW_SAME_NUMBER(cu::tensor_u16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
TW_SAME_NUMBER(cu::tensor_u32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
TW_SAME_NUMBER(cu::tensor_i32, CU_TENSOR_MAP_DATA_TYPE_INT32);
TW_SAME_NUMBER(cu::tensor_u64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
TW_SAME_NUMBER(cu::tensor_i64, CU_TENSOR_MAP_DATA_TYPE_INT64);
TW_SAME_NUMBER(cu::tensor_f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
TW_SAME_NUMBER(cu::tensor_f32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
TW_SAME_NUMBER(cu::tensor_f64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
TW_SAME_NUMBER(cu::tensor_bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
TW_SAME_NUMBER(cu::tensor_tf32, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32);
TW_SAME_NUMBER(cu::interleave_32, CU_TENSOR_MAP_INTERLEAVE_32B);
TW_SAME_NUMBER(cu::swizzle_32, CU_TENSOR_MAP_SWIZZLE_32B);
TW_SAME_NUMBER(cu::swizzle_64, CU_TENSOR_MAP_SWIZZLE_64B);
TW_SAME_NUMBER(cu::swizzle_128, CU_TENSOR_MAP_SWIZZLE_128B);
TW_SAME_NUMBER(cu::promotion_64, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
TW_SAME_NUMBER(cu::promotion_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
TW_SAME_NUMBER(cu::fill_nan, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
TW_SAME_NUMBER(cu::capture_thread_local, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
TW_SAME_NUMBER(cu::stream_non_blocking, CU_STREAM_NON_BLOCKING);
TW_SAME_NUMBER(lt::real_f32, CUDA_R_32F);
TW_SAME_NUMBER(lt::real_f16, CUDA_R_16F);
TW_SAME_NUMBER(lt::real_bf16, CUDA_R_16BF);
TW_SAME_NUMBER(lt::real_f8_e4m3, CUDA_R_8F_E4M3);
TW_SAME_NUMBER(lt::compute_f32, CUBLAS_COMPUTE_32F);
TW_SAME_NUMBER(lt::compute_f32_fast_tf32, CUBLAS_COMPUTE_32F_FAST_TF32);
TW_SAME_NUMBER(lt::not_transposed, CUBLAS_OP_N);
TW_SAME_NUMBER(lt::transposed, CUBLAS_OP_T);
TW_SAME_NUMBER(lt::matmul_transpose_a, CUBLASLT_MATMUL_DESC_TRANSA);
TW_SAME_NUMBER(lt::matmul_transpose_b, CUBLASLT_MATMUL_DESC_TRANSB);
TW_SAME_NUMBER(lt::matmul_scale_a, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
TW_SAME_NUMBER(lt::matmul_scale_b, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
TW_SAME_NUMBER(lt::preference_max_workspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
TW_SAME_NUMBER(lt::algorithm_id, CUBLASLT_ALGO_CONFIG_ID);
TW_SAME_NUMBER(lt::algorithm_tile, CUBLASLT_ALGO_CONFIG_TILE_ID);
TW_SAME_NUMBER(lt::algorithm_split_k, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
TW_SAME_NUMBER(lt::algorithm_stages, CUBLASLT_ALGO_CONFIG_STAGES_ID);
TW_SAME_NUMBER(lt::algorithm_cluster, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);

// Same number of parameters, each of the same size and pointer where the other is one.
template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof(R) == sizeof(S) &&
                         ((sizeof(A) == sizeof(B) && std::is_pointer<A>::value == std::is_pointer<B>::value) && ...)> {
};

#define TW_SAME_CALL(table, name, theirs) static_assert(SameCall<decltype(table::name), decltype(&theirs)>::value, #theirs)
TW_SAME_CALL(cu::DriverCalls, init, cuInit);
TW_SAME_CALL(cu::DriverCalls, driver_version, cuDriverGetVersion);
TW_SAME_CALL(cu::DriverCalls, error_name, cuGetErrorName);
TW_SAME_CALL(cu::DriverCalls, error_string, cuGetErrorString);
TW_SAME_CALL(cu::DriverCalls, device_count, cuDeviceGetCount);
TW_SAME_CALL(cu::DriverCalls, device_get, cuDeviceGet);
TW_SAME_CALL(cu::DriverCalls, device_name, cuDeviceGetName);
TW_SAME_CALL(cu::DriverCalls, device_attribute, cuDeviceGetAttribute);
TW_SAME_CALL(cu::DriverCalls, device_memory, cuDeviceTotalMem);
TW_SAME_CALL(cu::DriverCalls, primary_context_retain, cuDevicePrimaryCtxRetain);
TW_SAME_CALL(cu::DriverCalls, context_current, cuCtxGetCurrent);
TW_SAME_CALL(cu::DriverCalls, context_make_current, cuCtxSetCurrent);
TW_SAME_CALL(cu::DriverCalls, context_device, cuCtxGetDevice);
TW_SAME_CALL(cu::DriverCalls, context_synchronize, cuCtxSynchronize);
TW_SAME_CALL(cu::DriverCalls, memory_info, cuMemGetInfo);
TW_SAME_CALL(cu::DriverCalls, memory_allocate, cuMemAlloc);
TW_SAME_CALL(cu::DriverCalls, memory_free, cuMemFree);
TW_SAME_CALL(cu::DriverCalls, copy_to_device, cuMemcpyHtoD);
TW_SAME_CALL(cu::DriverCalls, copy_to_host, cuMemcpyDtoH);
TW_SAME_CALL(cu::DriverCalls, copy_on_device, cuMemcpyDtoD);
TW_SAME_CALL(cu::DriverCalls, fill_bytes, cuMemsetD8);
TW_SAME_CALL(cu::DriverCalls, module_load, cuModuleLoadData);
TW_SAME_CALL(cu::DriverCalls, module_unload, cuModuleUnload);
TW_SAME_CALL(cu::DriverCalls, module_function, cuModuleGetFunction);
TW_SAME_CALL(cu::DriverCalls, function_attribute, cuFuncGetAttribute);
TW_SAME_CALL(cu::DriverCalls, function_set_attribute, cuFuncSetAttribute);
TW_SAME_CALL(cu::DriverCalls, launch, cuLaunchKernelEx);
TW_SAME_CALL(cu::DriverCalls, stream_create, cuStreamCreate);
TW_SAME_CALL(cu::DriverCalls, stream_destroy, cuStreamDestroy);
TW_SAME_CALL(cu::DriverCalls, stream_synchronize, cuStreamSynchronize);
TW_SAME_CALL(cu::DriverCalls, stream_begin_capture, cuStreamBeginCapture);
TW_SAME_CALL(cu::DriverCalls, stream_end_capture, cuStreamEndCapture);
TW_SAME_CALL(cu::DriverCalls, graph_instantiate, cuGraphInstantiateWithFlags);
TW_SAME_CALL(cu::DriverCalls, graph_launch, cuGraphLaunch);
TW_SAME_CALL(cu::DriverCalls, graph_destroy, cuGraphDestroy);
TW_SAME_CALL(cu::DriverCalls, graph_exec_destroy, cuGraphExecDestroy);
TW_SAME_CALL(cu::DriverCalls, event_create, cuEventCreate);
TW_SAME_CALL(cu::DriverCalls, event_destroy, cuEventDestroy);
TW_SAME_CALL(cu::DriverCalls, event_record, cuEventRecord);
TW_SAME_CALL(cu::DriverCalls, event_synchronize, cuEventSynchronize);
TW_SAME_CALL(cu::DriverCalls, event_milliseconds, cuEventElapsedTime);
TW_SAME_CALL(cu::DriverCalls, tensor_map_encode_tiled, cuTensorMapEncodeTiled);
TW_SAME_CALL(lt::Calls, version, cublasLtGetVersion);
TW_SAME_CALL(lt::Calls, create, cublasLtCreate);
TW_SAME_CALL(lt::Calls, destroy, cublasLtDestroy);
TW_SAME_CALL(lt::Calls, description_create, cublasLtMatmulDescCreate);
TW_SAME_CALL(lt::Calls, description_destroy, cublasLtMatmulDescDestroy);
TW_SAME_CALL(lt::Calls, description_set, cublasLtMatmulDescSetAttribute);
TW_SAME_CALL(lt::Calls, layout_create, cublasLtMatrixLayoutCreate);
TW_SAME_CALL(lt::Calls, layout_destroy, cublasLtMatrixLayoutDestroy);
TW_SAME_CALL(lt::Calls, preference_create, cublasLtMatmulPreferenceCreate);
TW_SAME_CALL(lt::Calls, preference_destroy, cublasLtMatmulPreferenceDestroy);
TW_SAME_CALL(lt::Calls, preference_set, cublasLtMatmulPreferenceSetAttribute);
TW_SAME_CALL(lt::Calls, heuristic, cublasLtMatmulAlgoGetHeuristic);
TW_SAME_CALL(lt::Calls, algorithm_get, cublasLtMatmulAlgoConfigGetAttribute);
TW_SAME_CALL(lt::Calls, matmul, cublasLtMatmul);

#endif

}  // namespace
