#include "layout/linear_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace tw::layout {

namespace {

// Row-echelon basis of a set of columns, each with the combination of inputs that makes it.
struct Echelon {
    struct Entry {
        std::uint64_t vector = 0;
        std::uint64_t combination = 0;
    };
    std::vector<Entry> basis;              // leading bits all different
    std::vector<std::uint64_t> relations;  // combinations that give zero

    explicit Echelon(const LinearMap& map) {
        for (int j = 0; j < map.in_bits(); ++j) {
            const Entry left = reduce({map.column(j), std::uint64_t{1} << j});
            if (left.vector) basis.push_back(left);
            else relations.push_back(left.combination);
        }
    }
    Entry reduce(Entry e) const {
        for (const Entry& b : basis)
            if (e.vector & leading(b.vector)) e = {e.vector ^ b.vector, e.combination ^ b.combination};
        return e;
    }
    static std::uint64_t leading(std::uint64_t v) { return std::uint64_t{1} << (63 - __builtin_clzll(v)); }
};

}  // namespace

LinearMap::LinearMap(std::vector<std::uint64_t> columns, int out_bits) : columns_(std::move(columns)), out_bits_(out_bits) {
    assert(columns_.size() <= 63 && out_bits >= 0 && out_bits <= 63);
    for ([[maybe_unused]] std::uint64_t c : columns_) assert(c < (std::uint64_t{1} << out_bits));
}

LinearMap LinearMap::identity(int bits) {
    std::vector<std::uint64_t> columns;
    for (int j = 0; j < bits; ++j) columns.push_back(std::uint64_t{1} << j);
    return LinearMap(std::move(columns), bits);
}

LinearMap LinearMap::zero(int in_bits, int out_bits) { return LinearMap(std::vector<std::uint64_t>(in_bits, 0), out_bits); }

std::uint64_t LinearMap::row(int out_bit) const {
    std::uint64_t r = 0;
    for (int j = 0; j < in_bits(); ++j) r |= (columns_[j] >> out_bit & 1) << j;
    return r;
}

std::uint64_t LinearMap::operator()(std::uint64_t x) const {
    assert(x >> in_bits() == 0);
    std::uint64_t y = 0;
    for (; x; x &= x - 1) y ^= columns_[__builtin_ctzll(x)];
    return y;
}

int LinearMap::rank() const { return static_cast<int>(Echelon(*this).basis.size()); }

std::vector<std::uint64_t> LinearMap::kernel() const { return Echelon(*this).relations; }

std::optional<std::uint64_t> LinearMap::solve(std::uint64_t y) const {
    const Echelon::Entry left = Echelon(*this).reduce({y, 0});
    if (left.vector) return std::nullopt;
    return left.combination;
}

LinearMap LinearMap::rows(int begin, int end) const {
    assert(0 <= begin && begin <= end && end <= out_bits_);
    std::vector<std::uint64_t> columns;
    for (std::uint64_t c : columns_) columns.push_back(c >> begin & ((std::uint64_t{1} << (end - begin)) - 1));
    return LinearMap(std::move(columns), end - begin);
}

LinearMap LinearMap::transpose() const {
    std::vector<std::uint64_t> columns;
    for (int i = 0; i < out_bits_; ++i) columns.push_back(row(i));
    return LinearMap(std::move(columns), in_bits());
}

Result<LinearMap> compose(const LinearMap& a, const LinearMap& b) {
    std::vector<std::uint64_t> columns;
    for (int j = 0; j < b.in_bits(); ++j) {
        if (b.column(j) >> a.in_bits() != 0)
            return fail(fmt::format("compose: input bit {} reaches bit {}, and the outer map takes {} bits", j,
                                    63 - __builtin_clzll(b.column(j)), a.in_bits()));
        columns.push_back(a(b.column(j)));
    }
    return LinearMap(std::move(columns), a.out_bits());
}

