#include "verify/rounding_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tw::verify {

double unit_roundoff(ir::DType type) {
    const auto& facts = target::info(type);
    return facts.is_float && type != ir::DType::F64 ? std::ldexp(1.0, -facts.fraction_bits - 1) : 0.0;
}

Count Count::of(double n) {
    Count c;
    if (n > 0) c.terms.push_back({0, n});
    return c;
}

namespace {

// Both lists by monomial; a monomial that one lacks has coefficient 0 there.
template <class Combine>
Count merged(const Count& a, const Count& b, const Combine& combine) {
    Count out;
    out.open = a.open || b.open;
    out.terms.reserve(a.terms.size() + b.terms.size());
    std::size_t i = 0, j = 0;
    while (i < a.terms.size() || j < b.terms.size()) {
        const bool left = j == b.terms.size() || (i < a.terms.size() && a.terms[i].first <= b.terms[j].first);
        const bool right = i == a.terms.size() || (j < b.terms.size() && b.terms[j].first <= a.terms[i].first);
        const int monomial = left ? a.terms[i].first : b.terms[j].first;
        const double c = combine(left ? a.terms[i].second : 0.0, right ? b.terms[j].second : 0.0);
        if (c > 0) out.terms.push_back({monomial, c});
        i += left, j += right;
    }
    return out;
}

}  // namespace

Count operator+(const Count& a, const Count& b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    return merged(a, b, [](double x, double y) { return x + y; });
}

Count larger(const Count& a, const Count& b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    return merged(a, b, [](double x, double y) { return std::max(x, y); });
}

Count beyond(const Count& a, const Count& b) {
    Count out = merged(a, b, [](double x, double y) { return y - x; });
    out.open = b.open && !a.open;
    if (a.open) out.terms.clear();
    return out;
}

int Trips::symbol(const std::string& text) {
    const auto found = std::find(symbols_.begin(), symbols_.end(), text);
    if (found != symbols_.end()) return static_cast<int>(found - symbols_.begin());
    symbols_.push_back(text);
    return static_cast<int>(symbols_.size()) - 1;
}

Count Trips::times(const Count& count, int symbol) {
    Count out;
    out.open = count.open;
    for (const auto& [monomial, coefficient] : count.terms) {
        std::vector<int> factors = monomials_[static_cast<std::size_t>(monomial)];
        factors.push_back(symbol);
        std::sort(factors.begin(), factors.end());
        if (factors.size() > 4) {
            out.open = true;
            continue;
        }
        auto [it, fresh] = numbers_.try_emplace(factors, static_cast<int>(monomials_.size()));
        if (fresh) monomials_.push_back(factors);
        out = out + Count{{{it->second, coefficient}}, false};
    }
    return out;
}

Count Trips::with(const Count& count, int symbol, bool has) const {
    Count out;
    for (const auto& term : count.terms) {
        const auto& factors = monomials_[static_cast<std::size_t>(term.first)];
        if ((std::find(factors.begin(), factors.end(), symbol) != factors.end()) == has) out.terms.push_back(term);
    }
    out.open = count.open;
    return out;
}

std::string Trips::text(const Count& count) const {
    if (count.open) return "no bound derived";
    std::string out;
    for (const auto& [monomial, coefficient] : count.terms) {
        std::string term = fmt::format("{:.6g}", coefficient);
        for (const int s : monomials_[static_cast<std::size_t>(monomial)]) term += " * " + symbols_[static_cast<std::size_t>(s)];
        out += (out.empty() ? "" : " + ") + term;
    }
    return out.empty() ? "0" : out;
}

const Loss* Bound::find(Reach reach, Cause cause) const {
    for (const Loss& l : losses) {
        if (l.reach == reach && l.cause == cause) return &l;
    }
    return nullptr;
}

void Bound::add(const Loss& loss) {
    for (Loss& l : losses) {
        if (l.reach != loss.reach || l.cause != loss.cause) continue;
        if (loss.amount > l.amount) l.loc = loss.loc, l.what = loss.what;
        l.amount += loss.amount;
        l.grows |= loss.grows;
        l.unit = std::max(l.unit, loss.unit);
        return;
    }
    losses.push_back(loss);
}

void Bound::raise(const Loss& loss) {
    for (Loss& l : losses) {
        if (l.reach != loss.reach || l.cause != loss.cause) continue;
        if (loss.amount > l.amount || (loss.grows && !l.grows))
            l.amount = std::max(l.amount, loss.amount), l.loc = loss.loc, l.what = loss.what;
        l.grows |= loss.grows;
        l.unit = std::max(l.unit, loss.unit);
        return;
    }
    losses.push_back(loss);
}

Bound series(const Bound& a, const Bound& b) {
    Bound out = a;
    for (const Loss& l : b.losses) out.add(l);
    out.direct = a.direct + b.direct;
    out.inside = a.inside + b.inside;
    return out;
}

Bound either(const Bound& a, const Bound& b) {
    Bound out = a;
    for (const Loss& l : b.losses) out.raise(l);
    out.direct = larger(a.direct, b.direct);
    out.inside = larger(a.inside, b.inside);
    return out;
}

Bound through(Reach reach, const Bound& argument) {
    Bound out;
    for (Loss l : argument.losses) {
        l.reach = std::max(l.reach, reach);
        out.add(l);
    }
    out.inside = argument.inside + argument.direct;
    return out;
}

bool covers(const Bound& a, const Bound& b) {
    for (const Loss& l : b.losses) {
        const Loss* mine = a.find(l.reach, l.cause);
        if (!mine || l.unit > mine->unit || (!mine->grows && (l.grows || l.amount > mine->amount))) return false;
    }
    return beyond(a.direct, b.direct).empty() && beyond(a.inside, b.inside).empty();
}

std::string amount_text(double amount) {
    if (amount <= 0) return "0";
    for (int factor : {1, 2, 3, 5, 6, 7, 9, 10, 34}) {
        int exponent = 0;
        if (std::frexp(amount / factor, &exponent) == 0.5)
            return (factor == 1 ? "" : std::to_string(factor) + " * ") + fmt::format("2^{}", exponent - 1);
    }
    return fmt::format("{:.2g}", amount);
}

std::string text(const Bound& bound, const Trips& trips) {
    static constexpr const char* reaches[] = {"", ", in a denominator or root", ", inside a function", ", in a comparison or an integer"};
    std::string out;
    for (const Loss& l : bound.losses) {
        const char* kind = l.cause == Cause::approximation || l.cause == Cause::near_zero ? ", approximate"
                           : l.cause == Cause::matrix_sum                                 ? ", sums of the matrix unit"
                                                                                          : "";
        out += fmt::format("{}{}{} ({}{}{}{})", out.empty() ? "" : " + ", amount_text(l.amount), l.grows ? " and more with every step" : "",
                           l.what, kind, reaches[static_cast<std::size_t>(l.reach)],
                           l.loc.line ? fmt::format(", line {}", ir::line_text(l.loc)) : "");
    }
    if (!bound.direct.empty()) out += fmt::format("{}2^-24 * ({})", out.empty() ? "" : " + ", trips.text(bound.direct));
    if (!bound.inside.empty())
        out += fmt::format("{}2^-24 * ({}) inside functions and denominators", out.empty() ? "" : " + ", trips.text(bound.inside));
    return out.empty() ? "0 (nothing is rounded)" : out;
}

}  // namespace tw::verify
