// Attention as one operation: softmax(f(Q K^T)) V, whatever is done to the scores element by element.
#pragma once

#include <set>

#include "graph/group.h"

namespace tw::graph {

// A product with the softmax of another product's results becomes an attention (Kind::attention) where a template is for it.
void fuse_attention(Primitives& p, const Precision& precision);

// Of a group that is grown: its operands Q, K, V as views (lead..., rows, columns), K turned, under one list of leading dimensions.
// False: it cannot be one kernel.
bool place_attention(const Primitives& p, Group& g, const std::set<int>& stored);

}  // namespace tw::graph
