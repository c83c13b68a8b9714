#include "layout/bounded_sum.h"

#include <algorithm>
#include <numeric>

#include "layout/result.h"

namespace tw::layout {

namespace {

// a^-1 mod m for coprime a, m; m >= 1.
std::int64_t modular_inverse(std::int64_t a, std::int64_t m) {
    std::int64_t r0 = m, r1 = a % m, t0 = 0, t1 = 1;
    while (r1 != 0) {
        const std::int64_t q = r0 / r1;
        t0 -= q * t1;
        std::swap(t0, t1);
        r0 -= q * r1;
        std::swap(r0, r1);
    }
    return ((t0 % m) + m) % m;
}

// a * b mod m for 0 <= a, b < m < 2^62.
std::int64_t multiply_modulo(std::int64_t a, std::int64_t b, std::int64_t m) {
    __extension__ using Wide = __int128;
    return static_cast<std::int64_t>(static_cast<Wide>(a) * b % m);
}

struct Search {
    std::vector<BoundedTerm> terms;        // by descending stride
    std::vector<int> original;             // where each came from
    std::vector<std::int64_t> span_below;  // largest sum of the terms after i
    std::vector<std::int64_t> gcd_below;   // of their strides; 0 if there are none
    std::vector<std::int64_t> solution;    // in the original order
    std::int64_t steps_left = 0;
    const std::function<bool(const std::vector<std::int64_t>&)>* accept = nullptr;

    SearchEnd from(std::size_t i, std::int64_t target) {
        if (i == terms.size()) {
            if (target != 0) return SearchEnd::none;
            return (*accept)(solution) ? SearchEnd::found : SearchEnd::none;
        }
        const BoundedTerm& t = terms[i];
        // x * stride must lie in [target - span_below, target].
        const std::int64_t least = target - span_below[i];
        std::int64_t low = least <= 0 ? 0 : ceil_div(least, t.stride);
        const std::int64_t high = target < 0 ? -1 : std::min(t.extent - 1, target / t.stride);
        if (low > high) return SearchEnd::none;
        // target - x * stride must be a multiple of g: x is fixed modulo g / gcd(stride, g).
        const std::int64_t g = gcd_below[i];
        std::int64_t step = 1;
        if (g == 0) {
            if (target % t.stride != 0) return SearchEnd::none;
            low = target / t.stride;
            if (low > high) return SearchEnd::none;
        } else {
            const std::int64_t h = std::gcd(t.stride, g);
            if (target % h != 0) return SearchEnd::none;
            step = g / h;
            const std::int64_t residue = multiply_modulo(target / h % step, modular_inverse(t.stride / h % step, step), step);
            low += ((residue - low) % step + step) % step;
        }
        for (std::int64_t x = low; x <= high; x += step) {
            if (steps_left-- <= 0) return SearchEnd::gave_up;
            solution[original[i]] = x;
            const SearchEnd end = from(i + 1, target - x * t.stride);
            if (end != SearchEnd::none) return end;
        }
        return SearchEnd::none;
    }
};

}  // namespace

SearchEnd find_bounded_sum(const std::vector<BoundedTerm>& terms, std::int64_t target, std::int64_t max_steps,
                           const std::function<bool(const std::vector<std::int64_t>&)>& accept) {
    Search search;
    search.original.resize(terms.size());
    std::iota(search.original.begin(), search.original.end(), 0);
    std::stable_sort(search.original.begin(), search.original.end(), [&](int a, int b) { return terms[a].stride > terms[b].stride; });
    for (int i : search.original) search.terms.push_back(terms[i]);
    search.span_below.assign(terms.size(), 0);
    search.gcd_below.assign(terms.size(), 0);
    for (std::size_t i = terms.size(); i-- > 1;) {
        const BoundedTerm& t = search.terms[i];
        search.span_below[i - 1] = search.span_below[i] + (t.extent - 1) * t.stride;
        search.gcd_below[i - 1] = std::gcd(search.gcd_below[i], t.stride);
    }
    search.solution.assign(terms.size(), 0);
    search.steps_left = max_steps;
    search.accept = &accept;
    return search.from(0, target);
}

}  // namespace tw::layout
