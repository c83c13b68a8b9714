#include "target/layouts.h"

#include <bit>
#include <cassert>

namespace tw::target {

namespace {

// These layouts are made from our own tables, so a refusal would be our bug.
template <class R>
auto ours(R result) {
    assert(result.has_value());
    return std::move(*result);
}

layout::Layout digits_layout(const std::vector<FragmentDigit>& digits, int rows) {
    layout::FlatModes modes;
    for (const FragmentDigit& d : digits) modes.push_back({d.size, d.row_step + static_cast<std::int64_t>(d.col_step) * rows});
    return ours(layout::from_modes(modes));
}

layout::Layout two_modes(std::int64_t n0, std::int64_t d0, std::int64_t n1, std::int64_t d1) {
    layout::FlatModes modes;
    modes.push_back({n0, d0});
    modes.push_back({n1, d1});
    return ours(layout::from_modes(modes));
}

}  // namespace

layout::ThreadValueLayout thread_value_layout(const FragmentMap& map) {
    const layout::Layout tv =
        ours(layout::make_layout({digits_layout(map.thread_digits, map.rows), digits_layout(map.value_digits, map.rows)}));
    return ours(layout::ThreadValueLayout::make(tv, layout::tuple(map.rows, map.cols)));
}

layout::Swizzle byte_swizzle(SwizzleMode mode) { return ours(layout::Swizzle::make(swizzle_bits(mode), 4, 3)); }

layout::Swizzle element_swizzle(SwizzleMode mode, DType type) {
    const int shift = std::countr_zero(static_cast<unsigned>(bytes(type)));
    return ours(layout::Swizzle::make(swizzle_bits(mode), 4 - shift, 3));
}

layout::ComposedLayout tile_layout(const OperandTile& t) {
    assert(tile_legal(t));
    const int span = t.span_elements(), column = t.column_bytes() / bytes(t.type);
    const layout::Layout along = two_modes(span, 1, t.contiguous() / span, column);
    const layout::Layout across = two_modes(8, span, t.other() / 8, 8 * span);
    const layout::Layout both = ours(t.major == Major::K ? layout::make_layout({across, along}) : layout::make_layout({along, across}));
    return ours(layout::ComposedLayout::make(element_swizzle(t.swizzle, t.type), 0, both));
}

}  // namespace tw::target
