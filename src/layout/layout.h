// Layouts: functions from coordinates to offsets that can be computed with.
//
// A GPU kernel is mostly a question of where things are: which element of a tile does register 3 of thread 17 hold, which
// byte of shared memory does TMA put it in, which bank is that. Each answer is a function from a small box of coordinates
// to integers. CuTe's observation is that nearly all of them can be written as a *shape* and a *stride* of the same nested
// form, and that these pairs are closed under the operations a kernel needs (composing, tiling, repeating, inverting). So
// the functions can be compared, printed and proved about, instead of being index arithmetic in the middle of a program.
//
// A layout `shape:stride` maps a coordinate to the inner product of coordinate and stride. A nested shape only says that
// one *mode* (dimension) is itself a small box, walked left to right, leftmost fastest ("colexicographic" order); an
// integer where a tuple is expected is unpacked in that order. So every layout has one domain with many names, and it is
// always also a function of one integer 0 .. size-1. Take A = (2,(2,2)):(4,(1,2)), a 2 x 4 tile whose columns come in
// pairs:
//
//      index i         0        1        2        3        4        5        6        7
//      2-D coord     (0,0)    (1,0)    (0,1)    (1,1)    (0,2)    (1,2)    (0,3)    (1,3)
//      full coord  (0,(0,0))(1,(0,0))(0,(1,0))(1,(1,0))(0,(0,1))(1,(0,1))(0,(1,1))(1,(1,1))
//      offset A        0        4        1        5        2        6        3        7
//
//      as a table:      column 0 1 2 3          A is the row-major 2 x 4 tile: coalescing mode 1, (2,2):(1,2) is 4:1,
//           row 0              0 1 2 3          so A is the same function as (2,4):(4,1).
//           row 1              4 5 6 7
//
// Why run-time values. CuTe does this with C++ types: an impossible composition is a page of template errors. Here a layout
// is a plain value, an impossible operation is a sentence that names the mode at fault, and composing two takes about a
// microsecond (bench/layout_bench.cpp). Why not only matrices over GF(2) (Triton's linear layouts): those need powers of two; a
// 3-stage ring or a 96-wide tile has none. We keep CuTe's integers and *convert* to matrices when XOR makes them necessary
// (linear_map.h).
//
// The files, in the order in which they build on each other:
//      int_tuple.h     nested tuples of integers
//      layout.h        Layout, evaluation, coordinates, and the operations that only rearrange modes
//      algebra.h       composition, complement, inverses; divides and products, which are made of those
//      swizzle.h       XOR swizzles and layouts after them; element width changes
//      thread_value.h  which thread holds which element
//      linear_map.h    layouts as matrices over GF(2)
//      image.h         exact questions about images: injective? onto? disjoint? equal?
//      banks.h         shared-memory bank conflicts of a warp's access
//      notation.h, expression.h, draw.h    text in and out, the expression language of `tilewright layout`, pictures
//
// Conventions, used in every post-condition: L(i) is the offset at integer coordinate i; size(L) the number of coordinates;
// "for all i" means 0 <= i < size. A mode is named by its path: in (4,(2,8)), mode 1.0 is the 2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "layout/int_tuple.h"

namespace tw::layout {

struct Mode {
    std::int64_t shape = 1;
    std::int64_t stride = 0;

    bool operator==(const Mode&) const = default;
};
using FlatModes = InlineVector<Mode, 8>;

class Layout {
public:
    // The layout 1:0.
    Layout() : shape_(1), stride_(0) {}

    // Post: shape and stride are congruent, every extent is >= 1, and size and span are below kMaxExtent. Anything else is
    // an error that names the mode.
    static Result<Layout> make(IntTuple shape, IntTuple stride);
    // n:d, or an error under the same conditions.
    static Result<Layout> make_mode(std::int64_t n, std::int64_t d) { return make(IntTuple(n), IntTuple(d)); }

    const IntTuple& shape() const { return shape_; }
    const IntTuple& stride() const { return stride_; }
    int rank() const { return shape_.rank(); }
    int depth() const { return shape_.depth(); }

    // The number of coordinates.
    std::int64_t size() const { return size_; }
    // The smallest and largest offset; min_offset() < 0 only with negative strides.
    std::int64_t min_offset() const { return min_offset_; }
    std::int64_t max_offset() const { return max_offset_; }
    // The number of integers from the smallest to the largest offset: with strides >= 0, one more than the largest.
    std::int64_t cosize() const { return max_offset_ - min_offset_ + 1; }

    // Pre-condition: 0 <= index < size().
    std::int64_t operator()(std::int64_t index) const;
    // `coordinate` may be an integer, a tuple congruent to the shape, or anything between. Out of range or of the wrong
    // form is an error.
    Result<std::int64_t> at(IntTupleView coordinate) const;

    // Mode i as a layout. Pre-condition: 0 <= i < rank().
    Layout operator[](int i) const;

    // The leaves, left to right.
    FlatModes modes() const;

