// A graph to kernels and the list of launches that computes it.
#pragma once

#include <string>
#include <vector>

#include "graph/emit.h"
#include "graph/graph.h"

namespace tw::graph {

struct Generated {
    std::string source;               // the kernel file, with the launches as a program
    std::string kernels_only;         // without it
    std::string program_problem;      // why it has no program that says what the graph computes; empty: it has one
    std::vector<KernelText> kernels;  // in the order of their launches
    nlohmann::json plan;              // docs/graph.md, "The plan"
};

// `stored`: primitives that have to be written to memory, of those that an earlier result named as `cuts`.
Result<Generated> generate(const Graph& graph, const Precision& precision = {}, std::set<int> stored = {});

}  // namespace tw::graph
