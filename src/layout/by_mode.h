// Internal to layout/: walking a layout and a tiler side by side.
#pragma once

#include <fmt/format.h>

#include "layout/algebra.h"

namespace tw::layout {

// Pre: the tiler holds a tuple. Error if it has more modes than the layout.
inline Result<const std::vector<Tiler>*> tiler_modes(const Layout& a, const Tiler& tiler, const char* operation) {
    const auto& parts = std::get<std::vector<Tiler>>(tiler.what);
    if (static_cast<int>(parts.size()) > a.rank())
        return fail(fmt::format("{}: the tiler {} has {} modes, the layout {} has {}", operation, to_string(tiler), parts.size(),
                                to_string(a), a.rank()));
    return &parts;
}

// Applies `each` to the modes that the tiler names; Keep and the modes past the tiler stay. Errors name the mode.
template <class Each>
Result<Layout> apply_by_mode(const Layout& a, const Tiler& tiler, const char* operation, const Each& each) {
    if (std::holds_alternative<Tiler::Keep>(tiler.what)) return a;
    if (const Layout* layout = std::get_if<Layout>(&tiler.what)) return each(a, *layout);
    TW_LAYOUT_TRY(parts, tiler_modes(a, tiler, operation));
    std::vector<Layout> modes;
    for (int i = 0; i < a.rank(); ++i) {
        if (i >= static_cast<int>(parts->size())) {
            modes.push_back(a[i]);
            continue;
        }
        auto mode = apply_by_mode(a[i], (*parts)[i], operation, each);
        if (!mode) return fail(fmt::format("in mode {}: {}", i, mode.error().message));
        modes.push_back(std::move(*mode));
    }
    return make_layout(modes);
}

}  // namespace tw::layout
