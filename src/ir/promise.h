// Promises on the contents of index tensors: preconditions of a launch, in words.
//
//   range=(a, b)      a <= t[...] < b for every element
//   sorted=True       t is non-decreasing along its last dimension
//   distinct=True     along its last dimension, no two elements of t that are not negative are equal (negative: no place)
//   offsets_of="g"    t[e] is the number of p with g[p] < e, and g is sorted: the rows of group e are t[e] .. t[e + 1]
//   tile_ends=("first", width, "g")   the rows first[i] .. min(t[i], first[i] + width) of all i are the rows of g, each once, and all
//                     rows of one i have one g: a table of tiles; spare ones are empty
//   inverse_of="d"    t[d[p]] == p and d[t[i]] == i: both are permutations
#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tw::ir {

inline bool has_promise(const Tensor& t) {
    return t.content_range || t.content_sorted || t.content_distinct || t.offsets_of >= 0 || t.inverse_of >= 0 || t.tile_ends;
}

// One sentence per promise, in the order of the tensors; what another promise says already is not repeated.
std::vector<std::string> promises(const std::vector<Tensor>& tensors, const ExprNames& names);

}  // namespace tw::ir
