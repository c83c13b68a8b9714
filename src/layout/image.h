// Exact questions about the offsets a layout produces: are they all different, do they fill a range, do two layouts meet?
//
// A race or an overlap is exactly such a question, so an approximate answer is worth nothing here. Each answer says how it
// was found, and carries a witness where there is one. Nearly all are algebra: "two coordinates with the same offset" is an
// integer equation  x0*d0 + x1*d1 + .. = t  with bounded x, which a depth-first search from the largest stride decides at
// once when strides are nested (each x has one candidate), and in a few steps for the rest, whatever the size of the layout.
// Swizzles are permutations and drop out, or are compared as matrices over GF(2). What is left is enumerated, up to a
// stated limit; past it the answer is an explicit `too_large`, never a guess.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "layout/linear_map.h"
#include "layout/swizzle.h"

namespace tw::layout {

enum class Verdict { yes, no, too_large };
const char* to_string(Verdict verdict);

struct ImageAnswer {
    Verdict verdict = Verdict::too_large;
    std::string how;  // the argument used, e.g. "nested strides", "GF(2) rank", "enumeration"
    // Two coordinates (integers in the domains the question names) that prove the verdict, where two can.
    std::optional<std::pair<std::int64_t, std::int64_t>> witness;
};

struct ImageLimits {
    std::int64_t search_steps = std::int64_t{1} << 20;  // of the bounded-sum search
    std::int64_t enumeration = std::int64_t{1} << 22;   // offsets listed
};

// Do different coordinates have different offsets? The witness of `no`: two coordinates with the same offset.
ImageAnswer is_injective(const ComposedLayout& layout, const ImageLimits& limits = {});
// Is every offset in 0 .. n-1 produced by exactly one coordinate, and no other offset?
ImageAnswer is_bijective_onto(const ComposedLayout& layout, std::int64_t n, const ImageLimits& limits = {});
// Do a and b have no offset in common? The witness of `no`: a coordinate of a and one of b with the same offset.
ImageAnswer are_disjoint(const ComposedLayout& a, const ComposedLayout& b, const ImageLimits& limits = {});
// Are they the same function of an integer coordinate? The witness of `no`: a coordinate (twice) where they differ, unless
// their sizes do.
ImageAnswer equal_functions(const ComposedLayout& a, const ComposedLayout& b, const ImageLimits& limits = {});
// Is `offset` produced? The witness of `yes`: the coordinate (twice).
ImageAnswer contains(const ComposedLayout& layout, std::int64_t offset, const ImageLimits& limits = {});

}  // namespace tw::layout
