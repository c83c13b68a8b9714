// A call that is made again and again: one kernel or program for one signature (types, shapes and strides of its tensors). What follows
// from the signature is decided once: variant, grid, sizes, TMA descriptors but for their address. A launch brings addresses and scalars,
// checks what depends on them (alignment, memory that is shared with an output, scalars that must be positive) and calls the driver.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/launch.h"

namespace tw::runtime {

class Call {
public:
    // Compiles and loads what is needed; not inside a graph capture. The module must outlive the call.
    static Result<std::unique_ptr<Call>> make(KernelModule& module, const std::string& name, const LaunchArguments& arguments);

    // Of a program's buffers, room to align them included; 0 for a kernel.
    std::size_t workspace_bytes() const { return workspace_bytes_; }

    // Addresses in the order of the tensor parameters, `scalars` in that of the scalar ones. `workspace`: memory for buffers, at least
    // workspace_bytes() long and free to use in the stream's order; 0: the call allocates and frees it in the stream's order. Asynchronous;
    // may be captured into a graph; from several threads at once.
    Result<void> launch(const std::uint64_t* addresses, const double* scalars, cu::DevicePointer workspace, cu::Stream stream);

    // Kernels it launches, as indices into the module's.
    std::vector<std::size_t> kernels() const;

private:
    struct Parameter {
        std::uint64_t bytes = 0;  // from the first element to the last
        bool is_output = false;
        int multiple = 16;  // of its address
    };
    struct KnownMap {
        std::uint64_t address = 0;
        cu::TensorMap map;
    };
    bool addresses_fit(const std::uint64_t* addresses) const;
    Result<void> refused(const std::uint64_t* addresses, const double* scalars) const;
    Result<void> launch_step(std::size_t number, const std::uint64_t* bases, const double* scalars, cu::Stream stream);
    Result<void> map_at(std::size_t step, std::size_t request, std::uint64_t address, cu::TensorMap& map);

    KernelModule* module_ = nullptr;
    std::string name_;
    LaunchArguments signature_;  // with the addresses and scalars of the call that made it
    std::vector<Parameter> parameters_;
    std::vector<std::uint64_t> buffer_offsets_;  // in the aligned workspace
    std::vector<bool> positive_;                 // per scalar
    PreparedLaunch prepared_;
    std::size_t workspace_bytes_ = 0;
    bool check_contents_ = false;                           // TILEWRIGHT_CHECK_CONTENTS: every launch goes the long way
    std::mutex guard_;                                      // of maps_; the driver is called without it
    std::vector<std::vector<std::vector<KnownMap>>> maps_;  // per step and request, the last few addresses
};

// The same call on the CPU: addresses are of host memory, the kernels run on the emulator, every fault it finds is a failure with its
// place.
Result<void> run_on_host(const KernelModule& module, const std::string& name, const LaunchArguments& arguments);

}  // namespace tw::runtime
