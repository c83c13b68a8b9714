// CuTe's spelling of shapes, strides and layouts. Internal to codegen/cute.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/ir.h"

namespace tw::codegen::cute {

std::string integer(int value);                      // _8, Int<1000>
std::string shape(const std::vector<int>& extents);  // Shape<_4, _1024>
std::string value(int value);                        // _8{}

// A list of extents and strides as one mode: "_32" and "_4", or "Shape<_4, _8>" and "Stride<_2, _1>"; nothing: "_1" and "_0".
struct Mode {
    std::string shape, stride;
};
Mode mode(const std::vector<std::pair<int, int>>& extents_and_strides);
std::string layout(const Mode& m);  // Layout<Shape<_4, _8>, Stride<_2, _1>>

// (thread, value) -> place in the tile, counted with the first dimension fastest, as CuTe counts the elements of a tiler.
std::string thread_value_layout(const ir::Distribution& d);

// Every value's place as a sum of the digits' multiples of one stride each; nothing when it is not one.
std::optional<std::vector<int>> strides_of(const std::vector<int>& table, const std::vector<int>& extents);
// The same with extents of its own choice, as one mode.
std::optional<Mode> layout_of(const std::vector<int>& table);

std::string element_type(ir::DType type);               // "bfloat16_t"; empty: has no text here
std::string word_type(int bytes);                       // the unsigned integer of so many bytes
std::string buffer_layout(const ir::SharedBuffer& b);   // its swizzle acts on addresses (TMA, wgmma)
std::string element_layout(const ir::SharedBuffer& b);  // its swizzle acts on elements. Pre: it has one

}  // namespace tw::codegen::cute
