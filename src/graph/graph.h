// A graph of tensor operators, as a front end writes it (docs/graph.md), and its reading from JSON.
//
// The text is untrusted: everything that the later stages rely on is checked here, with the node's name in the message.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/expected.h"

namespace tw::graph {

using Shape = std::vector<std::int64_t>;

struct Problem {
    std::string where;  // a node's or a field's name
    std::string what;
    std::string help;
    int store = -1;          // generation: with this primitive in memory it would work
    std::string apart = {};  // generation: what would have to be in Precision::rows
};
template <class T>
using Result = Expected<T, Problem>;

std::int64_t count_of(const Shape& shape);
std::string text_of(const Shape& shape);

struct Operand {
    int node = -1;  // of Graph::nodes; -1: the number
    double number = 0;
};

enum class Role { input, parameter, operation };

struct Node {
    std::string name, op;  // op: empty for inputs and parameters
    Role role = Role::operation;
    std::vector<Operand> in;
    nlohmann::json attributes;
    Shape shape;
    std::string dtype;
    std::vector<double> values;  // of a parameter that is a constant
    std::string random;          // an input that the caller draws anew for each call: "uniform" from 0 to 1, or "words" of 32 bits
};

// A size that is known at launch (sizes.h).
struct OpenSize {
    std::string name;
    std::int64_t least = 1, most = 1;
    std::int64_t stands_in = 0, other = 0;
};

struct Graph {
    std::string name;
    std::vector<OpenSize> sizes;
    std::vector<Node> nodes;  // inputs, parameters, then operations in an order in which each uses earlier ones only
    std::vector<int> outputs;
};

constexpr std::size_t kMostNodes = 4096;
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;

Result<Graph> read_graph(const std::string& text);

// A number of a node's attributes; "inf" and "-inf", which JSON has no numbers for, are some too.
double real_in(const nlohmann::json& object, const char* key, double otherwise);

}  // namespace tw::graph
