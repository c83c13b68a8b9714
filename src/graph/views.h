// Stored tensors seen through reshapes, permutations and slices.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "graph/group.h"

namespace tw::graph {

std::vector<Dim> contiguous(const Shape& shape);
// The dimensions of a view under another shape; nothing: it is no view.
std::optional<std::vector<Dim>> reshaped(const std::vector<Dim>& from, const Shape& to);
// Through reshapes, permutations and slices down to what is stored. A reshape that is no view is stored itself.
View resolve(const Primitives& p, int id, const std::set<int>& stored);
// The same through broadcasts too, whose dimensions have stride 0; slices are an offset.
View seen(const Primitives& p, int id, const std::set<int>& stored);

}  // namespace tw::graph
