// Layouts as matrices over GF(2).
//
// Write a coordinate and an offset as columns of bits. If every extent is a power of two and no two coordinate bits touch
// the same offset bit, adding strides never carries, so it is XOR; a swizzle is XOR anyway. Then the whole map is a matrix
// over the field with two elements, and questions about swizzles become linear algebra: equal functions are equal
// matrices, injective is full column rank, the conflict degree of a warp is a difference of ranks.
//
//      (4,8):(8,1) then Sw<2,0,3>, 5 coordinate bits -> 5 offset bits; column j is the image of coordinate bit j:
//
//              m0 m1 n0 n1 n2
//      bit 0    1  .  1  .  .      offset bit 0 = n0 ^ m0      (the swizzle put m0 there)
//      bit 1    .  1  .  1  .      offset bit 1 = n1 ^ m1
//      bit 2    .  .  .  .  1
//      bit 3    1  .  .  .  .
//      bit 4    .  1  .  .  .
//
// A matrix is kept as its columns, one 64-bit word each: applying it is a handful of XORs. What it cannot say: extents that
// are no powers of two, and strides that carry, e.g. (2,2):(1,1). The conversion refuses those and says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layout/swizzle.h"

namespace tw::layout {

class LinearMap {
public:
    LinearMap() = default;
    // Pre-condition: at most 63 columns, each below 2^out_bits, out_bits <= 63.
    LinearMap(std::vector<std::uint64_t> columns, int out_bits);
    static LinearMap identity(int bits);
    // in_bits and out_bits all zero matrix.
    static LinearMap zero(int in_bits, int out_bits);

    int in_bits() const { return static_cast<int>(columns_.size()); }
    int out_bits() const { return out_bits_; }
    std::uint64_t column(int in_bit) const { return columns_[in_bit]; }
    // Bit j of the result: does input bit j reach output bit i?
    std::uint64_t row(int out_bit) const;

    // Pre-condition: x < 2^in_bits.
    std::uint64_t operator()(std::uint64_t x) const;

    int rank() const;
    bool is_injective() const { return rank() == in_bits(); }
    // A basis of { x : M(x) == 0 }.
    std::vector<std::uint64_t> kernel() const;
    // Some x with M(x) == y, if there is one.
    std::optional<std::uint64_t> solve(std::uint64_t y) const;

    // Equal entries and sizes.
    bool operator==(const LinearMap&) const = default;
    // The same function, whatever out_bits says: missing rows count as zero.
    bool same_function(const LinearMap& other) const { return columns_ == other.columns_; }

    // Only rows [begin, end): the function (M(x) >> begin) mod 2^(end-begin).
    LinearMap rows(int begin, int end) const;
    LinearMap transpose() const;

private:
    std::vector<std::uint64_t> columns_;
    int out_bits_ = 0;
};

// Post: R(x) == a(b(x)). Error if b can produce more bits than a takes.
Result<LinearMap> compose(const LinearMap& a, const LinearMap& b);
// Post: compose(R, M) and compose(M, R) are the identity. Error: not square, or the rank is too low (the message has a vector
// of the kernel).
Result<LinearMap> invert(const LinearMap& map);
// x and y go in side by side (x in the low bits); the images are XORed. Post: R(x + (y << a.in_bits)) == a(x) ^ b(y).
Result<LinearMap> join(const LinearMap& a, const LinearMap& b);

// linear(x) ^ constant
struct AffineMap {
    LinearMap linear;
    std::uint64_t constant = 0;

    std::uint64_t operator()(std::uint64_t x) const { return linear(x) ^ constant; }
    std::uint64_t max_value() const;
    bool same_function(const AffineMap& o) const { return constant == o.constant && linear.same_function(o.linear); }
};

// Post: R(i) == layout(i) for all i < size(layout). Error: an extent that is no power of two, a negative stride, or two
// coordinate bits (or one and the offset) that meet in an offset bit, where addition would carry.
Result<AffineMap> affine_map(const ComposedLayout& layout);
// The swizzle as a square matrix on `bits` bits (0 <= bits <= 62), as far as it stays within them; error if it moves a bit
// below `bits` to above.
Result<LinearMap> swizzle_matrix(const Swizzle& swizzle, int bits);

// Rows of 1 and ., most significant output bit last, as in the table above.
std::string to_string(const LinearMap& map);

}  // namespace tw::layout
