/* Tilewright's C interface (libtilewright.so), for Python through ctypes and for any other language.
 *
 * Every call returns 0 (TW_OK) or a TW_ERROR_* code; tw_last_error() then has the sentence, for this thread. No C++ exception
 * leaves the library. Strings that come out belong to the object they were asked of, or, for tw_last_error and
 * tw_machine_report, to the thread, until its next call. Requests that are not on a fast path are JSON, so that they can grow
 * without breaking callers. Objects may be used from many threads; freeing one while another thread uses it is an error.
 */
#ifndef TILEWRIGHT_CAPI_H
#define TILEWRIGHT_CAPI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TW_API __attribute__((visibility("default")))
#define TW_ABI_VERSION 1

enum {
    TW_OK = 0,
    TW_ERROR_BAD_INPUT = 1,
    TW_ERROR_MISSING_LIBRARY = 2,
    TW_ERROR_COMPILE = 3,
    TW_ERROR_DEVICE = 4,
    TW_ERROR_IO = 5,
    TW_ERROR_INTERNAL = 70
};

typedef struct tw_image tw_image;   /* compiled kernels: a cubin and its report */
typedef struct tw_kernel tw_kernel; /* one entry, loaded on the GPU */
typedef struct tw_gemm tw_gemm;     /* one cuBLASLt GEMM with its algorithm */
typedef struct tw_module tw_module; /* a kernel file of the tile language, its kernels callable by name */
typedef struct tw_call tw_call;     /* one of its kernels for one set of types, shapes and strides */

TW_API int tw_abi_version(void);
TW_API const char* tw_version(void);
TW_API const char* tw_last_error(void);

/* What this machine has, as JSON (the doctor command's facts). Never fails. */
TW_API const char* tw_machine_report(void);

/* request: {"path": file} or {"source": text, "name": for messages}, and optionally "arch": "sm_90a",
 * "defines": {name: text or number}, "options": [nvrtc options], "include_folders": [..], "cache": true. */
TW_API int tw_compile(const char* request_json, tw_image** image);
/* {"kernels": [{name, entry, registers, barriers, stack_bytes, spill_store_bytes, spill_load_bytes, static_shared_bytes}],
 *  "remarks": [{kind, code, function, text}], "log", "compiler", "key", "from_cache", "cache_note", "seconds", "cubin_bytes"}
 */
TW_API const char* tw_image_report(const tw_image* image);
TW_API int tw_image_cubin(const tw_image* image, const void** data, size_t* bytes);
TW_API void tw_image_free(tw_image* image);

/* Loads into the current context (torch's, when there is one; else the first GPU's primary context). */
TW_API int tw_kernel_load(const tw_image* image, const char* entry, tw_kernel** kernel);
TW_API void tw_kernel_free(tw_kernel* kernel);

typedef struct {
    int32_t registers;
    int32_t local_bytes;
    int32_t static_shared_bytes;
    int32_t max_threads_per_block;
} tw_kernel_facts;
TW_API int tw_kernel_get_facts(const tw_kernel* kernel, tw_kernel_facts* facts);

typedef struct {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t cluster[3]; /* zeros: no cluster */
    uint32_t dynamic_shared_bytes;
    uint32_t cooperative;
    uint32_t programmatic; /* programmatic dependent launch */
    void* stream;          /* CUstream; null is the legacy default stream */
} tw_launch_config;
/* arguments[i] points at the value of parameter i. Asynchronous; may be captured into a graph. */
TW_API int tw_kernel_launch(tw_kernel* kernel, const tw_launch_config* config, void** arguments);

typedef struct {
    uint64_t address;
    const char* dtype; /* "bf16", "f16", "f32", "tf32", "u8", ... */
    uint32_t rank;
    uint32_t swizzle_bytes;
    uint32_t l2_promotion_bytes;
    uint32_t interleave_bytes;
    uint32_t fill_with_nan;
    uint32_t box[5];
    uint64_t sizes[5];        /* innermost first, elements */
    uint64_t byte_strides[4]; /* of dimensions 1.. */
} tw_tensor_map_request;
/* Writes 128 bytes. The address the map is passed from must be a multiple of 64. */
TW_API int tw_tensor_map_encode(const tw_tensor_map_request* request, void* map);

/* request: {"m", "n", "k", "layout": "TN", "dtype": "bf16", "out_dtype": dtype, "compute": "f32"|"tf32", "tune": true,
 * "heuristics": 64, "workspace_bytes": 67108864}. Layout letters: runtime/blaslt_gemm.h. */
