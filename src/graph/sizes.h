// Sizes that a graph leaves open, as a batch of any length: one set of kernels serves all of them, and is proved for all of them.
//
// Every later stage works with numbers. An open size has a number that stands in for it: a prime near to its largest value that divides no
// number of the graph. So a number that is made of the size alone is a multiple of the prime, and in the texts and the plan it becomes the
// size again. What is made of it otherwise (a padded extent, the inverse of a count, a choice of the generator) would be a plain number.
// Therefore all is written twice, with two primes for each size, and is taken only where both are the same once the sizes have their names:
// such a number would differ. Kernels are then proved for all values of their sizes, not for those numbers.
#pragma once

#include <string>
#include <vector>

#include "graph/generate.h"

namespace tw::graph {

std::int64_t extent_at(std::int64_t n, const std::vector<OpenSize>& sizes, const std::vector<std::int64_t>& values);

// The same graph where the sizes have these values.
Graph graph_at(const Graph& graph, const std::vector<std::int64_t>& values);
// The same kernels, to be launched for these values.
Generated launches_at(const Generated& generated, const Graph& graph, const std::vector<std::int64_t>& values);

// Chooses the two numbers that stand in for each size. A Problem: there are none.
Result<bool> choose_stand_ins(Graph& graph);

bool is_open(const std::vector<OpenSize>& sizes, std::int64_t n);
// How many blocks of `each` cover so many elements, as text.
std::string parts_text(const std::vector<OpenSize>& sizes, std::int64_t n, std::int64_t each);
// A text in which numbers that are made of sizes say so, and the sizes that it names. Where it has several only ever as their product, that
// is one size to it: a launch can tell it from a tensor's dimensions.
struct NamedText {
    std::string text;
    std::vector<OpenSize> sizes;
};
NamedText named_text(const std::string& text, const std::vector<OpenSize>& sizes);
nlohmann::json named_plan(const nlohmann::json& plan, const std::vector<OpenSize>& sizes);

}  // namespace tw::graph
