// A kernel file, ready to be called: compiled for the GPU at hand when first needed, launched with the caller's tensors.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/compile.h"
#include "runtime/cute_candidate.h"
#include "runtime/device_kernel.h"
#include "runtime/launch_plan.h"
#include "runtime/tensor_map.h"

namespace tw::runtime {

// One or several kernel launches with everything decided: variants, grids, argument values, TMA maps. Holds addresses of the
// caller's tensors; the module it comes from must outlive it.
class PreparedLaunch {
public:
    // What an argument is made of, so that the launch can be made again with other addresses and scalars (runtime/call.h). Tensors are
    // those of the whole call: its parameters, then a program's buffers.
    struct Origin {
        enum class Kind : std::uint8_t { fixed, tensor, scalar, map } kind = Kind::fixed;
        std::size_t id = 0;                       // the tensor or the scalar
        target::DType type = target::DType::F32;  // of a scalar
        std::size_t request = 0;                  // of a map: index into map_requests
    };
    // Bytes of an output that start at zero: so far after the beginning of a tensor of the call.
    struct Zeroed {
        std::size_t tensor = 0;
        std::uint64_t offset = 0;
        std::size_t bytes = 0;
        cu::DevicePointer address = 0;
    };
    struct Step {
        std::size_t kernel = 0;  // index into Module::kernels
        LaunchShape shape;
        DeviceKernel* on_device = nullptr;
        std::vector<std::uint64_t> words;  // argument values
        std::vector<cu::TensorMap> maps;
        std::vector<TensorMapRequest> map_requests;
        std::vector<std::pair<bool, std::size_t>> arguments;  // per parameter: (is a map, index into words or maps)
        std::vector<Origin> origins;                          // per parameter
        std::vector<Zeroed> zeroed;
        const CompiledKernels* compiled = nullptr;  // the compiler's report
    };
    std::vector<Step> steps;  // empty: nothing to do for these sizes

    // Asynchronous; may be captured into a graph.
    Result<void> launch(cu::Stream stream);
};

// Buffers of a program begin at multiples of this.
inline constexpr std::size_t buffer_alignment = 1024;
inline std::uint64_t aligned_workspace(std::uint64_t block) { return (block + buffer_alignment - 1) / buffer_alignment * buffer_alignment; }

// Memory that is allocated and freed in a stream's order: what was launched on it before the free may still use it, and both may be
// captured into a graph.
class StreamBuffer {
public:
    static Result<StreamBuffer> allocate(std::size_t bytes, cu::Stream stream);  // nothing for no bytes
    StreamBuffer(StreamBuffer&& other) noexcept
        : cuda_(std::exchange(other.cuda_, nullptr)), block_(other.block_), address_(other.address_), stream_(other.stream_) {}
    StreamBuffer& operator=(StreamBuffer&& other) noexcept {
        std::swap(cuda_, other.cuda_), std::swap(block_, other.block_), std::swap(address_, other.address_),
            std::swap(stream_, other.stream_);
        return *this;
    }
    static StreamBuffer none() { return {}; }
    ~StreamBuffer();
    cu::DevicePointer address() const { return address_; }

private:
    StreamBuffer() = default;
    const Driver* cuda_ = nullptr;
    cu::DevicePointer block_ = 0, address_ = 0;
    cu::Stream stream_ = nullptr;
};

class KernelModule {
public:
    // Diagnostics of the language come back as the failure's message, rendered with their source lines.
    static Result<std::unique_ptr<KernelModule>> from_file(const std::string& path, const lower::ConstValues& constants);
    static Result<std::unique_ptr<KernelModule>> from_text(const std::string& name, const std::string& text,
                                                           const lower::ConstValues& constants);
    // CuTe C++ with its launch lines (runtime/cute_candidate.h). `signature`: the task's, as a kernel file.
    static Result<std::unique_ptr<KernelModule>> from_cute(const std::string& name, const std::string& text, const std::string& signature);

    // A kernel's text compiled: what codegen prints of it, or the CuTe text it stands in. `entry`: gets its function and parameters.
    Result<CompiledKernels> compile_kernel(std::size_t kernel, const std::string& arch, CuteEntry* entry = nullptr) const;

    const ir::Module& ir() const { return module_; }

    // Launches the first variant of `name` that takes the arguments, on `stream`. Asynchronous. The first launch of a variant
    // compiles and loads it, which is not allowed inside a graph capture. A program's buffers are allocated and freed in the stream's
    // order.
    Result<void> launch(const std::string& name, const LaunchArguments& arguments, cu::Stream stream);

    // The same, without the launch. A name that is a program's gives one step per launch of the program; `workspace` is where
    // its buffers lie (workspace_bytes() of them, 1024-byte aligned; 0 when it has none).
    Result<PreparedLaunch> prepare(const std::string& name, const LaunchArguments& arguments, cu::DevicePointer workspace = 0);
    Result<std::size_t> workspace_bytes(const std::string& name, const LaunchArguments& arguments) const;

    const ir::Program* find_program(const std::string& name) const;
    // The launches of a call with their own arguments: one for a kernel. `workspace` is where a program's buffers begin.
    struct PlannedStep {
        std::vector<std::size_t> variants;  // to choose from, as indices into Module::kernels
        LaunchArguments arguments;
        std::vector<std::size_t> tensors, scalars;  // of each argument, its number in the whole call: parameters, then buffers
    };
    Result<std::vector<PlannedStep>> plan_steps(const std::string& name, const LaunchArguments& arguments, std::uint64_t workspace) const;
    // Variants of this name, as indices into Module::kernels; none for a program.
    std::vector<std::size_t> variants_of(const std::string& name) const;

private:
    struct Loaded;
    Result<Loaded*> loaded(std::size_t kernel);
    // `contents_known`: no earlier launch of a program writes its tensors, so what is promised of them can be checked now.
    Result<void> prepare_step(const PlannedStep& planned, PreparedLaunch& into, bool contents_known);

    ir::Module module_;
    std::string cute_text_;                // empty: a kernel file
    std::vector<CuteEntry> cute_entries_;  // by kernel
    std::mutex guard_;
    std::map<std::pair<cu::Context, std::size_t>, std::shared_ptr<Loaded>> loaded_;  // by context and index into module_.kernels
};

}  // namespace tw::runtime
