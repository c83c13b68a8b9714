/* A CUDA driver without a GPU, for tests of what is passed to it: every call succeeds; launches, copies and memory are written to the file that
 * FAKE_DRIVER_LOG names, one line each. A launch's line has its grid and the first 8 bytes of each of the first FAKE_DRIVER_ARGUMENTS arguments. With
 * FAKE_DRIVER_ZEROS what is read back is zeros, and guard zones are whole: every output is what its reference is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next_address = 0x7000000000;

static void note(const char* format, uint64_t a, uint64_t b, uint64_t c) {
    const char* path = getenv("FAKE_DRIVER_LOG");
    FILE* f = path ? fopen(path, "a") : 0;
    if (!f) return;
    fprintf(f, format, a, b, c);
    fclose(f);
}

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuGetErrorName(int code, const char** text) { return *text = "CUDA_ERROR_FAKE", 0; }
int cuGetErrorString(int code, const char** text) { return *text = "fake", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int length, int device) { return snprintf(name, length, "NVIDIA H200"), 0; }
int cuDeviceGetAttribute(int* value, int which, int device) {
    *value = which == 16 ? 132 : which == 75 ? 9 : which == 76 ? 0 : which == 97 ? 232448 : which == 81 ? 233472 : 1000000;
    return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = 1ul << 37, 0; }
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = (void*)1, 0; }
static void* current = 0;
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuCtxSynchronize(void) { return 0; }
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) { return *free_bytes = *total = 1ul << 37, 0; }
int cuMemAlloc_v2(uint64_t* pointer, size_t bytes) { return *pointer = next_address, next_address += (bytes + 4095) / 4096 * 4096, 0; }
int cuMemFree_v2(uint64_t pointer) { return 0; }
int cuMemAllocAsync(uint64_t* pointer, size_t bytes, void* stream) {
    *pointer = next_address + 512; /* no more than the driver promises */
    next_address += (bytes + 8191) / 4096 * 4096;
    note("allocate %lx %lx %lx\n", *pointer, bytes, (uint64_t)stream);
    return 0;
}
int cuMemFreeAsync(uint64_t pointer, void* stream) { return note("free %lx %lx %lx\n", pointer, (uint64_t)stream, 0), 0; }
int cuMemcpyHtoD_v2(uint64_t to, const void* from, size_t bytes) { return 0; }
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
    if (getenv("FAKE_DRIVER_ZEROS")) memset(to, bytes == 4096 ? 0xc3 : 0, bytes); /* 4096: a guard zone, as it was filled */
    return 0;
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) { return 0; }
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) { return 0; }
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) { return note("zero %lx %lx %lx\n", to, bytes, (uint64_t)stream), 0; }
int cuModuleLoadData(void** module, const void* image) { return *module = (void*)2, 0; }
int cuModuleUnload(void* module) { return 0; }
int cuModuleGetFunction(void** function, void* module, const char* name) { return *function = (void*)3, 0; }
int cuFuncGetAttribute(int* value, int which, void* function) { return *value = 64, 0; }
int cuFuncSetAttribute(void* function, int which, int value) { return 0; }
struct config {
    unsigned grid[3], block[3], shared;
    void* stream;
};
int cuLaunchKernelEx(const struct config* config, void* function, void** arguments, void** extra) {
    const char* count = getenv("FAKE_DRIVER_ARGUMENTS");
    note("launch %lx %lx %lx", config->grid[0], config->grid[1], (uint64_t)config->stream);
    for (int i = 0; i < (count ? atoi(count) : 0); ++i) {
        uint64_t word = 0;
        memcpy(&word, arguments[i], 8);
        note(" %lx", word, 0, 0);
    }
    note("\n", 0, 0, 0);
    return 0;
}
int cuStreamCreate(void** stream, unsigned flags) { return *stream = (void*)5, 0; }
int cuStreamDestroy_v2(void* stream) { return 0; }
int cuStreamSynchronize(void* stream) { return note("synchronize %lx\n", (uint64_t)stream, 0, 0), 0; }
int cuStreamBeginCapture_v2(void* stream, int mode) { return 0; }
int cuStreamEndCapture(void* stream, void** graph) { return 0; }
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) { return 0; }
int cuGraphLaunch(void* exec, void* stream) { return 0; }
int cuGraphDestroy(void* graph) { return 0; }
int cuGraphExecDestroy(void* exec) { return 0; }
int cuEventCreate(void** event, unsigned flags) { return 0; }
int cuEventDestroy_v2(void* event) { return 0; }
int cuEventRecord(void* event, void* stream) { return 0; }
int cuEventSynchronize(void* event) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) { return *milliseconds = 1, 0; }
/* The address is the first word of a map, which is enough to see it again. */
int cuTensorMapEncodeTiled(uint64_t* map, int type, uint32_t rank, void* address, const uint64_t* sizes, const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int a, int b, int c, int d) {
    memset(map, 0, 128);
    return map[0] = (uint64_t)address, map[1] = sizes[0], 0;
}
