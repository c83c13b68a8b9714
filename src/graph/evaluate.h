// What a graph means, in fp64, operator by operator and apart from how kernels are made: the reference that generated kernels are compared
// with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/generate.h"

namespace tw::graph {

using Values = std::map<std::string, std::vector<double>>;  // by the name of an input, parameter or output; row-major

// Random contents of every input and parameter: numbers in -1 .. 1, or 0 .. 1; classes and flags of integer tensors.
Values random_values(const Graph& graph, std::uint64_t seed, bool positive = false);
// The outputs in order. Refuses what would take too long.
Result<std::vector<std::vector<double>>> evaluate(const Graph& graph, const Values& values);
// The same on the emulator, launch by launch.
Result<std::vector<std::vector<double>>> emulate(const Graph& graph, const Generated& generated, const Values& values);

struct Difference {
    double worst = 0;  // |actual - expected| / max(|expected|, root mean square)
    std::size_t output = 0, element = 0;
    double expected = 0, actual = 0;
};
Difference compare(const std::vector<std::vector<double>>& expected, const std::vector<std::vector<double>>& actual);

}  // namespace tw::graph
