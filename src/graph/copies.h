// Kernels that only move elements, whatever their type: the parts of a concatenation, and elements that indices choose.
#pragma once

#include "graph/emit.h"

namespace tw::graph {

// The number that all elements of a primitive are; nothing: they are read or computed.
std::optional<double> constant_of(const Primitives& p, int id);

// One kernel for each part, which writes its place in the whole.
Result<std::vector<KernelText>> write_cat(const Primitives& p, const Group& g, const std::string& name);
Result<std::vector<KernelText>> write_gather(const Primitives& p, const Group& g, const std::string& name);

}  // namespace tw::graph
