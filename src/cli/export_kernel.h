// Kernels as files for a machine with a GPU: the launch plan, and data with what the emulator makes of it.
// bench/gpu_kernels.py reads them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "diagnose/random_kernel.h"

namespace tw::cli {

// The launch plan (with the CUDA text); nothing, and `problem`, when it cannot be printed.
std::optional<nlohmann::json> exported_plan(const ir::Kernel& kernel, std::string& problem);

// A random kernel with inputs (small integers) and the emulator's outputs for its shapes, bytes in base64.
std::optional<nlohmann::json> exported_random(const diagnose::RandomKernel& random, std::size_t shapes, std::string& problem);

}  // namespace tw::cli
