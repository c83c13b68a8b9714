// Distributions: which thread of a group holds which element of a register tile.
//
// A distribution is a mixed-radix map, the N-dimensional form of target::FragmentMap. The thread index (inside the group)
// and the value index (the register slot of one thread) are split into digits, least significant first; every digit adds
// a fixed step along ONE tile dimension, or none (dim = -1: all its values hold copies of the same element).
//
//   8 x 64 tile, 32 threads, 16 values a thread, rows split over 4 thread-groups of 8, 8 contiguous elements each:
//     thread digits  (8: dim 1 step 8) (4: dim 0 step 1)
//     value digits   (8: dim 1 step 1) (2: dim 0 step 4)
//     thread 9 = 1 + 8*1, value 10 = 2 + 8*1   ->   row 1 + 4, column 8 + 2
//
// Every fragment of mma.sync and wgmma, every vectorised load and every reduction result is one of these. Reducing along a
// dimension turns its thread digits into copies and removes its value digits (`sliced`), so a row statistic can be spread
// over the tile it came from with no data movement: that is what `x - m[:, None]` means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "target/fragment.h"

namespace tw::ir {

struct DistDigit {
    int extent = 1;  // radix
    int dim = -1;    // tile dimension, or -1: a copy
    int step = 0;    // elements along that dimension per unit
    friend bool operator==(const DistDigit&, const DistDigit&) = default;
};

struct Distribution {
    std::vector<int> shape;         // the tile's extents
    std::vector<DistDigit> thread;  // least significant first; product of extents = threads of the group
    std::vector<DistDigit> value;   // least significant first; product of extents = elements per thread

    int threads() const;
    int values() const;
    int elements() const;  // product of the shape
    // Pre: 0 <= t < threads(), 0 <= v < values(). Post: 0 <= result[d] < shape[d] when covers_exactly() holds.
    std::vector<int> at(int t, int v) const;
    // All (thread, value) pairs that hold the element, in increasing order; several where threads hold copies.
    std::vector<std::pair<int, int>> owners(const std::vector<int>& coordinate) const;
    friend bool operator==(const Distribution&, const Distribution&) = default;
};

// Digits with extent 1 removed, neighbouring digits that continue one another merged: equal functions of the same shape
// built from power-of-two digits have equal normal forms.
Distribution normalized(const Distribution& d);
// Equality as functions (thread, value) -> coordinate.
bool same_map(const Distribution& a, const Distribution& b);
// Every element is held, and no thread holds an element twice in different value slots. (Copies in other threads are fine.)
bool covers_exactly(const Distribution& d);

// The distribution of a reduction along `dim` (dimension removed) where the result is known to every thread that took part.
Distribution sliced(const Distribution& d, int dim);
// The distribution of a window of `extent` elements along `dim` that starts at a multiple of `extent`: which windows there are is
// chosen by value digits alone. Nothing when a thread digit or a straddling digit decides it (then elements would move).
std::optional<Distribution> windowed(const Distribution& d, int dim, int extent);
// A matrix fragment, in which four neighbouring lanes hold a pair each of every run of eight 16-bit elements along the last dimension,
// after these lanes have exchanged: each holds every fourth run whole, in the order of the values. Nothing when d is no such fragment.
std::optional<Distribution> gathered_by_quads(const Distribution& d);
// Dimensions permuted: result dimension i is old dimension perm[i].
Distribution permuted(const Distribution& d, const std::vector<int>& perm);

// The default for loads and stores: the innermost dimension in runs of `vector` elements across threads, then the outer
// dimensions, then repeats. Nothing when shape and threads do not divide (the caller says so to the user).
// Copies appear when there are more threads than vectors.
std::optional<Distribution> blocked(const std::vector<int>& shape, int threads, int vector);

// A hardware fragment repeated over a tile. `map` covers rows x cols; the group consists of warps_m x warps_n copies of
// the map's threads (first m); remaining repeats become value digits, columns (n) first and then rows.
Distribution tiled_fragment(const target::FragmentMap& map, int rows, int cols, int warps_m, int warps_n);

std::string to_string(const Distribution& d);

}  // namespace tw::ir
