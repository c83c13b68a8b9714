#include "verify/program_memory.h"

#include <algorithm>
#include <functional>

namespace tw::verify {

Poly MemoryPart::number(const std::vector<Poly>& index) const {
    Poly at(offset);
    for (std::size_t d = 0; d < index.size(); ++d) {
        if (dims[d] > 1) at = at + Poly(strides[d]) * index[d];
    }
    return at;
}

bool MemoryPart::same_as(const MemoryPart& other) const {
    if (dims != other.dims || offset != other.offset) return false;
    for (std::size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] > 1 && strides[d] != other.strides[d]) return false;
    }
    return true;
}

namespace {

// number // divisor, where the facts settle what the divisor does not divide.
Poly quotient_of(const Poly& number, std::int64_t divisor, Integers& ints, Prover& prover) {
    if (divisor == 1) return number;
    Poly whole, rest;
    for (const auto& [m, k] : number.terms) {
        const std::int64_t q = ir::floor_div(k, divisor), r = k - q * divisor;
        if (q) whole.terms[m] = q;
        if (r) rest.terms[m] = r;
    }
    if (rest.terms.empty()) return whole;
    if (const auto settled = prover.quotient_value(rest, divisor)) return whole + Poly(*settled);
    return ints.quotient(number, Poly(divisor));
}

}  // namespace

namespace {

// Each dimension of the part has its own digits of the number, in cells of `cell_of` its stride.
std::optional<Digits> digits_by(const MemoryPart& part, const Poly& number, const std::function<std::int64_t(std::int64_t)>& cell_of,
                                std::int64_t count, Integers& ints, Prover& prover) {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < part.dims.size(); ++d) {
        if (part.dims[d] > 1) order.push_back(d);
        if (part.dims[d] > 1 && part.strides[d] < 1) return std::nullopt;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return part.strides[a] > part.strides[b]; });
    Digits digits;
    digits.index.assign(part.dims.size(), Poly(0));
    std::int64_t above = count;
    for (std::size_t i = 0; i < order.size();) {
        const std::int64_t cell = cell_of(part.strides[order[i]]), extent = above / cell;
        if (cell >= above || above % cell != 0) return std::nullopt;
        const std::int64_t first = part.offset % above / cell;
        Poly left = quotient_of(number, cell, ints, prover) - Poly(first);
        if (above != count) left = left - Poly(extent) * quotient_of(number, above, ints, prover);
        std::int64_t reach = first, room = extent;
        if (first > 0) digits.inside = both(digits.inside, at_least(left, Poly(0)));
        std::int64_t step = 1;
        for (; i < order.size() && cell_of(part.strides[order[i]]) == cell; ++i) {
            const std::size_t d = order[i];
            step = part.strides[d] / cell;
            std::int64_t below = 0;  // the numbers that later dimensions of the same cell reach
            for (std::size_t j = i + 1; j < order.size() && cell_of(part.strides[order[j]]) == cell; ++j)
                below += (part.dims[order[j]] - 1) * (part.strides[order[j]] / cell);
            if (below >= step) return std::nullopt;
            const Poly digit = quotient_of(left, step, ints, prover);
            if (part.dims[d] * step != room || first > 0) digits.inside = both(digits.inside, less(digit, Poly(part.dims[d])));
            digits.index[d] = digit;
            left = left - Poly(step) * digit;
            reach += (part.dims[d] - 1) * step;
            room = step;
        }
        if (step > 1) digits.inside = both(digits.inside, equals(left, Poly(0)));
        if (reach >= extent) return std::nullopt;
        above = cell;
    }
    if (above > 1) {  // the part has one element in each of the smallest cells
        const Poly left = number - Poly(above) * quotient_of(number, above, ints, prover);
        digits.inside = both(digits.inside, equals(left, Poly(part.offset % above)));
    }
    return digits;
}

}  // namespace

// Cells are the tensor's own steps where the part's dimensions lie inside the tensor's; else the part's strides.
std::optional<Digits> digits_in(const MemoryPart& part, const Poly& number, const std::vector<std::int64_t>& steps, std::int64_t count,
                                Integers& ints, Prover& prover) {
    const auto step_of = [&](std::int64_t stride) {  // the largest step that divides it
        std::int64_t best = 1;
        for (const std::int64_t s : steps)
            if (s > best && stride % s == 0) best = s;
        return best;
    };
    if (auto digits = digits_by(part, number, step_of, count, ints, prover)) return digits;
    return digits_by(
        part, number, [](std::int64_t stride) { return stride; }, count, ints, prover);
}

}  // namespace tw::verify
