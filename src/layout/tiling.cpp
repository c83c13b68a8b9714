// Divides and products (algebra.h): composition and complement, and the ways to group what they give.
#include <fmt/format.h>

#include <algorithm>

#include "layout/algebra.h"
#include "layout/by_mode.h"

namespace tw::layout {

namespace {

// Splits one layout by another into two modes.
using Splitter = Result<Layout> (*)(const Layout&, const Layout&);

Result<Layout> divide_whole(const Layout& a, const Layout& b) {
    TW_LAYOUT_TRY(rest, complement(b, a.size()));
    TW_LAYOUT_TRY(tiles, make_layout({b, rest}));
    return composition(a, tiles);
}

Result<Layout> product_whole(const Layout& a, const Layout& b) {
    if (b.min_offset() < 0) return fail(fmt::format("product: the repetition {} has negative offsets", to_string(b)));
    const auto room = checked_mul(a.size(), b.cosize());
    if (!room) return fail(fmt::format("product of {} and {}: the size does not fit in 64 bits", to_string(a), to_string(b)));
    TW_LAYOUT_TRY(places, complement(a, *room));
    TW_LAYOUT_TRY(copies, composition(places, b));
    return make_layout({a, copies});
}

// ((inside 0, inside 1, ..), (rest 0, rest 1, .., modes past the tiler))
Result<Layout> zip_by_mode(const Layout& a, const Tiler& tiler, Splitter split, const char* operation) {
    if (std::holds_alternative<Tiler::Keep>(tiler.what)) return make_layout({Layout(), a});
    if (const Layout* layout = std::get_if<Layout>(&tiler.what)) return split(a, *layout);
    TW_LAYOUT_TRY(parts, tiler_modes(a, tiler, operation));
    std::vector<Layout> inside, rest;
    for (int i = 0; i < a.rank(); ++i) {
        if (i >= static_cast<int>(parts->size())) {
            rest.push_back(a[i]);
            continue;
        }
        auto mode = zip_by_mode(a[i], (*parts)[i], split, operation);
        if (!mode) return fail(fmt::format("in mode {}: {}", i, mode.error().message));
        inside.push_back((*mode)[0]);
        rest.push_back((*mode)[1]);
    }
    TW_LAYOUT_TRY(zipped_inside, make_layout(inside));
    TW_LAYOUT_TRY(zipped_rest, make_layout(rest));
    return make_layout({zipped_inside, zipped_rest});
}

Result<Layout> tiled(Result<Layout> zipped) {
    if (!zipped) return zipped;
    const Layout rest = (*zipped)[1];
    std::vector<Layout> modes{(*zipped)[0]};
    for (int i = 0; i < rest.rank(); ++i) modes.push_back(rest[i]);
    return make_layout(modes);
}

Result<Layout> flat(Result<Layout> zipped) {
    if (!zipped) return zipped;
    std::vector<Layout> modes;
    for (int half = 0; half < 2; ++half) {
        const Layout part = (*zipped)[half];
        for (int i = 0; i < part.rank(); ++i) modes.push_back(part[i]);
    }
    return make_layout(modes);
}

// Pairs mode i of the block with mode i of the copies.
Result<Layout> rankwise_product(const Layout& block, const Layout& tiler, bool block_first) {
    const int rank = std::max(block.rank(), tiler.rank());
    TW_LAYOUT_TRY(product, product_whole(wrap(append_to_rank(block, rank)), wrap(append_to_rank(tiler, rank))));
    const Layout blocks = product[0];
    const Layout copies = product[1];
    std::vector<Layout> modes;
    for (int i = 0; i < rank; ++i) {
        TW_LAYOUT_TRY(pair, block_first ? make_layout({blocks[i], copies[i]}) : make_layout({copies[i], blocks[i]}));
        modes.push_back(std::move(pair));
    }
    return make_layout(modes);
}

}  // namespace

Result<Layout> logical_divide(const Layout& a, const Tiler& t) { return apply_by_mode(a, t, "logical_divide", divide_whole); }
Result<Layout> zipped_divide(const Layout& a, const Tiler& t) { return zip_by_mode(a, t, divide_whole, "zipped_divide"); }
Result<Layout> tiled_divide(const Layout& a, const Tiler& t) { return tiled(zip_by_mode(a, t, divide_whole, "tiled_divide")); }
Result<Layout> flat_divide(const Layout& a, const Tiler& t) { return flat(zip_by_mode(a, t, divide_whole, "flat_divide")); }

Result<Layout> logical_product(const Layout& a, const Tiler& t) { return apply_by_mode(a, t, "logical_product", product_whole); }
Result<Layout> zipped_product(const Layout& a, const Tiler& t) { return zip_by_mode(a, t, product_whole, "zipped_product"); }
Result<Layout> tiled_product(const Layout& a, const Tiler& t) { return tiled(zip_by_mode(a, t, product_whole, "tiled_product")); }
Result<Layout> flat_product(const Layout& a, const Tiler& t) { return flat(zip_by_mode(a, t, product_whole, "flat_product")); }

Result<Layout> blocked_product(const Layout& block, const Layout& tiler) { return rankwise_product(block, tiler, true); }
Result<Layout> raked_product(const Layout& block, const Layout& tiler) { return rankwise_product(block, tiler, false); }

Result<Layout> tile_to_shape(const Layout& block, IntTupleView shape, IntTupleView order) {
    const int rank = shape.rank();
    if (block.rank() > rank)
        return fail(fmt::format("tile_to_shape: the block {} has more modes than the shape {}", to_string(block), to_string(shape)));
    TW_LAYOUT_TRY(target, product_each(shape));
    const Layout padded = wrap(append_to_rank(block, rank));
    IntTuple copies = IntTuple::empty();
    for (int i = 0; i < rank; ++i) {
        const std::int64_t wanted = target[i].value();
        if (wanted < 1) return fail(fmt::format("tile_to_shape: mode {} of the shape {} has extent {}", i, to_string(shape), wanted));
        copies.push_back(IntTuple(ceil_div(wanted, padded[i].size())));
    }
    // A shape that is one number takes an order that is one number.
    IntTuple wrapped_order = IntTuple(order);
    if (order.is_leaf()) {
        wrapped_order = IntTuple::empty();
        for (int i = 0; i < rank; ++i) wrapped_order.push_back(IntTuple(0));
    }
    TW_LAYOUT_TRY(grid, make_ordered_layout(copies, wrapped_order));
    TW_LAYOUT_TRY(product, blocked_product(padded, grid));
    return coalesce(product, copies);
}

Result<Layout> tile_to_shape(const Layout& block, IntTupleView shape) { return tile_to_shape(block, shape, IntTuple(0)); }

}  // namespace tw::layout
