// The tables of this folder as CuTe layouts, for the layout algebra. They are the same facts: fragment.h and descriptor.h
// define them, and nothing is written down twice here.
#pragma once

#include "layout/swizzle.h"
#include "layout/thread_value.h"
#include "target/descriptor.h"
#include "target/fragment.h"

namespace tw::target {

// (thread, value) -> row + col * rows. Post: tv.map()(t + threads * v) == at(t, v).row + at(t, v).col * rows.
layout::ThreadValueLayout thread_value_layout(const FragmentMap& map);

// Sw(B,4,3) on byte addresses.
layout::Swizzle byte_swizzle(SwizzleMode mode);
// The same on elements of `type`: Sw(B, 4 - log2 bytes, 3).
layout::Swizzle element_swizzle(SwizzleMode mode, DType type);

// (mn, k) -> element offset from the tile's base, swizzle included.
// Pre: tile_legal(tile). Post: R(mn + tile.mn * k) * bytes == tile_address(tile, 0, mn, k).
layout::ComposedLayout tile_layout(const OperandTile& tile);

}  // namespace tw::target
