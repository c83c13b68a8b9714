#include "layout/algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "layout/by_mode.h"

namespace tw::layout {

namespace {

// Listing offsets is the last resort of composition; beyond this many it gives up with a message.
constexpr std::int64_t kListLimit = std::int64_t{1} << 16;

// The coalesced modes of A, never empty: 1:0 is a mode here, as the one that runs on.
FlatModes running_modes(const Layout& a) {
    FlatModes modes = coalesce(a).modes();
    if (modes.empty()) modes.push_back({1, 0});
    return modes;
}

Result<std::int64_t> evaluate_running(const FlatModes& modes, std::int64_t index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const bool last = i + 1 == modes.size();
        const auto part = checked_mul(last ? index : index % modes[i].shape, modes[i].stride);
        const auto sum = part ? checked_add(offset, *part) : std::nullopt;
        if (!sum) return fail(fmt::format("the offset at index {} does not fit in 64 bits", index));
        offset = *sum;
        index /= modes[i].shape;
    }
    return offset;
}

// A^ o (n:d) by listing all n offsets, for the few cases where neither of two extents divides the other.
Result<FlatModes> compose_by_listing(const FlatModes& a, std::int64_t n, std::int64_t d, const std::string& reason) {
    if (n > kListLimit) return fail(fmt::format("{}, and {} offsets are too many to list", reason, n));
    std::vector<std::int64_t> table;
    for (std::int64_t i = 0; i < n; ++i) {
        TW_LAYOUT_TRY(offset, evaluate_running(a, i * d));
        table.push_back(offset);
    }
    auto layout = layout_from_table(table);
    if (!layout) return fail(fmt::format("{}; {}", reason, layout.error().message));
    return layout->modes();
}

// A^ o (n:d). `a` is coalesced; `why(i, text)` makes the message about its mode i.
template <class Why>
Result<FlatModes> compose_leaf(const FlatModes& a, const std::int64_t n, const std::int64_t d, const Why& why) {
    FlatModes out;
    if (n == 1 || d == 0) {
        out.push_back({n, 0});
        return out;
    }
    if (d < 0) return fail("composition: B has a negative stride, and A has no negative coordinates");
    std::int64_t rest = n;
    std::int64_t step = d;
    for (std::size_t i = 0;; ++i) {
        const Mode m = a[i];
        if (i + 1 == a.size() || (rest - 1) * step < m.shape) {
            // All that is left stays inside this mode (the last mode runs on).
            const auto stride = checked_mul(step, m.stride);
            if (!stride) return fail("composition: a stride does not fit in 64 bits");
            out.push_back({rest, *stride});
            return out;
        }
        if (step % m.shape == 0) {
            step /= m.shape;
            continue;
        }
        if (m.shape % step != 0)
            return compose_by_listing(a, n, d, why(i, fmt::format("the stride {} that reaches it does not divide {}", step, m.shape)));
        const std::int64_t taken = m.shape / step;
        if (rest % taken != 0)
            return fail(why(i, fmt::format("it takes {} of the remaining {} elements, which leaves a part of a turn", taken, rest)));
        out.push_back({taken, step * m.stride});
        rest /= taken;
        step = 1;
    }
}

struct ShapeAndStride {
    IntTuple shape;
    IntTuple stride;
};

// "1.0" for leaf number `leaf` of B, in words.
std::string name_of_leaf(const Layout& b, int leaf) { return b.shape().is_leaf() ? "B" : describe_leaf(b, leaf) + " of B"; }

// Each leaf of B becomes what it selects from A; the tree around the leaves stays. `leaf` counts them, for messages.
Result<ShapeAndStride> compose_tree(const Layout& whole_a, const FlatModes& a, const Layout& whole_b, IntTupleView shape,
                                    IntTupleView stride, int& leaf) {
    if (shape.is_leaf()) {
        const int this_leaf = leaf++;
        TW_LAYOUT_TRY(modes, compose_leaf(a, shape.value(), stride.value(), [&](std::size_t i, const std::string& text) {
                          return fmt::format("composition of {} with {}: {} does not divide mode {} ({}:{}) of coalesced A: {}",
                                             to_string(whole_a), to_string(whole_b), name_of_leaf(whole_b, this_leaf), i, a[i].shape,
                                             a[i].stride, text);
                      }));
        FlatInts extents, strides;
        for (const Mode& m : modes) {
            extents.push_back(m.shape);
            strides.push_back(m.stride);
        }
        return ShapeAndStride{unwrap(extents), unwrap(strides)};
    }
    ShapeAndStride out{IntTuple::empty(), IntTuple::empty()};
    auto d = stride.begin();
    for (IntTupleView s : shape) {
        TW_LAYOUT_TRY(mode, compose_tree(whole_a, a, whole_b, s, *d, leaf));
        out.shape.push_back(mode.shape);
        out.stride.push_back(mode.stride);
        ++d;
    }
    return out;
}

}  // namespace

