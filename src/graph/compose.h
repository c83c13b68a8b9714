// What a graph computes, as one text of `computes`: a `let` for each node, from its operator and attributes alone. It shares nothing with
// how kernels are made (primitives, cuts, templates), so that a program of kernels is proved against it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/primitive.h"

namespace tw::graph {

struct Composed {
    std::vector<std::string> lets;                       // in the order in which they use one another
    std::map<int, std::string> name;                     // of a node: its tensor in the text
    std::map<int, std::int64_t> range;                   // of integer inputs: 0 <= element < range is presupposed
    std::string at(int node, const Shape& shape) const;  // the node's element at (i0, i1, ...)
};

// Names are those of nodes with a prefix: `a_` of inputs and parameters, `n_` of operations. A Problem names an operator without a text.
Result<Composed> compose(const Graph& graph, const Precision& precision);

}  // namespace tw::graph
