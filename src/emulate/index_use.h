// What integer tensors are for: some hold data, some hold places where other tensors are read. Random contents of the second kind must be
// places that exist, or a run says nothing about the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"

namespace tw::emulate {

// Integer inputs that are read to find a place: by `computes`, by an index expression of a kernel, or by a gather.
std::vector<bool> index_tensors(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes,
                                const std::vector<const ir::Kernel*>& kernels);

// Tensors that `computes` reads.
std::vector<bool> read_tensors(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes);

// How many places an index tensor chooses among, where `computes` says it: the extent of the dimension that its elements index by
// themselves (the least of them), with these sizes. 0: it is not known.
std::vector<std::int64_t> indexed_extents(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes,
                                          const std::vector<std::int64_t>& sizes);

// Tensors that `computes` compares with places of an output (idx[t] == v) and finds no element by: an element that is no place names none.
std::vector<bool> compared_with_places(const std::vector<ir::Tensor>& tensors, const ir::Computes& computes);

}  // namespace tw::emulate