Result<Tiler> Tiler::from_shape(IntTupleView shape) {
    if (shape.is_underscore()) return Tiler();
    if (shape.is_leaf()) {
        TW_LAYOUT_TRY(layout, Layout::make_mode(shape.value(), 1));
        return Tiler(std::move(layout));
    }
    std::vector<Tiler> parts;
    for (IntTupleView mode : shape) {
        TW_LAYOUT_TRY(part, from_shape(mode));
        parts.push_back(std::move(part));
    }
    return Tiler(std::move(parts));
}

std::string to_string(const Tiler& tiler) {
    if (std::holds_alternative<Tiler::Keep>(tiler.what)) return "_";
    if (const Layout* layout = std::get_if<Layout>(&tiler.what)) return to_string(*layout);
    std::string out = "(";
    for (const Tiler& part : std::get<std::vector<Tiler>>(tiler.what)) out += (out.size() > 1 ? "," : "") + to_string(part);
    return out + ")";
}

Result<std::int64_t> evaluate_extended(const Layout& a, std::int64_t index) {
    if (index < 0) return fail(fmt::format("index {} is negative", index));
    return evaluate_running(running_modes(a), index);
}

namespace {

// The largest value of c * step mod period for c < n, or an upper bound of it.
std::int64_t max_residue(std::int64_t n, std::int64_t step, std::int64_t period) {
    if (n == 1 || step % period == 0) return 0;
    if ((n - 1) * step < period) return (n - 1) * step;
    return period - std::gcd(step, period);
}

// B's modes were composed one by one; that is A o B only if A(x + y) == A(x) + A(y) for the parts they contribute, that is, if
// adding them never carries from one mode of A into the next. Enough, and cheap: at each boundary the parts stay below it.
bool never_carries(const FlatModes& a, const FlatModes& b) {
    std::int64_t boundary = 1;
    for (std::size_t i = 0; i + 1 < a.size(); ++i) {
        boundary *= a[i].shape;
        std::int64_t sum = 0;
        for (const Mode& m : b) {
            sum += max_residue(m.shape, m.stride, boundary);
            if (sum >= boundary) return false;
        }
    }
    return true;
}

}  // namespace

Result<Layout> composition(const Layout& a, const Layout& b) {
    const FlatModes modes = running_modes(a);
    int leaf = 0;
    TW_LAYOUT_TRY(composed, compose_tree(a, modes, b, b.shape(), b.stride(), leaf));
    TW_LAYOUT_TRY(result, Layout::make(std::move(composed.shape), std::move(composed.stride)));
    if (b.shape().is_leaf() || never_carries(modes, b.modes())) return std::move(result);
    if (b.size() > kListLimit)
        return fail(
            fmt::format("composition of {} with {}: B's modes may carry into each other inside A, and {} offsets are too many to list",
                        to_string(a), to_string(b), b.size()));
    for (std::int64_t i = 0; i < b.size(); ++i) {
        TW_LAYOUT_TRY(offset, evaluate_running(modes, b(i)));
        if (offset != result(i))
            return fail(
                fmt::format("composition of {} with {}: B's modes carry into each other inside A: B({}) = {} is at {} in A, the "
                            "sum of its parts at {}",
                            to_string(a), to_string(b), i, b(i), offset, result(i)));
    }
    return std::move(result);
}

Result<Layout> composition(const Layout& a, const Tiler& tiler) {
    return apply_by_mode(a, tiler, "composition", [](const Layout& x, const Layout& y) { return composition(x, y); });
}

namespace {

struct RankedMode {
    Mode mode;
    int leaf = 0;               // its place in the layout
    std::int64_t position = 1;  // the product of the extents to its left: what a step of it adds to the integer coordinate
};

// The modes that matter (extent > 1, stride != 0), by ascending stride, then extent.
std::vector<RankedMode> ranked_modes(const Layout& layout) {
    std::vector<RankedMode> out;
    std::int64_t position = 1;
    int leaf = 0;
    for (const Mode& m : layout.modes()) {
        if (m.shape != 1 && m.stride != 0) out.push_back({m, leaf, position});
        position *= m.shape;
        ++leaf;
    }
    std::stable_sort(out.begin(), out.end(), [](const RankedMode& x, const RankedMode& y) {
        return x.mode.stride != y.mode.stride ? x.mode.stride < y.mode.stride : x.mode.shape < y.mode.shape;
    });
    return out;
}

}  // namespace

