// Tensors that a kernel updates in place: loads that find what the launch found.
#pragma once

#include <set>

#include "ir/ir.h"

namespace tw::verify {

// The loads from tensors that the kernel writes, each of which a later store of the same statement list overwrites: the same elements, each
// by the thread that has read it. Where every element is also written exactly once (which is proved for every output), nobody has written
// an element that such a load reads: it is what it was before the launch.
std::set<const ir::Stmt*> reads_before_writes(const ir::Kernel& kernel);

}  // namespace tw::verify
