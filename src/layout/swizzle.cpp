#include "layout/swizzle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "layout/linear_map.h"

namespace tw::layout {

Result<Swizzle> Swizzle::make(int bits, int base, int shift) {
    const auto name = [&] { return fmt::format("Sw<{},{},{}>", bits, base, shift); };
    // Small bounds first, so that the sums below cannot overflow.
    if (bits < 0 || base < 0) return fail(fmt::format("{}: the number of bits and the base must not be negative", name()));
    if (bits > 60 || base > 60 || shift > 60 || shift < -60) return fail(fmt::format("{} reaches past bit 60", name()));
    if (std::abs(shift) < bits)
        return fail(fmt::format("{}: the two fields of {} bits overlap when they are only {} apart", name(), bits, std::abs(shift)));
    if (bits + base + std::abs(shift) > 60) return fail(fmt::format("{} reaches past bit 60", name()));
    Swizzle s;
    s.bits_ = bits;
    s.base_ = base;
    s.shift_ = shift;
    return s;
}

Result<ComposedLayout> ComposedLayout::make(Swizzle swizzle, std::int64_t offset, Layout layout) {
    if (offset <= -kMaxExtent || offset >= kMaxExtent) return fail(fmt::format("offset {} is too large", offset));
    if (offset + layout.min_offset() < 0 && !(swizzle.is_identity() && offset == 0))
        return fail(fmt::format("{} o {} o {} reaches the negative offset {}", to_string(swizzle), offset, to_string(layout),
                                offset + layout.min_offset()));
    if (offset + layout.max_offset() >= kMaxExtent)
        return fail(fmt::format("{} o {} o {} reaches an offset of 2^61 or more", to_string(swizzle), offset, to_string(layout)));
    ComposedLayout c;
    c.swizzle_ = swizzle;
    c.offset_ = offset;
    c.layout_ = std::move(layout);
    return c;
}

Result<std::int64_t> ComposedLayout::at(IntTupleView coordinate) const {
    TW_LAYOUT_TRY(inner, layout_.at(coordinate));
    return transform(offset_ + inner);
}

std::string to_string(const Swizzle& s) { return fmt::format("Sw<{},{},{}>", s.bits(), s.base(), s.shift()); }

std::string to_string(const ComposedLayout& a) {
    if (a.is_plain()) return to_string(a.layout());
    return fmt::format("{} o {} o {}", to_string(a.swizzle()), a.offset(), to_string(a.layout()));
}

Result<ComposedLayout> composition(const ComposedLayout& a, const Tiler& tiler) {
    return on_inner(a, [&](const Layout& inner) { return composition(inner, tiler); });
}

Result<ComposedLayout> composition(const Swizzle& swizzle, const ComposedLayout& a) {
    if (swizzle.is_identity()) return a;
    if (a.swizzle().is_identity()) return ComposedLayout::make(swizzle, a.offset(), a.layout());
    if (swizzle == a.swizzle()) return ComposedLayout::make(Swizzle(), a.offset(), a.layout());
    return fail(fmt::format("{} o {} is not one swizzle of a layout", to_string(swizzle), to_string(a)));
}

Result<std::int64_t> cosize(const ComposedLayout& a) {
    if (a.swizzle().is_identity()) return a.offset() + a.layout().max_offset() + 1;
    if (auto map = affine_map(a)) return static_cast<std::int64_t>(map->max_value()) + 1;
    constexpr std::int64_t kLimit = std::int64_t{1} << 22;
    if (a.size() > kLimit) return fail(fmt::format("cosize of {}: {} offsets are too many to list", to_string(a), a.size()));
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) largest = std::max(largest, a(i));
    return largest + 1;
}

