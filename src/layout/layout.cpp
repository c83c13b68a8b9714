#include "layout/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tw::layout {

namespace {

// "1.0" for leaf number `leaf` of the tree; the path of a lone leaf is empty.
bool leaf_path(IntTupleView t, int& leaf, std::string& path) {
    if (t.is_leaf()) return leaf-- == 0;
    int i = 0;
    for (IntTupleView child : t) {
        const std::size_t length = path.size();
        fmt::format_to(std::back_inserter(path), "{}{}", length ? "." : "", i++);
        if (leaf_path(child, leaf, path)) return true;
        path.resize(length);
    }
    return false;
}

std::string name_leaf(IntTupleView t, int leaf) {
    std::string path;
    leaf_path(t, leaf, path);
    return path.empty() ? "the mode" : "mode " + path;
}

// Where two trees stop being congruent, in words.
std::string first_difference(IntTupleView shape, IntTupleView stride, const std::string& path) {
    const std::string where = path.empty() ? "at the top" : "at mode " + path;
    if (shape.is_leaf() != stride.is_leaf())
        return fmt::format("{} the shape is {} and the stride is {}", where, to_string(shape), to_string(stride));
    if (shape.is_leaf()) return {};
    if (shape.rank() != stride.rank())
        return fmt::format("{} the shape has {} modes and the stride has {}", where, shape.rank(), stride.rank());
    for (int i = 0; i < shape.rank(); ++i) {
        const std::string found = first_difference(shape[i], stride[i], path.empty() ? std::to_string(i) : fmt::format("{}.{}", path, i));
        if (!found.empty()) return found;
    }
    return {};
}

Layout checked(Result<Layout> result) {
    // Only for results that are smaller than a layout that already exists.
    assert(result.has_value());
    return std::move(result).value();
}

}  // namespace

std::string describe_leaf(const Layout& layout, int leaf) {
    const FlatModes modes = layout.modes();
    return fmt::format("{} ({}:{})", name_leaf(layout.shape(), leaf), modes[leaf].shape, modes[leaf].stride);
}

Result<Layout> Layout::make(IntTuple shape, IntTuple stride) {
    if (!congruent(shape, stride))
        return fail(fmt::format("shape {} and stride {} do not have the same form: {}", to_string(shape), to_string(stride),
                                first_difference(shape, stride, "")));
    Layout result;
    const FlatInts shapes = leaves(shape);
    const FlatInts strides = leaves(stride);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const auto where = [&] { return name_leaf(shape, static_cast<int>(i)); };
        if (shapes[i] == kUnderscore || strides[i] == kUnderscore)
            return fail(fmt::format("{} of {}:{} is `_`, which is not a number", where(), to_string(shape), to_string(stride)));
        if (shapes[i] < 1)
            return fail(fmt::format("{} of shape {} has extent {}; extents must be at least 1", where(), to_string(shape), shapes[i]));
        const auto size = checked_mul(result.size_, shapes[i]);
        const auto span = checked_mul(shapes[i] - 1, strides[i]);
        if (!size || *size >= kMaxExtent) return fail(fmt::format("shape {} has 2^61 elements or more at {}", to_string(shape), where()));
        const bool stride_fits = strides[i] < kMaxExtent && strides[i] > -kMaxExtent;
        if (!stride_fits || !span || *span >= kMaxExtent || *span <= -kMaxExtent)
            return fail(fmt::format("{} ({}:{}) reaches an offset of 2^61 or more", where(), shapes[i], strides[i]));
        result.size_ = *size;
        (*span < 0 ? result.min_offset_ : result.max_offset_) += *span;
        if (result.max_offset_ - result.min_offset_ >= kMaxExtent)
            return fail(fmt::format("{}:{} reaches an offset of 2^61 or more at {}", to_string(shape), to_string(stride), where()));
    }
    result.shape_ = std::move(shape);
    result.stride_ = std::move(stride);
    return result;
}

std::int64_t Layout::operator()(std::int64_t index) const {
    assert(index >= 0 && index < size_);
    std::int64_t offset = 0;
    const IntTupleNode* s = shape_.view().node();
    const IntTupleNode* d = stride_.view().node();
    for (std::int32_t n = s->nodes, i = 0; i < n; ++i) {
        if (s[i].arity >= 0) continue;
        offset += (index % s[i].value) * d[i].value;
        index /= s[i].value;
    }
    return offset;
}

Result<std::int64_t> Layout::at(IntTupleView coordinate) const { return crd2idx(coordinate, shape_, stride_); }

Layout Layout::operator[](int i) const { return checked(make(IntTuple(shape_[i]), IntTuple(stride_[i]))); }

