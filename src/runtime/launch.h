// A kernel file, ready to be called: compiled for the GPU at hand when first needed, launched with the caller's tensors.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/compile.h"
#include "runtime/device_kernel.h"
#include "runtime/graph_timing.h"
#include "runtime/launch_plan.h"

namespace tw::runtime {

// One or several kernel launches with everything decided: variants, grids, argument values, TMA maps. Holds addresses of the
// caller's tensors; the module it comes from must outlive it.
class PreparedLaunch {
public:
    struct Step {
        std::size_t kernel = 0;  // index into Module::kernels
        LaunchShape shape;
        DeviceKernel* on_device = nullptr;
        std::vector<std::uint64_t> words;  // argument values
        std::vector<cu::TensorMap> maps;
        std::vector<std::pair<bool, std::size_t>> arguments;            // per parameter: (is a map, index into words or maps)
        std::vector<std::pair<cu::DevicePointer, std::size_t>> zeroed;  // address and bytes of outputs that start at zero
        const CompiledKernels* compiled = nullptr;                      // the compiler's report
    };
    std::vector<Step> steps;  // empty: nothing to do for these sizes

    // Asynchronous; may be captured into a graph.
    Result<void> launch(cu::Stream stream);
};

class KernelModule {
public:
    // Diagnostics of the language come back as the failure's message, rendered with their source lines.
    static Result<std::unique_ptr<KernelModule>> from_file(const std::string& path, const lower::ConstValues& constants);
    static Result<std::unique_ptr<KernelModule>> from_text(const std::string& name, const std::string& text,
                                                           const lower::ConstValues& constants);

    const ir::Module& ir() const { return module_; }

    // Launches the first variant of `name` that takes the arguments, on `stream`. Asynchronous. The first launch of a variant
    // compiles and loads it, which is not allowed inside a graph capture.
    Result<void> launch(const std::string& name, const LaunchArguments& arguments, cu::Stream stream);

    // The same, without the launch. A name that is a program's gives one step per launch of the program; `workspace` is where
    // its buffers lie (workspace_bytes() of them, 1024-byte aligned; 0 when it has none).
    Result<PreparedLaunch> prepare(const std::string& name, const LaunchArguments& arguments, cu::DevicePointer workspace = 0);
    Result<std::size_t> workspace_bytes(const std::string& name, const LaunchArguments& arguments) const;

    const ir::Program* find_program(const std::string& name) const;

private:
    struct Loaded;
    Result<Loaded*> loaded(std::size_t kernel);
    // `contents_known`: no earlier launch of a program writes its tensors, so what is promised of them can be checked now.
    Result<void> prepare_step(const std::vector<std::size_t>& variants, const LaunchArguments& arguments, PreparedLaunch& into,
                              bool contents_known);

    ir::Module module_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<Loaded>> loaded_;  // by index into module_.kernels
    std::map<cu::Stream, DeviceBuffer> workspaces_;          // of programs: launches of one stream follow one another
};

}  // namespace tw::runtime
