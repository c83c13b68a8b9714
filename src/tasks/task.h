// A task: what to compute, on which shapes, how exactly, and how fast it could be.
//
// A task is a small TOML file:
//
//   name = "gelu"
//   computes = "Y[m, n] = bf16(gelu(f32(X[m, n])))"
//   class = "elementwise"                 # optional: found from `computes`
//   target = "sm_90a"
//   language = "tile"                     # or "cute": candidates are CuTe C++ (docs/cute.md)
//   precision = "strict"                  # or "tf32": the peak that the roofline takes; what may be rounded says `computes`
//   [sizes]
//   M = 16384
//   N = 4096
//   [tensors]                             # in the order of the kernel's parameters
//   X = { dtype = "bf16", dims = ["M", "N"] }
//   Y = { dtype = "bf16", dims = ["M", "N"] }
//   [scalars]
//   eps = { dtype = "f32", value = 1e-5 }
//   [tolerance]                           # optional: relative, per output; else from the casts of `computes`
//   Y = 0.01
//   [[held_out]]                          # other shapes the kernel must also accept
//   M = 77
//   N = 520
//
// Or one line (tasks/line.h): --computes "Y[m, n] = relu(X[m, n])" --set M=512,N=1024.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ir/ir.h"
#include "target/dtype.h"

namespace tw::tasks {

enum class WorkloadClass : std::uint8_t { elementwise, reduction, scan, contraction, attention, grouped, convolution };
std::string_view name_of(WorkloadClass c);
std::optional<WorkloadClass> parse_workload_class(std::string_view text);

struct TensorSpec {
    std::string name;
    target::DType dtype = target::DType::F32;
    std::vector<std::string> dims;     // size names or integers
    std::string extra;                 // further keywords of tw.Tensor, e.g. "range=(0, E), sorted=True"
    std::vector<std::int64_t> values;  // contents of an integer tensor where they must fit others'; empty: made from the seed
};

struct ScalarSpec {
    std::string name;
    target::DType dtype = target::DType::F32;
    double value = 1.0;
};

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

struct Task {
    std::string name;
    std::string computes;
    WorkloadClass workload = WorkloadClass::elementwise;
    std::string target = "sm_90a";
    std::string precision = "strict";
    std::string language = "tile";  // what candidates are written in: "tile" or "cute"
    Sizes sizes;
    std::vector<TensorSpec> tensors;
    std::vector<ScalarSpec> scalars;
    std::vector<std::string> assumes;         // promises of the caller the kernel may lean on: "K % 8 == 0"
    std::map<std::string, double> tolerance;  // per output tensor
    std::vector<Sizes> held_out;
    std::string peer;  // what it is timed against: "cublaslt", "torch:NAME" (bench/peers.json); empty: cublaslt for contractions
    std::string text;  // the TOML
    std::shared_ptr<const ir::Kernel> spec;  // signature and `computes`, resolved; no statements

    std::int64_t size(const std::string& name) const;  // 0 when there is none
    const TensorSpec* tensor(const std::string& name) const;
};

// The parts of a kernel file that the task fixes: imports and sizes; decorator and signature up to the colon. `decorator_extra` starts
// with a comma, `extra_parameters` are whole lines (const parameters).
std::string file_head(const Task& task);
std::string kernel_head(const Task& task, const std::string& function, const std::string& decorator_extra,
                        const std::string& extra_parameters);
// A kernel that does nothing: what a proposer has to fill in.
std::string signature_source(const Task& task);

}  // namespace tw::tasks
