// The text of one node (compose.h). Internal to graph.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/input.h"
#include "graph/compose.h"

namespace tw::graph {

using Indices = std::vector<std::string>;

// The index of a tensor of shape `from` whose elements, in memory order, are those of shape `to`, at an index of that.
Indices reshaped(const Shape& from, const Shape& to, const Indices& at);

inline std::size_t zu(std::int64_t i) { return static_cast<std::size_t>(i); }

struct NodeText {
    const Graph& graph;
    const Node& n;
    const Precision& precision;
    Composed& out;
    std::string id;  // for names of what is said beside the node itself

    std::optional<std::string> value();  // at (i0, i1, ...); nothing: an operator without a text

    // By family, nothing where the operator is of another.
    std::optional<std::string> pointwise();
    std::optional<std::string> views();
    std::optional<std::string> folds();
    std::optional<std::string> norms();
    std::optional<std::string> windows();
    std::optional<std::string> products();
    std::optional<std::string> losses();

    std::string let(const std::string& name, const Shape& extents, const std::string& value);
    static std::string fold(const std::string& fn, const std::vector<std::pair<std::string, std::int64_t>>& over, const std::string& body);
    struct Folded {
        std::vector<std::pair<std::string, std::int64_t>> over;
        std::string value;
    };
    static std::string log_of_sum(const std::function<Folded(const char*)>& x);
    static std::string literal(double v);
    Indices own() const;
    std::string raw(std::size_t operand, const Indices& index) const;
    std::string real(std::size_t operand, const Indices& index) const;
    std::string truth(std::size_t operand, const Indices& index) const;
    Indices broadcast(std::size_t operand, const Indices& index) const;
    const Shape& shape(std::size_t operand) const;
    std::string dtype(std::size_t operand) const;
    double number(const char* key, double otherwise) const;
    bool flag(const char* key) const;
    Shape list(const char* key, std::size_t count, std::int64_t otherwise) const;
    std::vector<bool> axes(const char* key) const;
    std::size_t axis() const;
    bool has(std::size_t operand) const { return n.in.size() > operand; }

private:
    std::optional<std::string> activation(const std::string& x);
    std::optional<std::string> places();
    bool in_whole_numbers() const;
    std::string met(const Shape& window, const std::function<std::optional<std::pair<std::string, std::string>>(const Indices& taps)>& term,
                    const std::string& fn, double otherwise, std::int64_t most) const;
    std::string convolution();
    std::string pooled();
};

}  // namespace tw::graph
