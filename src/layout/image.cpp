#include "layout/image.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "layout/bounded_sum.h"

namespace tw::layout {

namespace {

ImageAnswer yes(std::string how) { return {Verdict::yes, std::move(how), std::nullopt}; }
ImageAnswer no(std::string how) { return {Verdict::no, std::move(how), std::nullopt}; }
ImageAnswer no(std::string how, std::int64_t a, std::int64_t b) { return {Verdict::no, std::move(how), std::pair{a, b}}; }
ImageAnswer too_large(std::string how) { return {Verdict::too_large, std::move(how), std::nullopt}; }

// The integer coordinate with these leaf coordinates.
std::int64_t join_coordinate(const FlatModes& modes, const std::vector<std::int64_t>& x) {
    std::int64_t index = 0, position = 1;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        index += x[i] * position;
        position *= modes[i].shape;
    }
    return index;
}

// Sorted by stride, each above everything below it: then offsets are all different, without a search.
bool nested(FlatModes modes) {
    std::sort(modes.begin(), modes.end(), [](const Mode& a, const Mode& b) { return std::abs(a.stride) < std::abs(b.stride); });
    std::int64_t span = 0;
    for (const Mode& m : modes) {
        if (m.shape == 1) continue;
        if (std::abs(m.stride) <= span) return false;
        span += (m.shape - 1) * std::abs(m.stride);
    }
    return true;
}

ImageAnswer inner_is_injective(const Layout& layout, const ImageLimits& limits) {
    const FlatModes modes = layout.modes();
    std::int64_t position = 1;
    for (const Mode& m : modes) {
        if (m.shape > 1 && m.stride == 0) return no("a mode has stride 0", 0, position);
        position *= m.shape;
    }
    if (nested(modes)) return yes("nested strides");
    // Two coordinates with the same offset differ by z with sum z_i d_i = 0, |z_i| < n_i; shift z to be non-negative.
    std::vector<BoundedTerm> terms;
    std::vector<std::size_t> mode_of;
    std::int64_t target = 0;
    for (std::size_t i = 0; i < modes.size(); ++i) {
        if (modes[i].shape == 1) continue;
        const std::int64_t d = std::abs(modes[i].stride);
        terms.push_back({2 * modes[i].shape - 1, d});
        mode_of.push_back(i);
        target += (modes[i].shape - 1) * d;
    }
    std::vector<std::int64_t> first(modes.size(), 0), second(modes.size(), 0);
    const SearchEnd end = find_bounded_sum(terms, target, limits.search_steps, [&](const std::vector<std::int64_t>& x) {
        bool trivial = true;
        for (std::size_t k = 0; k < terms.size(); ++k) {
            const Mode& m = modes[mode_of[k]];
            const std::int64_t z = (x[k] - (m.shape - 1)) * (m.stride < 0 ? -1 : 1);
            trivial = trivial && z == 0;
            first[mode_of[k]] = std::max<std::int64_t>(z, 0);
            second[mode_of[k]] = std::max<std::int64_t>(-z, 0);
        }
        return !trivial;
    });
    if (end == SearchEnd::none) return yes("bounded-sum search");
    if (end == SearchEnd::found) return no("bounded-sum search", join_coordinate(modes, first), join_coordinate(modes, second));
    if (layout.size() > layout.cosize()) return no("more coordinates than offsets");
    if (layout.size() > limits.enumeration || layout.cosize() > limits.enumeration * 16)
        return too_large(fmt::format("more than {} search steps and {} offsets", limits.search_steps, limits.enumeration));
    std::vector<bool> seen(static_cast<std::size_t>(layout.cosize()), false);
    for (std::int64_t i = 0; i < layout.size(); ++i) {
        const auto place = static_cast<std::size_t>(layout(i) - layout.min_offset());
        if (seen[place]) {
            for (std::int64_t j = 0;; ++j)
                if (layout(j) == layout(i)) return no("enumeration", j, i);
        }
        seen[place] = true;
    }
    return yes("enumeration");
}

// Terms of a bounded sum for `sign * layout`, with the target moved so that all strides are positive.
struct SignedTerms {
    std::vector<BoundedTerm> terms;
    struct Source {
        std::size_t mode;
        bool reflected;
    };
    std::vector<Source> sources;
    std::int64_t target = 0;

