// f32 operands of the matrix unit as two f16 numbers each, made by kernels of their own.
#pragma once

#include <string>
#include <vector>

#include "graph/product.h"

namespace tw::graph {

// An operand (lead..., rows, depth) in any order of its memory, and its parts.
struct SplitOperand {
    std::string letter;  // of the names of its parts: A_high, ...
    const View* view = nullptr;
    std::vector<std::size_t> leads;  // dimensions of the view that are not of size 1 and not broadcast
    std::size_t row = 0, k = 0;      // dimensions of the view
    bool turned = false;             // k is not the last dimension
    Shape lead;                      // sizes of the leads
    std::int64_t rows = 1, depth = 1;
    Scratch high, low, up, down;  // up: the scale of a row; down: what undoes it

    std::int64_t batch() const { return count_of(lead); }
    std::int64_t first() const { return turned ? depth : rows; }
    std::int64_t last() const { return turned ? rows : depth; }
};

// Kernels before `w`'s own that make the parts of an operand.
class Splitter {
public:
    Splitter(Writer& w, std::vector<std::string> nodes) : w_(w), nodes_(std::move(nodes)) {}

    void names(SplitOperand& o) const;  // of the parts, which somebody else makes
    void split(SplitOperand& o);
    void add(const SplitOperand& o, const char* what, Helper h);

private:
    struct RowTile;
    Scratch scratch(const SplitOperand& o, const char* what, const char* dtype, bool matrix) const;
    static Argument source(const SplitOperand& o);
    static RowTile held_shape(const SplitOperand& o);
    static std::string index(const SplitOperand& o);   // of the leads, with a comma behind
    static std::string ranges(const SplitOperand& o);  // the same with what they run over
    static std::string scaled_parts(const SplitOperand& o);
    static std::vector<Argument> split_arguments(const SplitOperand& o, const std::vector<std::pair<Scratch, const char*>>& outputs);
    void held(const SplitOperand& o);
    void exponent(Helper& h, const SplitOperand& o, const RowTile& t) const;
    void twice(const SplitOperand& o);
    void scales(const SplitOperand& o);
    void grid(Helper& h, const SplitOperand& o, std::vector<GridAxis> axes) const;
    void parts(const SplitOperand& o);

    Writer& w_;
    std::vector<std::string> nodes_;
};

std::vector<std::string> nodes_of(const Writer& w);  // of the graph, that the group computes

}  // namespace tw::graph
