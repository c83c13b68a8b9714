// The operators of a graph: each a function that writes its node in primitives.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/builder.h"

namespace tw::graph {

// What a node's writer works with. A failure is noted, and the first one is reported; writers go on with any value.
class Call {
public:
    Call(Builder& builder, const Node& called, std::vector<int> in, const Precision& at)
        : b(builder), node(called), precision(at), in_(std::move(in)) {}

    Builder& b;
    const Node& node;
    const Precision& precision;
    Problem problem;
    bool failed = false;

    std::size_t count() const { return in_.size(); }
    bool has(std::size_t i) const { return i < in_.size() && in_[i] >= 0; }
    int in(std::size_t i);    // any type
    int real(std::size_t i);  // as f32
    double number(const char* key, double otherwise);
    std::int64_t integer(const char* key, std::int64_t otherwise);
    bool flag(const char* key, bool otherwise) const;
    Shape integers(const char* key, std::size_t count, std::int64_t otherwise);  // one number stands for all
    Shape axes(const char* key, std::size_t rank);                               // negative ones count from the end; left out: all
    std::int64_t axis(const char* key, std::size_t rank, std::int64_t otherwise);
    int fail(std::string what, std::string help = "docs/graph.md lists the operators and their attributes");

private:
    std::vector<int> in_;
};

using Operator = std::function<int(Call&)>;
using Operators = std::map<std::string, Operator>;

void add_pointwise(Operators& table);
void add_folds(Operators& table);     // reductions, softmax, norms, scans, losses
void add_products(Operators& table);  // matmul, linear, convolutions, pooling, attention
void add_views(Operators& table);
void add_places(Operators& table);  // concatenation, elements by index

// Sums of centred values, which cancel: in f64 (widen.cpp).
void widen_centred_sums(Primitives& p);

}  // namespace tw::graph