    void add(const FlatModes& modes, int sign) {
        for (std::size_t i = 0; i < modes.size(); ++i) {
            const std::int64_t d = sign * modes[i].stride;
            if (modes[i].shape == 1 || d == 0) continue;
            terms.push_back({modes[i].shape, std::abs(d)});
            sources.push_back({i, d < 0});
            if (d < 0) target -= (modes[i].shape - 1) * d;
        }
    }
    std::int64_t coordinate(std::size_t k, std::int64_t x) const { return sources[k].reflected ? terms[k].extent - 1 - x : x; }
};

// Is there i, j with offset_a + A(i) == offset_b + B(j)?
ImageAnswer inner_are_disjoint(const Layout& a, std::int64_t offset_a, const Layout& b, std::int64_t offset_b, const ImageLimits& limits) {
    if (offset_a + a.max_offset() < offset_b + b.min_offset() || offset_b + b.max_offset() < offset_a + a.min_offset())
        return yes("separate ranges");
    const FlatModes modes_a = a.modes(), modes_b = b.modes();
    SignedTerms sum;
    sum.target = offset_b - offset_a;
    sum.add(modes_a, 1);
    const std::size_t terms_a = sum.terms.size();
    sum.add(modes_b, -1);
    std::vector<std::int64_t> x_a(modes_a.size(), 0), x_b(modes_b.size(), 0);
    const SearchEnd end = find_bounded_sum(sum.terms, sum.target, limits.search_steps, [&](const std::vector<std::int64_t>& x) {
        for (std::size_t k = 0; k < x.size(); ++k) (k < terms_a ? x_a : x_b)[sum.sources[k].mode] = sum.coordinate(k, x[k]);
        return true;
    });
    if (end == SearchEnd::none) return yes("bounded-sum search");
    if (end == SearchEnd::found) return no("bounded-sum search", join_coordinate(modes_a, x_a), join_coordinate(modes_b, x_b));
    return too_large(fmt::format("more than {} search steps", limits.search_steps));
}

}  // namespace

const char* to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::yes: return "yes";
        case Verdict::no: return "no";
        case Verdict::too_large: return "too large to decide";
    }
    return "";
}

ImageAnswer is_injective(const ComposedLayout& layout, const ImageLimits& limits) {
    // Adding a constant and swizzling are injective: only the inner layout decides.
    return inner_is_injective(layout.layout(), limits);
}

ImageAnswer is_bijective_onto(const ComposedLayout& layout, std::int64_t n, const ImageLimits& limits) {
    if (layout.size() != n) return no(fmt::format("{} coordinates for {} offsets", layout.size(), n));
    const ImageAnswer injective = is_injective(layout, limits);
    if (injective.verdict != Verdict::yes) return injective;
    // n different offsets: they are 0 .. n-1 exactly if none is outside.
    const std::int64_t low = layout.offset() + layout.layout().min_offset();
    const std::int64_t high = layout.offset() + layout.layout().max_offset();
    if (layout.swizzle().is_identity()) {
        return low == 0 && high == n - 1 ? yes(injective.how + ", and the range has as many offsets as coordinates")
                                         : no(fmt::format("offsets reach from {} to {}", low, high));
    }
    if (low == 0 && high == n - 1) {
        // The inner image is 0 .. n-1; the swizzle permutes it if it permutes the aligned block in which n ends.
        const std::int64_t zzz = layout.swizzle().zzz_mask();
        const std::int64_t block = (zzz | (zzz - 1)) + 1;
        if (n % block == 0) return yes(injective.how + ", and the swizzle permutes each block of " + std::to_string(block));
    }
    if (const auto map = affine_map(layout)) {
        return map->max_value() < static_cast<std::uint64_t>(n) ? yes(injective.how + ", GF(2) maximum") : no("GF(2) maximum is outside");
    }
    if (n > limits.enumeration) return too_large(fmt::format("{} offsets to list", n));
    for (std::int64_t i = 0; i < n; ++i)
        if (layout(i) >= n) return no("enumeration", i, i);
    return yes(injective.how + ", enumeration");
}