Result<Layout> complement(const Layout& a, std::int64_t max) {
    if (max < 1) return fail(fmt::format("complement: the range to fill must be at least 1, not {}", max));
    FlatModes out;
    std::int64_t filled = 1;  // everything below this is covered by A's modes so far and the result so far
    int below = -1;
    for (const RankedMode& r : ranked_modes(a)) {
        if (r.mode.stride < 0)
            return fail(fmt::format("complement: {} of {} has a negative stride", describe_leaf(a, r.leaf), to_string(a)));
        if (r.mode.stride < filled)
            return fail(fmt::format("complement: {} of {} starts inside {}, which reaches to {}", describe_leaf(a, r.leaf), to_string(a),
                                    describe_leaf(a, below), filled));
        out.push_back({r.mode.stride / filled, filled});
        filled = r.mode.shape * r.mode.stride;
        below = r.leaf;
    }
    out.push_back({ceil_div(max, filled), filled});
    TW_LAYOUT_TRY(layout, from_modes(out));
    return coalesce(layout);
}

Result<Layout> right_inverse(const Layout& layout) {
    FlatModes out;
    std::int64_t covered = 1;
    for (const RankedMode& r : ranked_modes(layout)) {
        if (r.mode.stride < covered) continue;  // negative, or adds nothing new
        if (r.mode.stride > covered) break;
        out.push_back({r.mode.shape, r.position});
        covered = r.mode.shape * r.mode.stride;
    }
    TW_LAYOUT_TRY(inverse, from_modes(out));
    return coalesce(inverse);
}

Result<Layout> left_inverse(const Layout& layout) {
    std::int64_t leaf = 0;
    for (const Mode& m : layout.modes()) {
        if (m.shape > 1 && m.stride == 0)
            return fail(fmt::format("left_inverse: {} of {} has stride 0, so the layout is not injective",
                                    describe_leaf(layout, static_cast<int>(leaf)), to_string(layout)));
        ++leaf;
    }
    const std::vector<RankedMode> ranked = ranked_modes(layout);
    FlatModes out;
    std::int64_t reached = 1;            // one past what the modes so far undo
    std::int64_t fresh = layout.size();  // the first value that no coordinate has: where gaps are sent
    const auto gap = [&](std::int64_t times) {
        out.push_back({times, fresh});
        fresh = checked_mul(fresh, times).value_or(kMaxExtent);
    };
    for (std::size_t i = 0; i < ranked.size(); ++i) {
        const RankedMode& r = ranked[i];
        if (r.mode.stride < 0)
            return fail(fmt::format("left_inverse: {} of {} has a negative stride", describe_leaf(layout, r.leaf), to_string(layout)));
        if (i == 0 && r.mode.stride > 1) gap(r.mode.stride);
        reached = r.mode.shape * r.mode.stride;
        const std::int64_t next = i + 1 < ranked.size() ? ranked[i + 1].mode.stride : reached;
        if (next % reached == 0) {
            out.push_back({r.mode.shape, r.position});
            if (next > reached) gap(next / reached);
        } else if (next > reached && next % r.mode.stride == 0) {
            out.push_back({next / r.mode.stride, r.position});  // runs on through a gap that is no multiple of the mode
        } else {
            return fail(fmt::format("left_inverse of {}: {} does not continue {} (offsets up to {} are taken)", to_string(layout),
                                    describe_leaf(layout, ranked[i + 1].leaf), describe_leaf(layout, r.leaf), reached - 1));
        }
    }
    TW_LAYOUT_TRY(inverse, from_modes(out));
    return coalesce(inverse);
}

Result<Layout> max_common_layout(const Layout& a, const Layout& b) {
    if (a.size() != b.size())
        return fail(fmt::format("max_common_layout: {} has {} elements, {} has {}", to_string(a), a.size(), to_string(b), b.size()));
    TW_LAYOUT_TRY(inverse, right_inverse(b));
    FlatModes prefix = inverse.modes();
    while (!prefix.empty()) {
        TW_LAYOUT_TRY(candidate, from_modes(prefix));
        if (auto shared = composition(a, candidate)) {
            const Mode first = running_modes(*shared)[0];
            if (first.stride != 1 || first.shape == 1) return Layout();
            TW_LAYOUT_TRY(vector, Layout::make_mode(first.shape, 1));
            if (auto result = composition(candidate, vector)) return coalesce(*result);
        }
        prefix.pop_back();  // not a layout of this length: try a shorter one
    }
    return Layout();
}

Result<std::int64_t> max_common_vector(const Layout& a, const Layout& b) {
    TW_LAYOUT_TRY(common, max_common_layout(a, b));
    return common.size();
}

}  // namespace tw::layout
