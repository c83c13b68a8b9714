// The part of the CUDA driver's C interface that we use, declared by us so that building needs no CUDA toolkit.
//
// Layouts and numbers are facts of the driver's ABI; tests/runtime/driver_abi_test.cpp compares each with <cuda.h> on
// machines that have one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tw::runtime::cu {

using Status = int;  // CUresult; 0 is success
using Device = int;
using DevicePointer = std::uint64_t;  // CUdeviceptr
using Context = struct ContextObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;

enum DeviceAttribute : int {
    device_clock_rate_khz = 13,
    device_multiprocessor_count = 16,
    device_memory_clock_rate_khz = 36,
    device_memory_bus_width_bits = 37,
    device_l2_cache_bytes = 38,
    device_compute_capability_major = 75,
    device_compute_capability_minor = 76,
    device_shared_bytes_per_multiprocessor = 81,
    device_shared_bytes_per_block_optin = 97,
};

enum FunctionAttribute : int {
    function_max_threads_per_block = 0,
    function_shared_bytes = 1,
    function_local_bytes = 3,
    function_registers = 4,
    function_max_dynamic_shared_bytes = 8,
    function_non_portable_cluster_size_allowed = 14,
};

enum LaunchAttributeId : int {
    launch_cooperative = 2,
    launch_cluster_dimension = 4,
    launch_programmatic_stream_serialization = 6,
};

struct LaunchAttribute {
    LaunchAttributeId id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
        struct {
            unsigned x, y, z;
        } cluster;
        int programmatic_stream_serialization;
    } value;
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    Stream stream;
    LaunchAttribute* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

struct alignas(128) TensorMap {
    std::uint64_t opaque[16];
};
static_assert(sizeof(TensorMap) == 128);

enum TensorMapType : int {
    tensor_u8 = 0,
    tensor_u16 = 1,
    tensor_u32 = 2,
    tensor_i32 = 3,
    tensor_u64 = 4,
    tensor_i64 = 5,
    tensor_f16 = 6,
    tensor_f32 = 7,
    tensor_f64 = 8,
    tensor_bf16 = 9,
    tensor_tf32 = 11,
};
enum TensorMapInterleave : int { interleave_none = 0, interleave_16 = 1, interleave_32 = 2 };
enum TensorMapSwizzle : int { swizzle_none = 0, swizzle_32 = 1, swizzle_64 = 2, swizzle_128 = 3 };
enum TensorMapPromotion : int { promotion_none = 0, promotion_64 = 1, promotion_128 = 2, promotion_256 = 3 };
enum TensorMapFill : int { fill_zero = 0, fill_nan = 1 };

constexpr unsigned event_default = 0;
constexpr unsigned stream_non_blocking = 1;
constexpr int capture_thread_local = 1;

