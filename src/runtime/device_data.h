// Data on the GPU for checks and measurements: tensors with guard zones, random contents by seed, poison, scans.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "runtime/graph_timing.h"
#include "runtime/launch_plan.h"

namespace tw::runtime {

// One tensor with a zone on either side that no kernel may touch.
struct DeviceTensor {
    std::shared_ptr<const DeviceBuffer> memory;  // shared: two contenders read the same inputs
    TensorArgument argument;
    std::size_t bytes = 0;  // of the tensor itself
    bool dense = true;      // no gaps between elements
};

// How often something is found in a tensor.
struct TensorScan {
    std::uint64_t poisoned = 0;  // elements that still hold the poison (floats, and integers of 2 bytes and more)
    std::uint64_t nan = 0;
    std::uint64_t stray = 0;  // places between the tensor's rows that no longer hold it
};

class DeviceData {
public:
    // Compiles its few kernels for the current GPU (through the cache).
    static Result<std::unique_ptr<DeviceData>> create();
    ~DeviceData();

    const Driver& cuda() const { return *cuda_; }
    const std::string& arch() const { return arch_; }

    Result<DeviceTensor> allocate(const ir::Tensor& tensor, const std::vector<std::int64_t>& sizes) const;

    // Floats: sums of four uniforms around zero, in [-2, 2). Integers that steer nothing: small ones and some up to 1000. Integers used as
    // indices: zeros (contents that are promised, and places that `computes` reads, come from emulate/). The same seed gives the same
    // contents on every machine.
    Result<void> fill(const DeviceTensor& to, const ir::Tensor& tensor, bool is_index, std::uint64_t seed) const;
    // Values in memory order, rounded to the type; as many as the tensor has.
    Result<void> copy_values(const DeviceTensor& to, const ir::Tensor& tensor, const std::vector<double>& values) const;
    Result<void> poison(const DeviceTensor& to) const;  // NaNs for floats
    Result<TensorScan> scan(const DeviceTensor& of) const;
    // Bytes of the guard zones that no longer hold what allocate() put there.
    Result<std::uint64_t> damaged_guard_bytes(const DeviceTensor& of) const;

private:
    DeviceData() = default;
    struct Kernels;
    const Driver* cuda_ = nullptr;
    std::string arch_;
    std::unique_ptr<Kernels> kernels_;
};

std::string data_kernels_text();  // their CUDA, for the compiler's tests

std::optional<std::int64_t> size_value(const ir::Expr& e, const std::vector<std::int64_t>& sizes);

}  // namespace tw::runtime