Result<LinearMap> invert(const LinearMap& map) {
    if (map.in_bits() != map.out_bits())
        return fail(fmt::format("invert: {} input bits and {} output bits", map.in_bits(), map.out_bits()));
    const Echelon echelon(map);
    if (!echelon.relations.empty())
        return fail(fmt::format("invert: the map is not injective: inputs 0 and {} both give 0", echelon.relations[0]));
    std::vector<std::uint64_t> columns;
    for (int i = 0; i < map.out_bits(); ++i) columns.push_back(echelon.reduce({std::uint64_t{1} << i, 0}).combination);
    return LinearMap(std::move(columns), map.in_bits());
}

Result<LinearMap> join(const LinearMap& a, const LinearMap& b) {
    if (a.in_bits() + b.in_bits() > 63) return fail("join: more than 63 input bits");
    std::vector<std::uint64_t> columns;
    for (int j = 0; j < a.in_bits(); ++j) columns.push_back(a.column(j));
    for (int j = 0; j < b.in_bits(); ++j) columns.push_back(b.column(j));
    return LinearMap(std::move(columns), std::max(a.out_bits(), b.out_bits()));
}

std::uint64_t AffineMap::max_value() const {
    // Greedy from the top bit: a basis vector whose leading bit is missing can only help.
    Echelon echelon(linear);
    std::sort(echelon.basis.begin(), echelon.basis.end(), [](const auto& x, const auto& y) { return x.vector > y.vector; });
    std::uint64_t best = constant;
    for (const auto& b : echelon.basis)
        if (!(best & Echelon::leading(b.vector))) best ^= b.vector;
    return best;
}

Result<LinearMap> swizzle_matrix(const Swizzle& swizzle, int bits) {
    assert(bits >= 0 && bits <= 62);
    std::vector<std::uint64_t> columns;
    for (int j = 0; j < bits; ++j) {
        columns.push_back(static_cast<std::uint64_t>(swizzle(std::int64_t{1} << j)));
        if (columns.back() >> bits)
            return fail(fmt::format("{} moves bit {} past the {} bits it is restricted to", to_string(swizzle), j, bits));
    }
    return LinearMap(std::move(columns), bits);
}

Result<AffineMap> affine_map(const ComposedLayout& layout) {
    const FlatModes modes = layout.layout().modes();
    std::uint64_t used = static_cast<std::uint64_t>(layout.offset());
    if (layout.offset() < 0) return fail(fmt::format("{} has a negative offset", to_string(layout)));
    std::vector<std::uint64_t> columns;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        const Mode m = modes[i];
        const auto where = [&] { return fmt::format("{} of {}", describe_leaf(layout.layout(), static_cast<int>(i)), to_string(layout)); };
        if (!is_power_of_two(m.shape)) return fail(where() + " has an extent that is no power of two");
        if (m.stride < 0 && m.shape > 1) return fail(where() + " has a negative stride");
        for (int b = 0; b < log2_exact(m.shape); ++b) {
            // The span of a layout is below 2^61, so the shift fits.
            const std::uint64_t contribution = static_cast<std::uint64_t>(m.stride) << b;
            if (contribution & used)
                return fail(fmt::format("{} meets another mode or the offset in bit {}: adding them carries", where(),
                                        __builtin_ctzll(contribution & used)));
            used |= contribution;
            columns.push_back(contribution);
        }
    }
    const auto swizzled = [&](std::uint64_t x) { return static_cast<std::uint64_t>(layout.swizzle()(static_cast<std::int64_t>(x))); };
    std::uint64_t all = 0;
    for (std::uint64_t& c : columns) all |= (c = swizzled(c));
    AffineMap result;
    result.constant = swizzled(static_cast<std::uint64_t>(layout.offset()));
    all |= result.constant;
    result.linear = LinearMap(std::move(columns), all ? 64 - __builtin_clzll(all) : 0);
    return result;
}

std::string to_string(const LinearMap& map) {
    std::string out;
    for (int i = 0; i < map.out_bits(); ++i) {
        for (int j = 0; j < map.in_bits(); ++j) {
            if (j) out += ' ';
            out += map.column(j) >> i & 1 ? '1' : '.';
        }
        out += '\n';
    }
    return out;
}

}  // namespace tw::layout
