// From a kernel and the caller's tensors to one launch: sizes, checks, grid. No GPU is needed here.
//
// Everything that the compiler assumed of the arguments is checked, and what does not hold is said in words that name the
// argument and the remedy. Several kernels of one name are variants: the first whose assumptions hold is taken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "runtime/failure.h"

namespace tw::runtime {

struct TensorArgument {
    std::uint64_t address = 0;  // device address of element 0
    target::DType dtype = target::DType::F32;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;  // elements
};

// The arguments in the order of the kernel's parameters.
struct LaunchArguments {
    std::vector<TensorArgument> tensors;
    std::vector<double> scalars;
};

struct BoundLaunch {
    std::vector<std::int64_t> sizes;  // by Kernel::sizes
    std::vector<std::vector<std::int64_t>>
        strides;                        // per tensor, as the kernel computes them (a dimension of one element may say otherwise)
    std::uint32_t grid[3] = {1, 1, 1};  // persistent: an upper bound on x, see resident_grid()
    bool empty = false;                 // nothing to do: a dimension of the grid is zero
};

// What the address of element 0 must be a multiple of, in bytes: vectors of 16 are read and written along a dimension of stride 1 alone
// (lower/vectors.cpp), so a tensor without one may start at any element.
int address_multiple(const ir::Tensor& tensor);

// Binds the arguments to one kernel. A failure of kind bad_input says which argument, what is wrong and what helps.
Result<BoundLaunch> bind(const ir::Kernel& kernel, const LaunchArguments& arguments);

// The first kernel that accepts the arguments, as an index into `variants`; otherwise the reasons of all of them.
struct Choice {
    std::size_t variant = 0;
    BoundLaunch launch;
};
Result<Choice> choose(const std::vector<const ir::Kernel*>& variants, const LaunchArguments& arguments);

// Blocks of a persistent kernel: as many as are resident at once, in whole clusters, and no more than there is work.
std::uint32_t resident_grid(const ir::Kernel& kernel, std::uint32_t work, int multiprocessors);

}  // namespace tw::runtime
