// The algebra: composition, complement and inverse, and the divides and products that are made of them.
//
// Two operations carry everything else. *Composition* A o B reads B's offsets as A's coordinates: it reorders, restricts
// and reshapes A. *Complement* finds what a layout leaves out: the offsets at which to put copies of it so that together
// they fill a range. Dividing A by a tile B is composing A with (B, complement of B): the first mode walks inside a tile,
// the second from tile to tile. Repeating A over B is (A, complement of A o B). An inverse is a complement with an order.
//
//      A = 24:1, tile B = 4:2 (every other element)
//      complement(B, 24) = (2,3):(1,8)           where tiles start: 0 1 8 9 16 17
//      logical_divide(A, B) = (4,(2,3)):(2,(1,8))
//          mode 0, inside a tile: 0 2 4 6        mode 1, from tile to tile: 0 1 8 9 16 17
//
// Past the end. CuTe lets the last mode of A run on when B reaches further than A's size, so that a tile may stick out of a
// tensor (the overhang is masked elsewhere). We do the same, precisely: for an index >= size(A), A is evaluated as its
// coalesced form with the last mode unbounded. `A^` below is A with this extension; A^(i) == A(i) for i < size(A).
//
// What does not exist is refused. A o B is a function always, but a layout only if the strides and extents divide, and if B's
// modes do not carry into each other inside A: (4,4):(1,100) o (4,2):(1,2) sends (3,1) to A(5) = 101, but a layout that
// sends (3,0) to 3 and (0,1) to 2 has 5 there. CuTe leaves that to the caller; here it is an error that names the modes.
#pragma once

#include <variant>
#include <vector>

#include "layout/layout.h"

namespace tw::layout {

// What to apply to a layout, mode by mode: one Layout for the whole, a tuple of tilers for the leading modes, or nothing
// (`_`). In text: `(4,8):(1,4)` is one layout for the whole; `(4,8)` and `(4:1,8:1)` tile mode 0 by 4 and mode 1 by 8.
struct Tiler {
    struct Keep {};
    std::variant<Keep, Layout, std::vector<Tiler>> what;

    Tiler() = default;
    Tiler(Layout layout) : what(std::move(layout)) {}
    Tiler(std::vector<Tiler> by_mode) : what(std::move(by_mode)) {}
    // An integer n is the layout n:1, `_` is Keep, a tuple goes by mode. Error: an extent below 1.
    static Result<Tiler> from_shape(IntTupleView shape);
};
std::string to_string(const Tiler& tiler);

// A^ evaluated at any index >= 0; an error only if the offset does not fit.
Result<std::int64_t> evaluate_extended(const Layout& a, std::int64_t index);

// A o B. Post: R(i) == A^(B(i)) for all i < size(B); size(R) == size(B); each leaf of B became a leaf or a flat tuple, so
// every coordinate of B is one of R.
// Exact: an error says that no such layout exists (or that it does not fit in 64 bits, or that deciding it means listing
// more than 2^16 offsets).
Result<Layout> composition(const Layout& a, const Layout& b);
// By mode. Post: R[i] == composition(A[i], tiler[i]); modes past the tiler are kept.
Result<Layout> composition(const Layout& a, const Tiler& tiler);

// Where copies of A go so that they fill 0 .. max-1 without touching each other.
// Post: R is coalesced, strictly increasing, R(0) == 0; A(i) + R(j) are all different (stride-0 modes of A counted once);
// if each sorted stride of A is a multiple of what lies below it, they are all of 0 .. cosize((A,R))-1, and that is at least
// max-1. Otherwise gaps smaller than a copy stay open, as in CuTe.
// Error: negative strides, or modes of A that interleave or overlap.
Result<Layout> complement(const Layout& a, std::int64_t max = 1);

// The longest R this greedy finds with L(R(i)) == i for all i < size(R); at least 1:0. Coalesced. If L is a bijection onto
// 0 .. size-1, size(R) == size(L) and R(L(i)) == i too.
Result<Layout> right_inverse(const Layout& layout);
// Post: R(L(i)) == i for all i < size(L). Error if L is not injective, or if no layout undoes it (strides that do not divide).
// Where L's sorted strides tile evenly, R is itself injective on 0 .. cosize(L)-1; otherwise gaps repeat neighbours.
Result<Layout> left_inverse(const Layout& layout);

// The vector that two tensors with the same coordinates share. Post: a(R(i)) == b(R(i)) == i for all i < size(R). R is a
// prefix of right_inverse(b); its size is what one vectorised copy can move.
Result<Layout> max_common_layout(const Layout& a, const Layout& b);
Result<std::int64_t> max_common_vector(const Layout& a, const Layout& b);

// ---- divides: split a layout into tiles ---------------------------------------------------------------------------------
// With tile B and A: mode 0 is inside a tile, mode 1 from tile to tile. By-mode tilers (B0,B1) give, from ((b0,r0),(b1,r1)):
//      logical_divide  ((b0,r0),(b1,r1))       zipped_divide  ((b0,b1),(r0,r1))
//      tiled_divide    ((b0,b1),r0,r1)         flat_divide    (b0,b1,r0,r1)
// Modes of A past the tiler count as r's. size(R) == size(A) rounded up to whole tiles.

// Post: R == composition(A, (B, complement(B, size(A)))): R's mode 0 is A o B.
Result<Layout> logical_divide(const Layout& a, const Tiler& tiler);
Result<Layout> zipped_divide(const Layout& a, const Tiler& tiler);
Result<Layout> tiled_divide(const Layout& a, const Tiler& tiler);
Result<Layout> flat_divide(const Layout& a, const Tiler& tiler);

// ---- products: repeat a layout ------------------------------------------------------------------------------------------
// Same four groupings: mode 0 is the block A, mode 1 says where its copies are.

// Post: R == (A, complement(A, size(A)*cosize(B)) o B): R's mode 0 is A; R(i, j) == A(i) + R(0, j); the copies are disjoint
// where A and B are injective.
Result<Layout> logical_product(const Layout& a, const Tiler& tiler);
Result<Layout> zipped_product(const Layout& a, const Tiler& tiler);
Result<Layout> tiled_product(const Layout& a, const Tiler& tiler);
Result<Layout> flat_product(const Layout& a, const Tiler& tiler);

// Rank-wise products: A is a block of a grid. With R = max rank, result mode i is (block i, tile i) for blocked (each block
// contiguous in the result's coordinates) and (tile i, block i) for raked (blocks interleaved, "cyclic").
// Post: blocked(((b0,t0),(b1,t1),..)) == raked(((t0,b0),(t1,b1),..)) == logical_product(A,B)((b0,b1,..),(t0,t1,..)).
Result<Layout> blocked_product(const Layout& block, const Layout& tiler);
Result<Layout> raked_product(const Layout& block, const Layout& tiler);

// Repeats `block` to cover `shape`, copies laid out in `order` (see make_ordered_layout). Post: rank(R) == rank(shape);
// size of mode i is shape[i] rounded up to whole blocks; for c inside the first block R(c) == block(c).
Result<Layout> tile_to_shape(const Layout& block, IntTupleView shape, IntTupleView order);
Result<Layout> tile_to_shape(const Layout& block, IntTupleView shape);

}  // namespace tw::layout