ImageAnswer are_disjoint(const ComposedLayout& a, const ComposedLayout& b, const ImageLimits& limits) {
    if (a.swizzle() == b.swizzle()) {
        const ImageAnswer answer = inner_are_disjoint(a.layout(), a.offset(), b.layout(), b.offset(), limits);
        if (answer.verdict != Verdict::too_large) return answer;
    }
    const auto map_a = affine_map(a);
    const auto map_b = affine_map(b);
    if (map_a && map_b) {
        if (const auto joined = join(map_a->linear, map_b->linear)) {
            const auto x = joined->solve(map_a->constant ^ map_b->constant);
            if (!x) return yes("GF(2) elimination");
            const int bits = map_a->linear.in_bits();
            return no("GF(2) elimination", static_cast<std::int64_t>(*x & ((std::uint64_t{1} << bits) - 1)),
                      static_cast<std::int64_t>(*x >> bits));
        }
    }
    if (a.size() > limits.enumeration || b.size() > limits.enumeration)
        return too_large(fmt::format("{} and {} offsets to list", a.size(), b.size()));
    std::unordered_map<std::int64_t, std::int64_t> seen;
    for (std::int64_t i = 0; i < a.size(); ++i) seen.emplace(a(i), i);
    for (std::int64_t j = 0; j < b.size(); ++j)
        if (const auto it = seen.find(b(j)); it != seen.end()) return no("enumeration", it->second, j);
    return yes("enumeration");
}

ImageAnswer equal_functions(const ComposedLayout& a, const ComposedLayout& b, const ImageLimits& limits) {
    if (a.size() != b.size()) return no(fmt::format("sizes {} and {}", a.size(), b.size()));
    if (a.swizzle() == b.swizzle()) {
        const Layout ca = coalesce(a.layout()), cb = coalesce(b.layout());
        if (a.offset() == b.offset() && ca == cb) return yes("the same coalesced layout");
        if (a.offset() != b.offset()) return no("different offsets", 0, 0);
        // Coalesced forms are unique, so these differ; the first difference is at a step of some mode.
        for (const Layout* l : {&ca, &cb}) {
            std::int64_t position = 1;
            for (const Mode& m : l->modes()) {
                for (const std::int64_t i : {position, position * (m.shape - 1)})
                    if (i < a.size() && a(i) != b(i)) return no("different coalesced layouts", i, i);
                position *= m.shape;
            }
        }
        return no("different coalesced layouts");
    }
    const auto map_a = affine_map(a);
    const auto map_b = affine_map(b);
    if (map_a && map_b) {
        if (map_a->same_function(*map_b)) return yes("the same matrix over GF(2)");
        if (map_a->constant != map_b->constant) return no("matrices over GF(2)", 0, 0);
        for (int j = 0; j < map_a->linear.in_bits(); ++j)
            if (map_a->linear.column(j) != map_b->linear.column(j))
                return no("matrices over GF(2)", std::int64_t{1} << j, std::int64_t{1} << j);
    }
    if (a.size() > limits.enumeration) return too_large(fmt::format("{} offsets to list", a.size()));
    for (std::int64_t i = 0; i < a.size(); ++i)
        if (a(i) != b(i)) return no("enumeration", i, i);
    return yes("enumeration");
}

ImageAnswer contains(const ComposedLayout& layout, std::int64_t offset, const ImageLimits& limits) {
    if ((offset < 0 && !layout.is_plain()) || offset >= kMaxExtent || offset <= -kMaxExtent) return no("outside the range");
    // A swizzle is its own inverse. Where it sends the offset past 2^61, no layout follows.
    const std::int64_t inner = layout.swizzle().is_identity() ? offset : layout.swizzle()(offset);
    const auto point = Layout();
    if (inner >= kMaxExtent) return no("outside the range");
    ImageAnswer apart = inner_are_disjoint(layout.layout(), layout.offset(), point, inner, limits);
    if (apart.verdict == Verdict::yes) return no(apart.how);
    if (apart.verdict == Verdict::no) return {Verdict::yes, apart.how, std::pair{apart.witness->first, apart.witness->first}};
    if (layout.size() > limits.enumeration) return apart;
    for (std::int64_t i = 0; i < layout.size(); ++i)
        if (layout(i) == offset) return {Verdict::yes, "enumeration", std::pair{i, i}};
    return no("enumeration");
}

}  // namespace tw::layout