// X(return type, our name, exported symbol, parameters). The symbols are the current versions (_v2) of each call.
#define TW_DRIVER_CALLS(X)                                                                                                                \
    X(init, "cuInit", (unsigned flags))                                                                                                   \
    X(driver_version, "cuDriverGetVersion", (int* version))                                                                               \
    X(error_name, "cuGetErrorName", (Status code, const char** text))                                                                     \
    X(error_string, "cuGetErrorString", (Status code, const char** text))                                                                 \
    X(device_count, "cuDeviceGetCount", (int* count))                                                                                     \
    X(device_get, "cuDeviceGet", (Device * device, int ordinal))                                                                          \
    X(device_name, "cuDeviceGetName", (char* name, int length, Device device))                                                            \
    X(device_attribute, "cuDeviceGetAttribute", (int* value, DeviceAttribute which, Device device))                                       \
    X(device_memory, "cuDeviceTotalMem_v2", (std::size_t * bytes, Device device))                                                         \
    X(primary_context_retain, "cuDevicePrimaryCtxRetain", (Context * context, Device device))                                             \
    X(context_current, "cuCtxGetCurrent", (Context * context))                                                                            \
    X(context_make_current, "cuCtxSetCurrent", (Context context))                                                                         \
    X(context_device, "cuCtxGetDevice", (Device * device))                                                                                \
    X(context_synchronize, "cuCtxSynchronize", ())                                                                                        \
    X(memory_info, "cuMemGetInfo_v2", (std::size_t * free_bytes, std::size_t * total_bytes))                                              \
    X(memory_allocate, "cuMemAlloc_v2", (DevicePointer * pointer, std::size_t bytes))                                                     \
    X(memory_free, "cuMemFree_v2", (DevicePointer pointer))                                                                               \
    X(memory_allocate_async, "cuMemAllocAsync", (DevicePointer * pointer, std::size_t bytes, Stream stream))                              \
    X(memory_free_async, "cuMemFreeAsync", (DevicePointer pointer, Stream stream))                                                        \
    X(copy_to_device, "cuMemcpyHtoD_v2", (DevicePointer to, const void* from, std::size_t bytes))                                         \
    X(copy_to_host, "cuMemcpyDtoH_v2", (void* to, DevicePointer from, std::size_t bytes))                                                 \
    X(copy_on_device, "cuMemcpyDtoD_v2", (DevicePointer to, DevicePointer from, std::size_t bytes))                                       \
    X(fill_bytes, "cuMemsetD8_v2", (DevicePointer to, unsigned char value, std::size_t bytes))                                            \
    X(fill_bytes_async, "cuMemsetD8Async", (DevicePointer to, unsigned char value, std::size_t bytes, Stream stream))                     \
    X(module_load, "cuModuleLoadData", (Module * module, const void* image))                                                              \
    X(module_unload, "cuModuleUnload", (Module module))                                                                                   \
    X(module_function, "cuModuleGetFunction", (Function * function, Module module, const char* name))                                     \
    X(function_attribute, "cuFuncGetAttribute", (int* value, FunctionAttribute which, Function function))                                 \
    X(function_set_attribute, "cuFuncSetAttribute", (Function function, FunctionAttribute which, int value))                              \
    X(launch, "cuLaunchKernelEx", (const LaunchConfig* config, Function function, void** arguments, void** extra))                        \
    X(stream_create, "cuStreamCreate", (Stream * stream, unsigned flags))                                                                 \
    X(stream_destroy, "cuStreamDestroy_v2", (Stream stream))                                                                              \
    X(stream_synchronize, "cuStreamSynchronize", (Stream stream))                                                                         \
    X(stream_begin_capture, "cuStreamBeginCapture_v2", (Stream stream, int mode))                                                         \
    X(stream_end_capture, "cuStreamEndCapture", (Stream stream, Graph * graph))                                                           \
    X(graph_instantiate, "cuGraphInstantiateWithFlags", (GraphExec * exec, Graph graph, unsigned long long flags))                        \
    X(graph_launch, "cuGraphLaunch", (GraphExec exec, Stream stream))                                                                     \
    X(graph_destroy, "cuGraphDestroy", (Graph graph))                                                                                     \
    X(graph_exec_destroy, "cuGraphExecDestroy", (GraphExec exec))                                                                         \
    X(event_create, "cuEventCreate", (Event * event, unsigned flags))                                                                     \
    X(event_destroy, "cuEventDestroy_v2", (Event event))                                                                                  \
    X(event_record, "cuEventRecord", (Event event, Stream stream))                                                                        \
    X(event_synchronize, "cuEventSynchronize", (Event event))                                                                             \
    X(event_milliseconds, "cuEventElapsedTime", (float* milliseconds, Event begin, Event end))                                            \
    X(tensor_map_encode_tiled, "cuTensorMapEncodeTiled",                                                                                  \
      (TensorMap * map, TensorMapType type, std::uint32_t rank, void* address, const std::uint64_t* sizes,                                \
       const std::uint64_t* byte_strides, const std::uint32_t* box, const std::uint32_t* element_strides, TensorMapInterleave interleave, \
       TensorMapSwizzle swizzle, TensorMapPromotion promotion, TensorMapFill fill))

struct DriverCalls {
#define TW_DECLARE(name, symbol, parameters) Status(*name) parameters = nullptr;
    TW_DRIVER_CALLS(TW_DECLARE)
#undef TW_DECLARE
};

}  // namespace tw::runtime::cu
