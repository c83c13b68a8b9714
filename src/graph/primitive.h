// The small set of operators that kernels are made of. Every operator of a graph is written in them (primitives.cpp, primitives_*.cpp).
//
// A pointwise operation has operands of its own rank whose dimensions are its own or 1. A reduction keeps its dimensions, with extent 1.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace tw::graph {

enum class Kind { leaf, number, pointwise, reshape, permute, slice, reduce, matmul, conv, window, scan, arg, pick, cat, gather, attention };

// A window over flattened positions: output position (o_1 ... o_d) and tap (t_1 ... t_d) meet input position o * stride + t * dilation -
// padding in each dimension; transposed: (o + padding - t * dilation) / stride, where that is whole. `padded`: the input was
// padded, so that all of these exist.
struct Window {
    Shape in, out, kernel, stride, padding, dilation;
    bool transposed = false, padded = false;
    std::int64_t taps() const { return count_of(kernel); }
};

struct Primitive {
    Kind kind = Kind::leaf;
    std::string fn;  // pointwise: add, exp, where, ...; reduce, window: sum, max, min, prod (window: dot); arg: max, min; scan: sum, prod
    std::vector<int> in;  // matmul: (b, m, k), (b, k, n); conv and window dot: (b, g, c, s), (g, o, c, taps...), transposed (g, c, o,
                          // taps...); other windows: (outer, s); gather: the source and the index, which has the
                          // result's rank; attention: the scores (b, m, n) and (b, n, k)
    Shape shape;
    std::string dtype = "f32";
    double value = 0;  // number; tri: the diagonal
    Shape axes;        // reduce, scan, arg, cat: axes; permute: the order; slice: the starts; gather: by dimension of the source the
                       // result's, or -1: the one that is chosen from
    Window window;
    bool reverse = false, exclusive = false;  // scan
    bool tf32 = false;                        // conv, matmul: operands are rounded to tf32, as the reference does
    bool even = false;                        // conv: ties of that rounding go to even, not away from zero
    bool finite = false;                      // reduce: a largest element that is only ever subtracted from its line
    int scores = -1;                          // attention: the product that the scores are made of; fn: the type of probabilities
    bool causal = false;                      // attention: keys up to the query's own place
    std::string from;                         // the graph's node
};

struct Primitives {
    std::vector<Primitive> list;
    std::vector<int> outputs;  // of list, one for each output of the graph
    std::vector<int> leaves;   // of list, by node of the graph (-1: not used)
    std::vector<int> nodes;    // of list, by node of the graph: its value
    // From so many multiplications on, operands of products and convolutions are brought into the form that the matrix unit takes, by
    // kernels of their own: below, those cost more than they save.
    std::int64_t large = std::int64_t{1} << 29;
    std::set<std::string> rows;  // Precision::rows
    std::vector<OpenSize> sizes;
};

struct Precision {
    bool conv_tf32 = true;                       // convolutions round operands to tf32 (the default of the reference on GPUs); off: 3xTF32
    bool matmul_tf32 = false;                    // products too
    std::int64_t large = std::int64_t{1} << 29;  // Primitives::large
    std::set<std::string> rows;  // nodes whose windows go row by row over a padded input, unpacked; "apart:NODE": whose remainders are
                                 // kernels of their own; "every:NODE", "direct:NODE": direct.cpp otherwise, or not, "terms:NODE",
                                 // "pool:NODE": pool.cpp (dense.cpp); "scores:NODE": no attention.cpp; "plain:NODE": no
                                 // narrow_product.cpp
};

Result<Primitives> to_primitives(const Graph& graph, const Precision& precision);

}  // namespace tw::graph
