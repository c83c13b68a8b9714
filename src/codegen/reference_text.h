// The fp64 reference of `computes` as CUDA text: one kernel per equation, one thread per output element.
//
// It shares nothing with the kernels it judges but the equation: no tiles, no shared memory, every step in double. Casts to
// float types are left out (the reference is what rounding errors are measured against); casts to integers are kept. A sum
// that does not depend on an inner loop's variable is computed outside of it, so that a row's mean costs one pass a thread.
// An index outside its tensor reads NaN, so a `where` whose other side is undefined there stays harmless.
//
// Each entry takes one structure of 8-byte words by value: the tensors' addresses, the sizes, the scalars (double), then
//   const long long* sample   which elements, as row-major numbers of the equation's index space; null: 0, 1, 2, ...
//   long long count           how many of them
//   double* want, * got       per element: the reference (null: not computed), and what the output tensor holds
//   const void* output        the equation's output tensor. Where the equation reads its own output, the address among the tensors is that
//   of
//                             a copy from before the launch
#pragma once

#include <string>
#include <vector>

#include "base/expected.h"
#include "ir/ir.h"

namespace tw::codegen {

struct ReferenceText {
    std::string source;
    std::vector<std::string> entries;  // per equation
};

// Tensors, sizes and scalars are those the equations refer to by number (a kernel's or a program's). The error names what has
// no text.
Expected<ReferenceText, std::string> reference_text(const ir::Computes& computes, const std::vector<ir::Tensor>& tensors,
                                                    std::size_t size_count, std::size_t scalar_count);

// Device functions that read and write one element of every type as double or as bits: `tw_load(address, index, code)`.
// `code` is the number of the DType.
std::string element_access_text();

}  // namespace tw::codegen