    // Equal as written: the same tree and numbers. For "the same function" see equal_functions() in image.h.
    bool operator==(const Layout& other) const { return shape_ == other.shape_ && stride_ == other.stride_; }

private:
    IntTuple shape_;
    IntTuple stride_;
    std::int64_t size_ = 1;
    std::int64_t min_offset_ = 0;
    std::int64_t max_offset_ = 0;
};

// ---- making layouts ----------------------------------------------------------------------------------------------------

// One mode per given layout. Post: rank == layouts.size(), result[i] == layouts[i].
Result<Layout> make_layout(std::span<const Layout> layouts);
inline Result<Layout> make_layout(std::initializer_list<Layout> layouts) {
    return make_layout(std::span<const Layout>(layouts.begin(), layouts.size()));
}
// Leaves only: no mode is 1:0, one is a leaf, several a flat tuple.
Result<Layout> from_modes(const FlatModes& modes);
// Compact, leftmost mode fastest. Post: R(i) == i for all i; shape(R) == shape.
Result<Layout> col_major(IntTuple shape);
// Compact, rightmost *leaf* fastest.
Result<Layout> row_major(IntTuple shape);
// Compact, modes laid out in ascending `order` (a tuple weakly congruent to the shape: one number may stand for a whole
// subtree, whose leaves are then leftmost fastest; ties too). order (0,1,..) is col_major, (..,1,0) is row-major.
// Post: R is a bijection onto 0 .. size-1, and leaf a has a smaller stride than leaf b if its order is smaller (extents > 1).
Result<Layout> make_ordered_layout(IntTuple shape, IntTupleView order);

// ---- coordinates -------------------------------------------------------------------------------------------------------

// Layout::make(shape, stride).at(coordinate) without building the layout. Same errors.
Result<std::int64_t> crd2idx(IntTupleView coordinate, IntTupleView shape, IntTupleView stride);
// Post: congruent to shape, and crd2idx(result, shape, prefix products) == index. Error unless 0 <= index < size.
Result<IntTuple> idx2crd(std::int64_t index, IntTupleView shape);
// Post: leaf by leaf (offset / stride) % shape: for a compact layout, the coordinate that has this offset. A stride of 0
// gives coordinate 0. Error for negative offsets or strides.
Result<IntTuple> idx2crd(std::int64_t offset, IntTupleView shape, IntTupleView stride);

// ---- rearranging modes: each of these keeps the function, or states how it changes -------------------------------------

// Fewest modes, same function of an integer. Post: R(i) == L(i) for all i; depth <= 1; no leaf of extent 1 unless R is 1:0;
// no two neighbours that could be one. So two layouts are the same function exactly if their coalesced forms are equal.
Layout coalesce(const Layout& layout);
// Coalesces each mode of the profile by itself. Post: R(c) == L(c) for every coordinate c of `profile`'s rank; modes past the
// profile are kept. A leaf in the profile coalesces that whole mode.
Result<Layout> coalesce(const Layout& layout, IntTupleView profile);

// Every mode with stride 0 gets extent 1. Post: the same set of offsets, same profile, size(R) <= size(L).
Layout filter_zeros(const Layout& layout);
// coalesce(filter_zeros(L)). Post: the same set of offsets; no stride 0 unless R is 1:0.
Layout filter(const Layout& layout);
Result<Layout> filter(const Layout& layout, IntTupleView profile);

// Post: depth <= 1, R(i) == L(i), every leaf kept.
Layout flatten(const Layout& layout);
// Modes [begin, end) become one mode. Post: R(i) == L(i), rank(R) == rank(L) - (end - begin) + 1.
Result<Layout> group(const Layout& layout, int begin, int end);
// Post: R[k] == L[which[k]].
Result<Layout> select(const Layout& layout, std::span<const int> which);
// Post: R is modes [begin, end) of L.
Result<Layout> take(const Layout& layout, int begin, int end);
// Adds `mode` as the last / first mode.
Result<Layout> append(const Layout& layout, const Layout& mode);
Result<Layout> prepend(const Layout& layout, const Layout& mode);
// Adds modes 1:0 at the end until rank(R) == max(rank, rank(L)).
Layout append_to_rank(const Layout& layout, int rank);
// A leaf becomes a tuple of one mode; a tuple stays.
Layout wrap(const Layout& layout);

struct Slice {
    Layout layout;            // the modes marked `_`, in order
    std::int64_t offset = 0;  // the others, evaluated
};
// Keeps what the coordinate marks `_`, fixes the rest.
// Post: L(c with _ replaced by d) == offset + layout(d).
Result<Slice> slice(const Layout& layout, IntTupleView coordinate);

// ---- from a table back to a layout -------------------------------------------------------------------------------------

// The coalesced layout with R(i) == offsets[i] for all i, if there is one; otherwise an error that names the first entry
// that no layout could have. Needs offsets[0] == 0 and at least one entry. Exact: an error means that none exists.
Result<Layout> layout_from_table(std::span<const std::int64_t> offsets);

// ---- text --------------------------------------------------------------------------------------------------------------

// `(4,(2,8)):(16,(1,2))`
std::string to_string(const Layout& layout);
// The path and value of leaf number `leaf`, for messages: "mode 1.0 (2:1)".
std::string describe_leaf(const Layout& layout, int leaf);

}  // namespace tw::layout
