// A kernel that is loaded on the GPU, and its launches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/driver.h"

namespace tw::runtime {

struct LaunchShape {
    std::uint32_t grid[3] = {1, 1, 1};
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t cluster[3] = {0, 0, 0};  // all zero: no cluster
    std::uint32_t dynamic_shared_bytes = 0;
    bool cooperative = false;
    bool programmatic = false;  // may begin before the previous kernel of the stream has ended (programmatic dependent launch)
};

class DeviceKernel {
public:
    // Loads the cubin into the current context and finds the entry.
    static Result<std::unique_ptr<DeviceKernel>> load(const std::string& cubin, const std::string& entry);
    ~DeviceKernel();
    DeviceKernel(const DeviceKernel&) = delete;
    DeviceKernel& operator=(const DeviceKernel&) = delete;

    int registers() const { return registers_; }
    int local_bytes() const { return local_bytes_; }
    int static_shared_bytes() const { return static_shared_bytes_; }
    int max_threads_per_block() const { return max_threads_per_block_; }

    // `arguments[i]` points at the i-th parameter's value. Asynchronous; may be captured into a graph.
    Result<void> launch(const LaunchShape& shape, void** arguments, cu::Stream stream);

private:
    DeviceKernel() = default;

    const Driver* driver_ = nullptr;
    std::string entry_;
    cu::Module module_ = nullptr;
    cu::Function function_ = nullptr;
    int registers_ = 0, local_bytes_ = 0, static_shared_bytes_ = 0, max_threads_per_block_ = 0;
    // What the driver has been asked to allow. Zero: the default allows 48 KiB together with the static part, which is not
    // worth computing when asking once is cheap.
    std::atomic<std::uint32_t> allowed_dynamic_shared_bytes_{0};
    std::atomic<bool> large_clusters_allowed_{false};
};

}  // namespace tw::runtime