FlatModes Layout::modes() const {
    FlatModes out;
    const IntTupleNode* s = shape_.view().node();
    const IntTupleNode* d = stride_.view().node();
    for (std::int32_t n = s->nodes, i = 0; i < n; ++i)
        if (s[i].arity < 0) out.push_back({s[i].value, d[i].value});
    return out;
}

// ---- making layouts ----------------------------------------------------------------------------------------------------

Result<Layout> make_layout(std::span<const Layout> layouts) {
    IntTuple shape = IntTuple::empty();
    IntTuple stride = IntTuple::empty();
    for (const Layout& l : layouts) {
        shape.push_back(l.shape());
        stride.push_back(l.stride());
    }
    return Layout::make(std::move(shape), std::move(stride));
}

Result<Layout> from_modes(const FlatModes& modes) {
    if (modes.empty()) return Layout();
    FlatInts shape, stride;
    for (const Mode& m : modes) {
        shape.push_back(m.shape);
        stride.push_back(m.stride);
    }
    return Layout::make(unwrap(shape), unwrap(stride));
}

namespace {

// Compact strides for the leaves taken in the sequence `ranked`.
Result<Layout> compact(IntTuple shape, const std::vector<int>& ranked) {
    const FlatInts extents = leaves(shape);
    FlatInts strides;
    for (std::size_t i = 0; i < extents.size(); ++i) strides.push_back(0);
    std::int64_t next = 1;
    for (int leaf : ranked) {
        strides[leaf] = next;
        const auto grown = checked_mul(next, extents[leaf]);
        if (!grown) return fail(fmt::format("the size of shape {} does not fit in 64 bits", to_string(shape)));
        next = *grown;
    }
    IntTuple stride = unflatten(strides, shape);
    return Layout::make(std::move(shape), std::move(stride));
}

// One order number per leaf of the shape; a number in `order` covers a whole subtree of the shape.
bool spread_order(IntTupleView shape, IntTupleView order, FlatInts& out) {
    if (order.is_leaf()) {
        for (int n = shape.leaf_count(); n > 0; --n) out.push_back(order.value());
        return true;
    }
    if (shape.is_leaf() || shape.rank() != order.rank()) return false;
    for (int i = 0; i < shape.rank(); ++i)
        if (!spread_order(shape[i], order[i], out)) return false;
    return true;
}

}  // namespace

Result<Layout> col_major(IntTuple shape) { return make_ordered_layout(std::move(shape), IntTuple(0)); }

Result<Layout> row_major(IntTuple shape) {
    std::vector<int> ranked(shape.view().leaf_count());
    std::iota(ranked.rbegin(), ranked.rend(), 0);
    return compact(std::move(shape), ranked);
}

