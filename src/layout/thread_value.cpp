#include "layout/thread_value.h"

#include <fmt/format.h>

#include "layout/image.h"

namespace tw::layout {

Result<ThreadValueLayout> ThreadValueLayout::make(Layout map, IntTuple tile) {
    if (map.shape().is_leaf() || map.rank() != 2)
        return fail(fmt::format("a thread-value layout has two modes, (threads, values); {} has {}", to_string(map), map.rank()));
    TW_LAYOUT_TRY(elements, col_major(tile));
    if (map.min_offset() < 0 || map.max_offset() >= elements.size())
        return fail(fmt::format("thread-value layout {} reaches element {} of a tile {} with {} elements", to_string(map), map.max_offset(),
                                to_string(tile), elements.size()));
    return ThreadValueLayout(std::move(map), std::move(tile));
}

Result<ThreadValueLayout> make_thread_value(const Layout& threads, const Layout& values) {
    for (const auto& [layout, name] : {std::pair{&threads, "thread"}, std::pair{&values, "value"}}) {
        const ImageAnswer onto = is_bijective_onto(*layout, layout->size());
        if (onto.verdict != Verdict::yes)
            return fail(
                fmt::format("the {} layout {} does not number 0 .. {}: {}", name, to_string(*layout), layout->size() - 1, onto.how));
    }
    // Raked over the value block, the thread layout says for each tile coordinate which thread + threads*value has it.
    TW_LAYOUT_TRY(owner, raked_product(threads, values));
    TW_LAYOUT_TRY(inverse, right_inverse(owner));
    TW_LAYOUT_TRY(grid, col_major(tuple(threads.size(), values.size())));
    TW_LAYOUT_TRY(map, composition(inverse, grid));
    TW_LAYOUT_TRY(tile, product_each(owner.shape()));
    return ThreadValueLayout::make(std::move(map), std::move(tile));
}

Result<Layout> owner_layout(const ThreadValueLayout& tv) { return left_inverse(tv.map()); }

Result<std::vector<std::vector<Owner>>> owners_of(const ThreadValueLayout& tv) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 20;
    TW_LAYOUT_TRY(elements, product(tv.tile()));
    if (elements > kLimit || tv.map().size() > kLimit) return fail(fmt::format("{} has too many elements to list", to_string(tv)));
    std::vector<std::vector<Owner>> owners(static_cast<std::size_t>(elements));
    for (std::int64_t i = 0; i < tv.map().size(); ++i)
        owners[static_cast<std::size_t>(tv.map()(i))].push_back({i % tv.threads(), i / tv.threads()});
    return owners;
}

Result<ComposedLayout> partition(const ComposedLayout& tensor, const ThreadValueLayout& tv) {
    if (tensor.rank() < tv.tile().rank())
        return fail(fmt::format("partition: the tile {} has {} modes, the tensor {} has {}", to_string(tv.tile()), tv.tile().rank(),
                                to_string(tensor), tensor.rank()));
    return on_inner(tensor, [&](const Layout& inner) -> Result<Layout> {
        // The leading tile, as a layout over exactly the tile's coordinates.
        TW_LAYOUT_TRY(extents, product_each(tv.tile()));
        std::vector<Layout> modes;
        for (int i = 0; i < tv.tile().rank(); ++i) {
            const std::int64_t extent = extents[i].value();
            const Layout mode = tv.tile().is_leaf() ? inner : inner[i];
            if (extent > mode.size())
                return fail(fmt::format("partition: mode {} of the tile {} is larger than the tensor's {}", i, to_string(tv.tile()),
                                        to_string(mode)));
            TW_LAYOUT_TRY(whole, Layout::make_mode(extent, 1));
            TW_LAYOUT_TRY(restricted, composition(mode, whole));
            modes.push_back(std::move(restricted));
        }
        TW_LAYOUT_TRY(tile, make_layout(modes));
        return composition(tile, tv.map());
    });
}

Result<ComposedLayout> partition(const ComposedLayout& tensor, const ThreadValueLayout& tv, std::int64_t thread) {
    TW_LAYOUT_TRY(all, partition(tensor, tv));
    if (thread < 0 || thread >= tv.threads()) return fail(fmt::format("partition: thread {} of {}", thread, tv.threads()));
    TW_LAYOUT_TRY(own, slice(all.layout(), tuple(thread, kUnderscore)));
    return ComposedLayout::make(all.swizzle(), all.offset() + own.offset, own.layout);
}

std::string to_string(const ThreadValueLayout& tv) { return fmt::format("{} over {}", to_string(tv.map()), to_string(tv.tile())); }

}  // namespace tw::layout