Result<ComposedLayout> right_inverse(const ComposedLayout& a) {
    if (a.is_plain()) {
        TW_LAYOUT_TRY(plain, right_inverse(a.layout()));
        return ComposedLayout(std::move(plain));
    }
    if (a.offset() != 0)
        return fail(fmt::format("right_inverse: {} never reaches offset 0 first: its offset is {}", to_string(a), a.offset()));
    // L(R(i)) = i and the swizzle is its own inverse, so Sw o L has the right inverse R o Sw = (R o Sw o R^-1) o R. What stands
    // in brackets permutes the image of R; if it is a swizzle there, that is the answer.
    TW_LAYOUT_TRY(inverse, right_inverse(a.layout()));
    TW_LAYOUT_TRY(inverse_map, affine_map(ComposedLayout(inverse)));
    TW_LAYOUT_TRY(swizzle_map, swizzle_matrix(a.swizzle(), inverse_map.linear.in_bits()));
    TW_LAYOUT_TRY(wanted, compose(inverse_map.linear, swizzle_map));
    const std::int64_t yyy_low = a.swizzle().yyy_mask() & -a.swizzle().yyy_mask();
    const std::int64_t zzz_low = a.swizzle().zzz_mask() & -a.swizzle().zzz_mask();
    if (yyy_low >= inverse.size()) return ComposedLayout(inverse);  // the swizzle moves nothing in this range
    const int y = log2_exact(inverse(yyy_low));
    const int z = log2_exact(inverse(zzz_low));
    // Fewer bits than before are enough when the rest of yyy lies outside the range.
    for (int bits = a.swizzle().bits(); bits > 0; --bits) {
        const auto moved = Swizzle::make(bits, std::min(y, z), y - z);
        if (!moved) continue;
        TW_LAYOUT_TRY(candidate, ComposedLayout::make(*moved, 0, inverse));
        if (const auto map = affine_map(candidate); map && map->linear.same_function(wanted)) return candidate;
    }
    return fail(fmt::format("right_inverse of {}: after {} its swizzle is no longer one swizzle", to_string(a), to_string(inverse)));
}

// ---- element width ------------------------------------------------------------------------------------------------------

Result<Layout> upcast(const Layout& layout, std::int64_t n) {
    if (n < 1) return fail(fmt::format("upcast by {}: must be at least 1", n));
    if (n == 1) return layout;
    FlatInts shape, stride;
    std::int64_t inside = 0;  // the largest distance that coordinates inside one wide element add up to
    const FlatModes modes = layout.modes();
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const Mode m = modes[i];
        const auto where = [&] {
            return fmt::format("upcast of {} by {}: {}", to_string(layout), n, describe_leaf(layout, static_cast<int>(i)));
        };
        if (m.stride < 0) return fail(where() + " has a negative stride");
        if (m.stride == 0) {
            shape.push_back(m.shape);
            stride.push_back(0);
        } else if (m.stride % n == 0) {
            shape.push_back(m.shape);
            stride.push_back(m.stride / n);
        } else if (n % m.stride == 0) {
            const std::int64_t per_element = n / m.stride;
            if (m.shape % per_element != 0 && per_element % m.shape != 0)
                return fail(where() + fmt::format(" does not fill whole elements of {}", per_element));
            shape.push_back(ceil_div(m.shape, per_element));
            stride.push_back(1);
            // Both factors are at most n and the product is below the layout's span.
            inside += (std::min(m.shape, per_element) - 1) * m.stride;
        } else if (m.shape == 1) {
            shape.push_back(1);
            stride.push_back(0);
        } else {
            return fail(where() + fmt::format(" has a stride that neither divides {} nor is a multiple of it", n));
        }
    }
    if (inside >= n)
        return fail(fmt::format("upcast of {} by {}: its modes below stride {} add up to {}, past the end of an element", to_string(layout),
                                n, n, inside));
    return Layout::make(unflatten(shape, layout.shape()), unflatten(stride, layout.shape()));
}

