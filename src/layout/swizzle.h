// Swizzles, and layouts after them.
//
// Shared memory has 32 banks of 4 bytes; a warp that walks down a column of a row-major tile hits one bank 32 times. A
// swizzle moves each row's elements by XORing some address bits with higher ones (the row number), so that rows *and* columns
// meet different banks. Swizzle(B,M,S) takes the B bits "yyy" at M+S and XORs them onto the B bits "zzz" at M; the M lowest
// bits (the vector that must stay together) never move:
//
//      offset bits, Swizzle(3,4,3):     ... y y y | z z z | k k k k         zzz' = zzz ^ yyy
//
// With S < 0 the arrows turn: yyy at M, zzz at M-S. It is its own inverse, because yyy is not changed; hence a permutation
// of every range 0 .. 2^n that contains both fields. TMA's 128-, 64- and 32-byte modes are Swizzle(3,4,3), (2,4,3), (1,4,3)
// on byte addresses. A swizzle is not linear over the integers, so it cannot be folded into strides: it stays outside,
// as in `Sw<3,4,3> o 0 o (8,64):(64,1)`: coordinates -> layout -> plus offset -> swizzle. It *is* linear over GF(2): see
// linear_map.h, and image.h for exact questions.
#pragma once

#include "layout/algebra.h"

namespace tw::layout {

class Swizzle {
public:
    // The identity.
    Swizzle() = default;
    // Error unless B >= 0, M >= 0, |S| >= B (the fields must not overlap) and B + M + |S| <= 60.
    static Result<Swizzle> make(int bits, int base, int shift);

    int bits() const { return bits_; }
    int base() const { return base_; }
    int shift() const { return shift_; }
    bool is_identity() const { return bits_ == 0; }

    // Post: s(s(x)) == x; s(x) differs from x only in the zzz field. Pre-condition: x >= 0.
    std::int64_t operator()(std::int64_t offset) const {
        assert(offset >= 0);
        const std::int64_t y = offset & yyy_mask();
        return offset ^ (shift_ >= 0 ? y >> shift_ : y << -shift_);
    }
    std::int64_t yyy_mask() const { return field() << (base_ + (shift_ > 0 ? shift_ : 0)); }
    std::int64_t zzz_mask() const { return field() << (base_ + (shift_ < 0 ? -shift_ : 0)); }

    // Equal as functions: all identities are equal.
    bool operator==(const Swizzle& o) const { return bits_ == o.bits_ && (bits_ == 0 || (base_ == o.base_ && shift_ == o.shift_)); }

private:
    std::int64_t field() const { return (std::int64_t{1} << bits_) - 1; }

    int bits_ = 0;
    int base_ = 0;
    int shift_ = 0;
};

// R(c) = swizzle(offset + layout(c)). A plain Layout is one with the identity and offset 0.
class ComposedLayout {
public:
    ComposedLayout() = default;
    ComposedLayout(Layout layout) : layout_(std::move(layout)) {}
    // Error if offset + layout can be negative or reach 2^61.
    static Result<ComposedLayout> make(Swizzle swizzle, std::int64_t offset, Layout layout);

    const Swizzle& swizzle() const { return swizzle_; }
    std::int64_t offset() const { return offset_; }
    const Layout& layout() const { return layout_; }
    bool is_plain() const { return swizzle_.is_identity() && offset_ == 0; }

    std::int64_t size() const { return layout_.size(); }
    int rank() const { return layout_.rank(); }
    // Pre-condition: 0 <= index < size().
    std::int64_t operator()(std::int64_t index) const { return transform(offset_ + layout_(index)); }
    Result<std::int64_t> at(IntTupleView coordinate) const;

    // Equal as written; for functions see image.h.
    bool operator==(const ComposedLayout& o) const { return swizzle_ == o.swizzle_ && offset_ == o.offset_ && layout_ == o.layout_; }

private:
    std::int64_t transform(std::int64_t x) const { return swizzle_.is_identity() ? x : swizzle_(x); }

    Swizzle swizzle_;
    std::int64_t offset_ = 0;
    Layout layout_;
};

std::string to_string(const Swizzle& swizzle);        // Sw<3,4,3>
std::string to_string(const ComposedLayout& layout);  // Sw<3,4,3> o 0 o (8,64):(64,1); plain layouts print plainly

// Rearranging coordinates never touches what happens after the inner layout, so composition, divides, coalesce, group and
// their kin act on it alone: op(Sw o k o L, ...) == Sw o k o op(L, ...). Post: as op's, with every offset x replaced by
// swizzle(k + x).
template <class Operation>
Result<ComposedLayout> on_inner(const ComposedLayout& a, const Operation& operation) {
    TW_LAYOUT_TRY(inner, operation(a.layout()));
    return ComposedLayout::make(a.swizzle(), a.offset(), std::move(inner));
}
Result<ComposedLayout> composition(const ComposedLayout& a, const Tiler& tiler);
// Sw o (Sw' o k o L) is kept only where one swizzle is enough: either is the identity, or both are equal and cancel.
Result<ComposedLayout> composition(const Swizzle& swizzle, const ComposedLayout& a);

// One more than the largest offset. Exact; an error if that needs listing more than 2^22 offsets.
Result<std::int64_t> cosize(const ComposedLayout& a);

// Post: L(R(i)) == i for all i < size(R). Plain layouts: right_inverse of the layout. Behind a swizzle: needs offset 0, and the
// swizzle moved through the inverse must be a swizzle again (decided over GF(2)); otherwise an error.
Result<ComposedLayout> right_inverse(const ComposedLayout& a);

// ---- element width ------------------------------------------------------------------------------------------------------

// `n` old elements become one wider element. A leaf of stride d < n (d must divide n) loses a factor n/d of its extent; a
// leaf of stride d >= n needs n | d.
// Post: for every coordinate c of L, floor(L(c) / n) == R(c') where c' divides the coordinate of each leaf with 0 < d < n by
// n/d. Errors name the leaf that does not divide, or that carries into the next element.
Result<Layout> upcast(const Layout& layout, std::int64_t n);
// Each element becomes `n` narrower ones, in the leaf of stride 1 (there must be exactly one such leaf of extent > 1, or, if
// none, a leaf 1:1). Post: R(c with that leaf's coordinate n*x + k) == n * L(c with x) + k for 0 <= k < n.
Result<Layout> downcast(const Layout& layout, std::int64_t n);
// From elements of `old_bits` to elements of `new_bits`: up by new/old, down by old/new, both if neither divides.
Result<Layout> recast(const Layout& layout, std::int64_t old_bits, std::int64_t new_bits);

// Through a swizzle, where the vector below bit M is wide enough to hold the new element: M moves by log2 n. Same
// post-conditions. Error if n is no power of two, if the swizzle would permute inside a wide element, or n does not divide
// the offset.
Result<ComposedLayout> upcast(const ComposedLayout& layout, std::int64_t n);
Result<ComposedLayout> downcast(const ComposedLayout& layout, std::int64_t n);
Result<ComposedLayout> recast(const ComposedLayout& layout, std::int64_t old_bits, std::int64_t new_bits);

}  // namespace tw::layout
