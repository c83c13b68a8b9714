// How wide one access of a view may be, from strides, origins and assumptions alone.
#pragma once

#include "lower/draft.h"
#include "lower/facts.h"

namespace tw::lower {

// Elements, a power of two up to 16 bytes: runs of that many along the view's last dimension that start at a multiple of it
// are contiguous and aligned in memory. Tensors' base addresses are multiples of 16 bytes (the launcher checks).
int aligned_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::GlobalView& view);
int aligned_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::SharedView& view);

// The same for both sides of a copy; of one in whole vectors, the length of these.
int copied_run(const ir::Kernel& kernel, const Multiples& multiples, const ir::CpAsync& copy);

// The longest run, at most `limit`, that every thread holds in consecutive values along the last dimension, starting at a
// multiple of its length.
int value_run(const ir::Distribution& dist, int limit);

}  // namespace tw::lower
