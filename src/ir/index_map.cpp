#include "ir/index_map.h"

#include <map>

namespace tw::ir {

namespace {

std::vector<int> primes_of(int n) {
    std::vector<int> out;
    for (int p = 2; p * p <= n; ++p) {
        while (n % p == 0) out.push_back(p), n /= p;
    }
    if (n > 1) out.push_back(n);
    return out;
}

}  // namespace

int DigitSum::at(int x) const {
    int r = base;
    for (const Term& t : terms) r += x / t.divisor % t.extent * t.step;
    return r;
}

std::vector<int> extents_of(const std::vector<DistDigit>& digits) {
    std::vector<int> out;
    for (const DistDigit& d : digits) out.push_back(d.extent);
    return out;
}

std::vector<DistDigit> prime_digits(const std::vector<DistDigit>& digits) {
    std::vector<DistDigit> out;
    for (const DistDigit& d : digits) {
        int step = d.step;
        for (int p : primes_of(d.extent)) {
            out.push_back({p, d.dim, d.dim < 0 ? 0 : step});
            step *= p;
        }
    }
    return out;
}

std::optional<DigitSum> fit_digits(const std::vector<int>& table, const std::vector<int>& extents) {
    DigitSum sum;
    sum.domain = static_cast<int>(table.size());
    sum.base = table.empty() ? 0 : table[0];
    int divisor = 1;
    for (int extent : extents) {
        for (int p : primes_of(extent)) {
            if (divisor >= sum.domain) break;
            const int step = table[static_cast<std::size_t>(divisor)] - sum.base;
            DigitSum::Term* last = sum.terms.empty() ? nullptr : &sum.terms.back();
            if (last && last->divisor * last->extent == divisor && last->step * last->extent == step) last->extent *= p;
            else sum.terms.push_back({divisor, p, step});
            divisor *= p;
        }
    }
    for (int x = 0; x < sum.domain; ++x) {
        if (sum.at(x) != table[static_cast<std::size_t>(x)]) return std::nullopt;
    }
    std::erase_if(sum.terms, [](const DigitSum::Term& t) { return t.step == 0 || t.extent == 1; });
    return sum;
}

std::optional<SplitMap> split(const Distribution& d, const std::function<int(const std::vector<int>&)>& f) {
    SplitMap map;
    const int threads = d.threads(), values = d.values();
    const int origin = f(d.at(0, 0));
    std::vector<int> by_thread;
    by_thread.reserve(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) by_thread.push_back(f(d.at(t, 0)) - origin);
    for (int v = 0; v < values; ++v) map.value.push_back(f(d.at(0, v)));
    for (int t = 0; t < threads; ++t) {
        for (int v = 0; v < values; ++v) {
            if (f(d.at(t, v)) != by_thread[static_cast<std::size_t>(t)] + map.value[static_cast<std::size_t>(v)]) return std::nullopt;
        }
    }
    auto fitted = fit_digits(by_thread, extents_of(d.thread));
    if (!fitted) return std::nullopt;
    map.thread = *std::move(fitted);
    return map;
}

std::optional<std::vector<int>> held_slots(const Distribution& from, const std::vector<int>& dims, const std::vector<int>& offset,
                                           const Distribution& d) {
    if (from.threads() != d.threads()) return std::nullopt;
    auto wanted = [&](const std::vector<int>& c) {
        std::vector<int> want(from.shape.size());
        for (std::size_t i = 0; i < want.size(); ++i)
            want[i] = from.shape[i] == 1
                          ? 0
                          : c[static_cast<std::size_t>(dims.empty() ? static_cast<int>(i) : dims[i])] + (offset.empty() ? 0 : offset[i]);
        return want;
    };
    std::map<std::vector<int>, int> held;
    for (int v = 0; v < from.values(); ++v) held.emplace(from.at(0, v), v);
    std::vector<int> out;
    for (int v = 0; v < d.values(); ++v) {
        auto it = held.find(wanted(d.at(0, v)));
        if (it == held.end()) return std::nullopt;
        out.push_back(it->second);
        for (int t = 1; t < d.threads(); ++t) {
            if (from.at(t, it->second) != wanted(d.at(t, v))) return std::nullopt;
        }
    }
    return out;
}

}  // namespace tw::ir
