// A kernel file, ready to be called: compiled for the GPU at hand when first needed, launched with the caller's tensors.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "lower/lower.h"
#include "runtime/device_kernel.h"
#include "runtime/launch_plan.h"

namespace tw::runtime {

class KernelModule {
public:
    // Diagnostics of the language come back as the failure's message, rendered with their source lines.
    static Result<std::unique_ptr<KernelModule>> from_file(const std::string& path, const lower::ConstValues& constants);
    static Result<std::unique_ptr<KernelModule>> from_text(const std::string& name, const std::string& text, const lower::ConstValues& constants);

    const ir::Module& ir() const { return module_; }

    // Launches the first variant of `name` that takes the arguments, on `stream`. Asynchronous. The first launch of a variant
    // compiles and loads it, which is not allowed inside a graph capture.
    Result<void> launch(const std::string& name, const LaunchArguments& arguments, cu::Stream stream);

private:
    struct Loaded;
    Result<Loaded*> loaded(std::size_t kernel);

    ir::Module module_;
    std::mutex guard_;
    std::map<std::size_t, std::shared_ptr<Loaded>> loaded_;   // by index into module_.kernels
};

}  // namespace tw::runtime