TW_API int tw_gemm_create(const char* request_json, tw_gemm** gemm);
/* {"algorithm", "library", "candidates": [{algorithm, first_us, final_us, error}]} */
TW_API const char* tw_gemm_report(const tw_gemm* gemm);
TW_API int tw_gemm_run(const tw_gemm* gemm, uint64_t a, uint64_t b, uint64_t d, void* stream);
TW_API void tw_gemm_free(tw_gemm* gemm);

/* request: {"path": file} or {"source": text, "name": for messages}, and optionally "constants": {name: integer}, "tuned": true
 * (constants that are not given come from the file's .tuned.json, by shape). A file that the language rejects is TW_ERROR_BAD_INPUT with
 * the rendered diagnostics. */
TW_API int tw_module_load(const char* request_json, tw_module** module);
/* {"file", "program" (a digest of what it says), "kernels": [{name, arch, line, doc, parameters: [{kind: "tensor"|"scalar", name, dtype,
 * dims}], constants, assumptions, computes}]}; variants of one name follow one another. "programs" has the same fields less arch; a program
 * is launched by its name like a kernel. */
TW_API const char* tw_module_describe(const tw_module* module);
/* The CUDA C++ of kernel number `index` (as in tw_module_describe). The text belongs to the thread, until its next call. */
TW_API int tw_module_source(const tw_module* module, uint32_t index, const char** text);
TW_API void tw_module_free(tw_module* module);

typedef struct {
    uint64_t address;
    const char* dtype; /* "f32", "bf16", "i32", ... */
    uint32_t rank;
    int64_t dims[8];
    int64_t strides[8]; /* elements */
} tw_tensor;
/* Tensors and scalars in the order of the kernel's parameters of each kind. Launches the first variant of the name whose
 * assumptions the arguments meet; what does not fit is TW_ERROR_BAD_INPUT and names the argument. Asynchronous on `stream`. */
TW_API int tw_module_launch(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                            uint32_t scalar_count, void* stream);

/* The same on the CPU: addresses are of host memory, the kernel runs on the emulator, and a fault that it finds is TW_ERROR_BAD_INPUT with
 * its place. For small shapes. */
TW_API int tw_module_emulate(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                             uint32_t scalar_count);
/* What a launch with these arguments would take, without a GPU: {"constants", "predicted_us" (by tuned data, or null), "work": {operations,
 * bytes}, "launches":
 * [{kernel, arch, variant, line}]}. The text belongs to the thread, until its next call. */
TW_API int tw_module_choose(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                            uint32_t scalar_count, const char** choice);

/* A launch that is made again and again with tensors of the same types, shapes and strides. Creating one compiles and loads; a launch takes
 * addresses in the order of the tensor parameters, and scalars, and checks what depends on them. `workspace`: at least
 * tw_call_workspace_bytes() of device memory that is free to use in the stream's order, or 0: the call allocates in the stream's order. May
 * be captured into a graph. */
TW_API int tw_call_create(tw_module* module, const char* kernel, const tw_tensor* tensors, uint32_t tensor_count, const double* scalars,
                          uint32_t scalar_count, tw_call** call);
TW_API size_t tw_call_workspace_bytes(const tw_call* call);
TW_API int tw_call_launch(tw_call* call, const uint64_t* addresses, const double* scalars, uint64_t workspace, void* stream);
TW_API void tw_call_free(tw_call* call);

/* For CPython, with its lock held (ctypes.PyDLL): a dict of functions that keep what was recorded for a signature and launch it again
 * without Python in between; a new reference. NULL: no CPython in this process, or one that lacks a call of the stable ABI. setup(types,
 * empty, grad_enabled, fail): types of tensors, exactly these, that carry DLPack's exchange table; empty(sizes, strides, dtype) gives a
 * tensor on the current GPU; grad_enabled() or None; fail(code) raises what tw_last_error() says. False: no type has a table.
 *   table(flowing): a new table. flowing: numbers are scalars of the launch (a kernel); otherwise part of the signature (an operation).
 *   remember(table, given, named, outputs, steps, result): outputs ((sizes, strides, dtype), ...), steps ((tw_call, ((source, byte offset),
 * ...), source of the workspace or None, scalars), ...), sources numbered over the tensor arguments and then the outputs; result: None, the
 * number of an output or a tuple of such. True: kept. run(table, given, named): the result, or NotImplemented where nothing was recorded.
 *   runner(table): run() of that table, called with (given, named).
 *   recording(1), recording(-1): between them run() has nothing, so that what a call does goes through Python and can be written down.
 *   method(type): __call__ for a class: run() of self._table, else self._slow(*given, **named). */
TW_API void* tw_python_functions(void);

#ifdef __cplusplus
}
#endif

#endif
