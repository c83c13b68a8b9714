#include "device/places.h"

#include <numeric>

namespace tw::device {
namespace {

// How far a view reaches along a dimension of its buffer.
int extent_along(const ir::SharedView& view, int dim) {
    for (std::size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] == dim) return view.extents[i];
    }
    return 1;
}

const ir::SharedBuffer& buffer_of_view(const ir::Kernel& k, const ir::SharedView& view) {
    return k.buffers[static_cast<std::size_t>(view.buffer)];
}

}  // namespace

int constant_bytes(const ir::Kernel& kernel, const ir::SharedView& view, const std::vector<int>& coordinate) {
    const ir::SharedBuffer& b = buffer_of_view(kernel, view);
    int elements = 0;
    for (std::size_t dim = 0; dim < b.dims.size(); ++dim) {
        const ir::SharedDim& sd = b.dims[dim];
        int index = static_cast<int>(view.origin[dim].as_constant().value_or(0));
        for (std::size_t i = 0; i < view.dims.size(); ++i) {
            if (view.dims[i] == static_cast<int>(dim)) index += coordinate[i];
        }
        for (std::size_t i = 0; i < sd.extents.size(); ++i) {
            elements += i + 1 == sd.extents.size() ? index * sd.strides[i] : index % sd.extents[i] * sd.strides[i];
            index /= sd.extents[i];
        }
    }
    return b.byte_offset + elements * target::bytes(b.dtype);
}

Expected<RuntimePlace, std::string> runtime_place(const ir::Kernel& kernel, const Facts& facts, const ir::SharedView& view,
                                                  bool inside_panels) {
    const ir::SharedBuffer& b = buffer_of_view(kernel, view);
    const int size = target::bytes(b.dtype);
    RuntimePlace place;
    auto add = [&](const ir::Expr& origin, int modulus, int quotient, int stride) {
        place.terms.push_back({origin, modulus, quotient, stride * size});
    };
    for (std::size_t dim = 0; dim < b.dims.size(); ++dim) {
        const ir::Expr& origin = view.origin[dim];
        if (origin.as_constant()) continue;
        const ir::SharedDim& sd = b.dims[dim];
        const std::int64_t multiple = facts.multiple(origin), step = std::gcd<std::int64_t>(multiple, sd.extents[0]);
        if (sd.extents.size() == 1) {
            add(origin, 0, 0, sd.strides[0]);
            place.divisor = std::gcd(place.divisor, multiple * sd.strides[0] * size);
        } else if (sd.extents.size() == 2 && multiple % sd.extents[0] == 0) {
            add(origin, 0, sd.extents[0], sd.strides[1]);
            place.divisor = std::gcd<std::int64_t>(place.divisor, static_cast<std::int64_t>(sd.strides[1]) * size);
        } else if (inside_panels && sd.extents.size() == 2 && extent_along(view, static_cast<int>(dim)) <= step) {
            add(origin, sd.extents[0], 0, sd.strides[0]);  // the view stays in the panel where it starts
            add(origin, 0, sd.extents[0], sd.strides[1]);
            place.divisor = std::gcd(place.divisor, std::gcd<std::int64_t>(step * sd.strides[0], sd.strides[1]) * size);
        } else {
            return Unexpected<std::string>{"a view of `" + b.name + "` starts inside a panel at a place that is known only at run time"};
        }
    }
    return place;
}

std::vector<int> unit_extents(const ir::Distribution& d, int per_unit) {
    std::vector<int> out;
    for (const ir::DistDigit& digit : ir::prime_digits(d.value)) {
        if (per_unit > 1) per_unit /= digit.extent;
        else out.push_back(digit.extent);
    }
    return out;
}

std::vector<int> per_unit_table(const std::vector<int>& by_value, int per_unit) {
    std::vector<int> out;
    for (std::size_t v = 0; v < by_value.size(); v += static_cast<std::size_t>(per_unit)) out.push_back(by_value[v]);
    return out;
}

namespace {

// Does the swizzle of every sum come apart into that of the thread's part and flips of its bits? Then the thread's is computed once.
bool comes_apart(const SharedUnits& units, target::SwizzleMode mode, int threads) {
    for (int t = 0; t < threads; ++t) {
        const auto base = static_cast<std::uint32_t>(units.thread.at(t));
        for (std::size_t u = 0; u < units.bytes.size(); ++u) {
            const std::uint32_t want = target::swizzled(mode, base + static_cast<std::uint32_t>(units.bytes[u]));
            if (want !=
                (target::swizzled(mode, base) ^ static_cast<std::uint32_t>(units.flips[u])) + static_cast<std::uint32_t>(units.jumps[u]))
                return false;
        }
    }
    return true;
}

}  // namespace

Expected<SharedUnits, std::string> shared_units(const ir::Kernel& kernel, const Facts& facts, const ir::SharedView& view,
                                                const ir::Distribution& d, int per_unit) {
    const ir::SharedBuffer& b = buffer_of_view(kernel, view);
    const auto map = ir::split(d, [&](const std::vector<int>& c) { return constant_bytes(kernel, view, c); });
    if (!map) return Unexpected<std::string>{"addresses in `" + b.name + "` are not sums of digits"};
    auto varies = runtime_place(kernel, facts, view, true);
    if (!varies) return std::move(varies).propagate();
    SharedUnits units;
    units.thread = map->thread;
    units.bytes = per_unit_table(map->value, per_unit);
    units.extents = unit_extents(d, per_unit);
    units.varies = *std::move(varies);
    const int pattern = target::pattern_bytes(b.swizzle);
    units.from_buffer = b.byte_offset % pattern == 0;
    if (units.from_buffer) {
        for (int& x : units.bytes) x -= b.byte_offset;
    }
    if (b.swizzle == target::SwizzleMode::None) return units;
    units.swizzle_bits = target::swizzle_bits(b.swizzle);
    for (int v : units.bytes) {
        const int low = v % pattern;
        units.flips.push_back(static_cast<int>(target::swizzled(b.swizzle, static_cast<std::uint32_t>(low))));
        units.jumps.push_back(v - low);
    }
    const bool apart = units.varies.divisor % pattern == 0 && comes_apart(units, b.swizzle, d.threads());
    units.swizzle = apart ? SharedUnits::Swizzle::of_thread : SharedUnits::Swizzle::of_sum;
    return units;
}

std::vector<CopyDigit> copy_digits(const ir::Distribution& d) {
    std::vector<CopyDigit> copies;
    int divisor = 1;
    bool together = false;  // digits of copies side by side are one
    for (const ir::DistDigit& digit : ir::prime_digits(d.thread)) {
        const bool copy = digit.dim < 0;
        if (copy && !together) copies.push_back({divisor, 1, false});
        if (copy) copies.back().extent *= digit.extent;
        together = copy;
        divisor *= digit.extent;
    }
    for (CopyDigit& c : copies) c.highest = c.divisor * c.extent >= d.threads();
    return copies;
}

int words_between_runs(const ir::Distribution& d) {
    const ir::Distribution n = ir::normalized(d);
    int words = 1;
    for (std::size_t i = 1; n.value[i].dim != n.value[0].dim || n.value[i].step != 8; ++i) words *= n.value[i].extent;
    return words;
}

}  // namespace tw::device
