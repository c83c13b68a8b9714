// What the writers of products and convolutions share: the result's axes, and helper kernels that make buffers of their own.
#pragma once

#include <string>
#include <vector>

#include "graph/writer.h"

namespace tw::graph {

// One atom for the rows of a product's result, one for its columns; the others are blocks.
struct ProductAxes {
    int m = -1, n = -1;
    std::vector<GridAxis> outer;
    std::vector<std::string> index, name;  // of the dimensions before the last two: in the kernel, in `computes`
};
bool arrange_product(Writer& w, ProductAxes& axes);
void name_outer(Writer& w, ProductAxes& axes, std::size_t count);  // the first dimensions, one block each

// Of what is stored with symbolic rows and columns, every tensor must have them whole: a proof for all sizes knows no other extents.
bool whole_in(const Group& g, int atom);
bool row_major(const Read& read);

// A tensor between the kernels of one group.
struct Scratch {
    std::string name, dtype;  // of the parameter
    Shape dims, strides;
    std::string buffer;
    Shape whole;  // what is allocated
};
Argument argument_of(const Scratch& s, bool output);

// A kernel of the given text, in front of the group's own.
struct Helper {
    std::string name, computes, body;
    std::vector<Argument> arguments;
    int threads = 256, blocks_per_sm = 0;
};
KernelText helper_text(const Helper& h, const std::string& family, const std::vector<std::string>& nodes);

// f32 by three products of f16 parts on the matrix unit of Hopper. False: not for this product; nothing was written.
bool write_split_product(Writer& w, const ProductAxes& axes);
// f32 by three products of tf32 parts, for few rows: the other operand is taken apart in registers. False: as above.
bool write_thin_product(Writer& w, const ProductAxes& axes);
// f32 by three products of tf32 parts, for a long sum of few results: parts of it are added to the output. False: as above.
bool write_long_product(Writer& w, const ProductAxes& axes);
// 16-bit operands as they are. False: as above.
bool write_narrow_product(Writer& w, const ProductAxes& axes);
// Convolutions in tf32 with channels last. False: as above.
bool write_packed_conv(Writer& w, const ProductAxes& axes);
// The same for a remainder of the positions; with `lines` for those remainders in the last dimension that have taps, of `lines`: the last
// atom of the positions is then a line of the output. `pack`: the input is not packed yet.
struct Residue;
bool write_packed_phases(Writer& w, const std::vector<std::vector<Residue>>& r, const std::vector<int>& positions, std::int64_t lines,
                         std::size_t phase, bool pack);

}  // namespace tw::graph
