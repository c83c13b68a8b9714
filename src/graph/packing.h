// The operands of a convolution on Hopper's matrix unit, and how it is cut into tiles. A kernel of its own rounds the input to tf32 and
// turns it round, channels last, so that the taps of a row lie side by side in memory: (tap, channel) is one dimension of overlapping rows,
// which whole-tile copies take as it is. Rows beyond the image are zeros that the copies fill in. See docs/performance/graph.md.
#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"
#include "graph/window.h"

namespace tw::graph {

inline std::int64_t up_to(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
inline std::int64_t blocks_of(std::int64_t n, std::int64_t each) { return (n + each - 1) / each; }
inline std::string plus_text(std::int64_t by) { return by == 0 ? "" : by > 0 ? fmt::format(" + {}", by) : fmt::format(" - {}", -by); }

// One dimension of the positions: position o and tap p meet o * stride + shift + p * spread of the input.
struct Axis {
    std::int64_t in = 1, out = 1, taps = 1, stride = 1, shift = 0, spread = 1;
    std::int64_t before = -1, full = 0;  // of an input that several phases share: zeros before it, and how long it is with them
    std::int64_t padding() const { return before >= 0 ? before : std::max<std::int64_t>(0, -shift); }
    std::int64_t from() const { return shift + padding(); }
};

constexpr std::int64_t kPositions = 64;       // of one row: a chunk
constexpr std::int64_t kHalfShared = 114000;  // bytes of shared memory that each of two blocks of a multiprocessor has
constexpr std::int64_t kStagedPad = 4;        // between the rows that results lie in before they are stored

class Packing {
protected:
    // `positions`: their atoms, one for each dimension (-1: a single one); empty: they are one atom, axes.n.
    Packing(Writer& w, const ProductAxes& axes, std::vector<Residue> r, std::vector<int> positions, std::size_t phase, bool pack)
        : w_(w),
          g_(w.g),
          v_(w.prim(w.g.anchor)),
          axes_(axes),
          r_(std::move(r)),
          position_(std::move(positions)),
          phase_(phase),
          pack_(pack) {}

    void name_nodes() {
        w_.family = v_.window.transposed ? "transposed convolution" : "convolution";
        for (const int m : g_.members) {
            const std::string& from = w_.prim(m).from;
            if (std::find(nodes_.begin(), nodes_.end(), from) == nodes_.end()) nodes_.push_back(from);
        }
    }

    // Ties to even, before a conversion that takes them away from zero (dense.cpp).
    std::string rounding() const { return v_.tf32 && v_.even ? "    x_up = x * 8192.0 + x\n    x = x_up - (x_up - x)\n" : ""; }

    bool suits();

    // An input of the graph that was given zeros around it for this convolution (operators_products.cpp): packing does that as well, and
    // what stored the zeros is not needed.
    const Window* unpadded();

    const Axis& last() const { return axis_.back(); }
    // Of the packed input: rows that a window can reach.
    std::int64_t height(std::size_t d) const;
    // Places in a row that blocks cover: with lines of several remainders, as many as the longest has.
    std::int64_t places() const { return lines_ == 1 ? last().out : blocks_of(g_.size.at(position_.back()), lines_); }
    std::size_t rows() const { return axis_.size() - 1; }  // how many dimensions are before the last

    // Rows of lines of up to 32 places: a chunk has several of them, each of so many places; 0: rows are longer, or do not lie as a tile of
    // the input.
    std::int64_t short_row() const;
    std::int64_t rows_of_chunk() const { return fold_ == 0 ? 1 : kPositions / fold_; }

    void choose();

    void take_step(std::int64_t step);

    // Results that go through shared memory together on their way out, of rows that lie as one run; none where the ring leaves no room.
    void stage_output();
    std::int64_t staged_row() const { return own_ * kPositions + (lines_ == 2 ? 2 : kStagedPad); }  // its places, of `lines_` results each

    static Argument high_of(const Scratch& s);

    // z = the image and the group; rows; the padded row; channels. Part 1 is what rounding left, as tf32: it reads part 0 back.
    void pack_input(std::size_t part);

    // The taps before the last dimension (and in it, where they lie apart); results; the dimension that is summed.
    void pack_weights(std::size_t part);

    // The dimension of the window that the last axis is: trailing dimensions without a window are part of it.
    std::size_t last_window() const;

    // The flat positions become rows and places in a row: blocks have whole rows, stores end with a row.
    void split_positions();

    // The tile has positions, then results: tensors are seen in this order too. Staged, it is the other way round.
    void turn_places();

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    const ProductAxes& axes_;
    std::vector<Residue> r_;
    std::vector<int> position_;  // atoms of the result's positions, one for each axis
    std::size_t phase_;
    bool pack_;
    std::vector<Axis> axis_;
    int source_ = -1;  // the input without the zeros around it
    std::vector<std::string> nodes_;
    Scratch packed_[2], weights_[2];
    std::size_t parts_ = 1;  // two: f32 numbers as two of tf32, three of their four products
    std::int64_t batch_ = 1, groups_ = 1, channels_ = 1, results_ = 1;
    std::int64_t lanes_ = 4, width_ = 1, depth_ = 1, step_ = 32, columns_ = 8, own_ = 1, across_ = 1, down_ = 1, stages_ = 4;
    std::int64_t fold_ = 0;      // places of a short row, several of which make a chunk; 0: chunks are parts of a row
    std::int64_t staged_ = 0;    // results of a consumer that are stored through shared memory at a time; 0: from registers
    std::string suffix_;         // of names, where a kernel has several phases
    std::int64_t lines_ = 1;     // remainders of the last dimension whose results are stored together, as lines of the output
    std::int64_t together_ = 1;  // those of them that have taps
    bool apart_ = false;         // the last dimension's taps do not lie side by side
};

}  // namespace tw::graph