Result<Layout> make_ordered_layout(IntTuple shape, IntTupleView order) {
    FlatInts keys;
    if (!spread_order(shape, order, keys))
        return fail(fmt::format("order {} does not fit shape {}: it must have a number for each mode", to_string(order), to_string(shape)));
    std::vector<int> ranked(keys.size());
    std::iota(ranked.begin(), ranked.end(), 0);
    std::stable_sort(ranked.begin(), ranked.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    return compact(std::move(shape), ranked);
}

// ---- coordinates -------------------------------------------------------------------------------------------------------

Result<std::int64_t> crd2idx(IntTupleView coordinate, IntTupleView shape, IntTupleView stride) {
    TW_LAYOUT_TRY(layout, Layout::make(IntTuple(shape), IntTuple(stride)));
    if (coordinate.is_leaf()) {
        const std::int64_t c = coordinate.value();
        if (c < 0 || c >= layout.size())
            return fail(
                fmt::format("coordinate {} is outside shape {} (0 .. {})", to_string(coordinate), to_string(shape), layout.size() - 1));
        return layout(c);
    }
    if (shape.is_leaf() || coordinate.rank() != shape.rank())
        return fail(fmt::format("coordinate {} does not fit shape {}", to_string(coordinate), to_string(shape)));
    std::int64_t offset = 0;
    for (int i = 0; i < shape.rank(); ++i) {
        TW_LAYOUT_TRY(part, crd2idx(coordinate[i], shape[i], stride[i]));
        offset += part;
    }
    return offset;
}

Result<IntTuple> idx2crd(std::int64_t index, IntTupleView shape) {
    TW_LAYOUT_TRY(layout, col_major(IntTuple(shape)));
    if (index < 0 || index >= layout.size())
        return fail(fmt::format("index {} is outside shape {} (0 .. {})", index, to_string(shape), layout.size() - 1));
    FlatInts coordinate;
    for (std::int64_t extent : leaves(shape)) {
        coordinate.push_back(index % extent);
        index /= extent;
    }
    return unflatten(coordinate, shape);
}

Result<IntTuple> idx2crd(std::int64_t offset, IntTupleView shape, IntTupleView stride) {
    TW_LAYOUT_TRY(layout, Layout::make(IntTuple(shape), IntTuple(stride)));
    if (offset < 0) return fail(fmt::format("offset {} is negative", offset));
    FlatInts coordinate;
    const FlatModes modes = layout.modes();
    for (std::size_t i = 0; i < modes.size(); ++i) {
        if (modes[i].stride < 0) return fail(fmt::format("idx2crd: {} has a negative stride", describe_leaf(layout, static_cast<int>(i))));
        coordinate.push_back(modes[i].stride == 0 ? 0 : offset / modes[i].stride % modes[i].shape);
    }
    return unflatten(coordinate, shape);
}

// ---- rearranging modes -------------------------------------------------------------------------------------------------

namespace {

FlatModes coalesce_modes(const FlatModes& modes) {
    FlatModes out;
    for (const Mode& m : modes) {
        if (m.shape == 1) continue;
        // shape * stride fits: the span of a layout is below 2^61.
        if (!out.empty() && out.back().shape * out.back().stride == m.stride) {
            out.back().shape *= m.shape;
        } else {
            out.push_back(m);
        }
    }
    return out;
}

template <class Each>
Result<Layout> by_profile(const Layout& layout, IntTupleView profile, const char* operation, const Each& each) {
    if (profile.is_leaf()) return each(layout);
    if (profile.rank() > layout.rank())
        return fail(fmt::format("{}: the profile {} has {} modes, the layout {} has {}", operation, to_string(profile), profile.rank(),
                                to_string(layout), layout.rank()));
    std::vector<Layout> modes;
    for (int i = 0; i < layout.rank(); ++i) {
        if (i >= profile.rank()) {
            modes.push_back(layout[i]);
            continue;
        }
        TW_LAYOUT_TRY(mode, by_profile(layout[i], profile[i], operation, each));
        modes.push_back(std::move(mode));
    }
    return make_layout(modes);
}

}  // namespace

Layout coalesce(const Layout& layout) { return checked(from_modes(coalesce_modes(layout.modes()))); }

Result<Layout> coalesce(const Layout& layout, IntTupleView profile) {
    return by_profile(layout, profile, "coalesce", [](const Layout& l) { return coalesce(l); });
}

Layout filter_zeros(const Layout& layout) {
    FlatInts shape;
    for (const Mode& m : layout.modes()) shape.push_back(m.stride == 0 ? 1 : m.shape);
    return checked(Layout::make(unflatten(shape, layout.shape()), layout.stride()));
}

Layout filter(const Layout& layout) { return coalesce(filter_zeros(layout)); }

Result<Layout> filter(const Layout& layout, IntTupleView profile) {
    return by_profile(layout, profile, "filter", [](const Layout& l) { return filter(l); });
}

Layout flatten(const Layout& layout) {
    if (layout.depth() <= 1) return layout;
    IntTuple shape = IntTuple::empty();
    IntTuple stride = IntTuple::empty();
    for (const Mode& m : layout.modes()) {
        shape.push_back(IntTuple(m.shape));
        stride.push_back(IntTuple(m.stride));
    }
    return checked(Layout::make(std::move(shape), std::move(stride)));
}

namespace {

Result<bool> check_mode_range(const Layout& layout, int begin, int end, const char* operation) {
    if (begin < 0 || end < begin || end > layout.rank())
        return fail(fmt::format("{}: modes {} .. {} of {}, which has {} modes", operation, begin, end, to_string(layout), layout.rank()));
    return true;
}

}  // namespace

Result<Layout> group(const Layout& layout, int begin, int end) {
    TW_LAYOUT_TRY(fine, check_mode_range(layout, begin, end, "group"));
    (void)fine;
    if (begin == end) return fail(fmt::format("group: the range {} .. {} of {} is empty", begin, end, to_string(layout)));
    std::vector<Layout> outer, inner;
    for (int i = 0; i < layout.rank(); ++i) {
        (i >= begin && i < end ? inner : outer).push_back(layout[i]);
        if (i == end - 1) {
            TW_LAYOUT_TRY(grouped, make_layout(inner));
            outer.push_back(std::move(grouped));
        }
    }
    return make_layout(outer);
}

Result<Layout> select(const Layout& layout, std::span<const int> which) {
    std::vector<Layout> modes;
    for (int i : which) {
        if (i < 0 || i >= layout.rank())
            return fail(fmt::format("select: mode {} of {}, which has {} modes", i, to_string(layout), layout.rank()));
        modes.push_back(layout[i]);
    }
    return make_layout(modes);
}

Result<Layout> take(const Layout& layout, int begin, int end) {
    TW_LAYOUT_TRY(fine, check_mode_range(layout, begin, end, "take"));
    (void)fine;
    std::vector<int> which(end - begin);
    std::iota(which.begin(), which.end(), begin);
    return select(layout, which);
}

Result<Layout> append(const Layout& layout, const Layout& mode) {
    std::vector<Layout> modes;
    for (int i = 0; i < layout.rank(); ++i) modes.push_back(layout[i]);
    modes.push_back(mode);
    return make_layout(modes);
}

Result<Layout> prepend(const Layout& layout, const Layout& mode) {
    std::vector<Layout> modes{mode};
    for (int i = 0; i < layout.rank(); ++i) modes.push_back(layout[i]);
    return make_layout(modes);
}

Layout append_to_rank(const Layout& layout, int rank) {
    if (layout.rank() >= rank) return layout;
    std::vector<Layout> modes;
    for (int i = 0; i < rank; ++i) modes.push_back(i < layout.rank() ? layout[i] : Layout());
    return checked(make_layout(modes));
}

Layout wrap(const Layout& layout) { return layout.shape().is_tuple() ? layout : checked(make_layout({layout})); }

namespace {

Result<bool> slice_into(IntTupleView coordinate, IntTupleView shape, IntTupleView stride, IntTuple& kept_shape, IntTuple& kept_stride,
                        std::int64_t& offset) {
    if (coordinate.is_underscore()) {
        kept_shape.push_back(shape);
        kept_stride.push_back(stride);
        return true;
    }
    if (coordinate.is_leaf()) {
        TW_LAYOUT_TRY(part, crd2idx(coordinate, shape, stride));
        offset += part;
        return true;
    }
    if (shape.is_leaf() || shape.rank() != coordinate.rank())
        return fail(fmt::format("slice: coordinate {} does not fit shape {}", to_string(coordinate), to_string(shape)));
    for (int i = 0; i < shape.rank(); ++i) {
        TW_LAYOUT_TRY(fine, slice_into(coordinate[i], shape[i], stride[i], kept_shape, kept_stride, offset));
        (void)fine;
    }
    return true;
}

}  // namespace

Result<Slice> slice(const Layout& layout, IntTupleView coordinate) {
    IntTuple shape = IntTuple::empty();
    IntTuple stride = IntTuple::empty();
    Slice result;
    TW_LAYOUT_TRY(fine, slice_into(coordinate, layout.shape(), layout.stride(), shape, stride, result.offset));
    (void)fine;
    // One kept mode stands for itself, not for a tuple of one.
    TW_LAYOUT_TRY(kept, shape.rank() == 1 ? Layout::make(IntTuple(shape[0]), IntTuple(stride[0])) : Layout::make(shape, stride));
    result.layout = std::move(kept);
    return result;
}

// ---- from a table back to a layout -------------------------------------------------------------------------------------

Result<Layout> layout_from_table(std::span<const std::int64_t> offsets) {
    if (offsets.empty()) return fail("a layout has at least one element");
    if (offsets[0] != 0) return fail(fmt::format("a layout has offset 0 at index 0, the table has {}", offsets[0]));
    FlatModes modes;
    // Invariant: the table read at every `step`-th entry is what the remaining modes must produce.
    const std::int64_t count = static_cast<std::int64_t>(offsets.size());
    for (std::int64_t step = 1; step < count;) {
        const std::int64_t n = count / step;
        const std::int64_t stride = offsets[step];
        // In a coalesced layout the first mode ends exactly where the arithmetic progression breaks.
        std::int64_t run = 2;
        for (; run < n; ++run) {
            const auto expected = checked_mul(run, stride);
            if (!expected || offsets[run * step] != *expected) break;
        }
        if (n % run != 0)
            return fail(
                fmt::format("no layout has this table: the progression with stride {} ends at index {}, and {} is not a "
                            "multiple of {}",
                            stride, run * step, n, run));
        for (std::int64_t j = run; j < n; ++j) {
            const auto expected = checked_add(offsets[(j - j % run) * step], j % run * stride);
            if (!expected || offsets[j * step] != *expected)
                return fail(fmt::format("no layout has this table: index {} should be {} more than index {}", j * step, j % run * stride,
                                        (j - j % run) * step));
        }
        modes.push_back({run, stride});
        step *= run;
    }
    return from_modes(modes);
}

std::string to_string(const Layout& layout) { return to_string(layout.shape()) + ":" + to_string(layout.stride()); }

}  // namespace tw::layout
