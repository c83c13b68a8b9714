// The CUDA driver, opened on first use.
#pragma once

#include <string>
#include <vector>

#include "runtime/driver_types.h"
#include "runtime/failure.h"

namespace tw::runtime {

struct Driver {
    cu::DriverCalls call;
    std::string path;
    int version = 0;  // 1000 * major + 10 * minor

    // A failure that names the call and the driver's own words for the code.
    Failure failure(const char* doing, cu::Status code) const;
};

// The driver, initialised, or why not (no library, no device, initialisation refused). The answer is kept.
Result<const Driver*> driver();

// Makes a context current on this thread: the one that is already current (torch's, say), else the first device's
// primary context. Post-condition on success: driver calls that need a context work on this thread.
Result<const Driver*> driver_with_context();

struct DeviceFacts {
    int ordinal = 0;
    std::string name;
    int compute_major = 0, compute_minor = 0;
    int multiprocessors = 0;
    int clock_khz = 0;
    int memory_clock_khz = 0, memory_bus_bits = 0;
    int l2_bytes = 0;
    int shared_bytes_per_block = 0;  // the most that a kernel may ask for
    int shared_bytes_per_multiprocessor = 0;
    std::size_t memory_bytes = 0;
};

Result<std::vector<DeviceFacts>> devices();

// The GPU whose context is current on this thread (one is made current if none is).
Result<DeviceFacts> current_device();
// The architecture to compile for: "sm_90a" on compute capability 9.0, "sm_80" on 8.0.
std::string arch_of(const DeviceFacts& device);
Result<std::string> current_arch();

}  // namespace tw::runtime