Result<Layout> downcast(const Layout& layout, std::int64_t n) {
    if (n < 1 || n >= kMaxExtent) return fail(fmt::format("downcast by {}: must be at least 1", n));
    if (n == 1) return layout;
    const FlatModes modes = layout.modes();
    int unit = -1;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        if (modes[i].stride != 1) continue;
        const int leaf = static_cast<int>(i);
        if (unit >= 0 && modes[unit].shape > 1 && modes[i].shape > 1)
            return fail(fmt::format("downcast of {}: {} and {} both have stride 1", to_string(layout), describe_leaf(layout, unit),
                                    describe_leaf(layout, leaf)));
        if (unit < 0 || modes[unit].shape == 1) unit = modes[i].shape > 1 || unit < 0 ? leaf : unit;
    }
    if (unit < 0) {
        if (layout.size() == 1 && layout.shape().is_leaf()) return Layout::make_mode(n, 1);
        return fail(fmt::format("downcast of {}: no mode of stride 1 to hold the {} narrow elements", to_string(layout), n));
    }
    FlatInts shape, stride;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const bool is_unit = static_cast<int>(i) == unit;
        const auto s = checked_mul(modes[i].shape, is_unit ? n : 1);
        const auto d = checked_mul(modes[i].stride, is_unit ? 1 : n);
        if (!s || !d) return fail(fmt::format("downcast of {} by {} does not fit in 64 bits", to_string(layout), n));
        shape.push_back(*s);
        stride.push_back(*d);
    }
    return Layout::make(unflatten(shape, layout.shape()), unflatten(stride, layout.shape()));
}

Result<ComposedLayout> upcast(const ComposedLayout& a, std::int64_t n) {
    if (n < 1) return fail(fmt::format("upcast by {}: must be at least 1", n));
    TW_LAYOUT_TRY(inner, upcast(a.layout(), n));
    if (a.offset() % n != 0) return fail(fmt::format("upcast of {}: {} does not divide the offset", to_string(a), n));
    Swizzle swizzle;
    if (!a.swizzle().is_identity()) {
        if (!is_power_of_two(n)) return fail(fmt::format("upcast of {} by {}: after a swizzle it must be a power of two", to_string(a), n));
        if (log2_exact(n) > a.swizzle().base())
            return fail(fmt::format("upcast of {} by {}: the swizzle moves parts of a wide element apart (it keeps only {} together)",
                                    to_string(a), n, std::int64_t{1} << a.swizzle().base()));
        TW_LAYOUT_TRY(moved, Swizzle::make(a.swizzle().bits(), a.swizzle().base() - log2_exact(n), a.swizzle().shift()));
        swizzle = moved;
    }
    return ComposedLayout::make(swizzle, a.offset() / n, std::move(inner));
}

Result<ComposedLayout> downcast(const ComposedLayout& a, std::int64_t n) {
    TW_LAYOUT_TRY(inner, downcast(a.layout(), n));
    Swizzle swizzle;
    if (!a.swizzle().is_identity()) {
        if (!is_power_of_two(n))
            return fail(fmt::format("downcast of {} by {}: after a swizzle it must be a power of two", to_string(a), n));
        TW_LAYOUT_TRY(moved, Swizzle::make(a.swizzle().bits(), a.swizzle().base() + log2_exact(n), a.swizzle().shift()));
        swizzle = moved;
    }
    const auto offset = checked_mul(a.offset(), n);
    if (!offset) return fail(fmt::format("downcast of {} by {} does not fit in 64 bits", to_string(a), n));
    return ComposedLayout::make(swizzle, *offset, std::move(inner));
}

namespace {

template <class AnyLayout>
Result<AnyLayout> recast_by_ratio(const AnyLayout& layout, std::int64_t old_bits, std::int64_t new_bits) {
    if (old_bits < 1 || new_bits < 1) return fail(fmt::format("recast from {} to {} bits: widths must be positive", old_bits, new_bits));
    const std::int64_t common = std::gcd(old_bits, new_bits);
    TW_LAYOUT_TRY(narrow, downcast(layout, old_bits / common));
    return upcast(narrow, new_bits / common);
}

}  // namespace

Result<Layout> recast(const Layout& a, std::int64_t old_bits, std::int64_t new_bits) { return recast_by_ratio(a, old_bits, new_bits); }
Result<ComposedLayout> recast(const ComposedLayout& a, std::int64_t old_bits, std::int64_t new_bits) {
    return recast_by_ratio(a, old_bits, new_bits);
}

}  // namespace tw::layout
