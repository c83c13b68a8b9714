#include "codegen/index_map.h"

namespace tw::codegen {

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

std::vector<int> extents_of(const std::vector<ir::DistDigit>& digits) {
    std::vector<int> out;
    for (const ir::DistDigit& d : digits) out.push_back(d.extent);
    return out;
}

std::vector<ir::DistDigit> prime_digits(const std::vector<ir::DistDigit>& digits) {
    std::vector<ir::DistDigit> out;
    for (const ir::DistDigit& d : digits) {
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

std::string digit_text(const DigitSum& sum, const std::string& x) {
    std::string out;
    const bool name = x.find_first_of(" +-*/%^&|?") == std::string::npos;
    for (const DigitSum::Term& t : sum.terms) {
        std::string s = name ? x : "(" + x + ")";
        if (t.divisor > 1) s += " / " + std::to_string(t.divisor);
        if (t.divisor * t.extent < sum.domain) s += " % " + std::to_string(t.extent);
        if (t.step != 1) s += " * " + std::to_string(t.step);
        out += (out.empty() ? "" : " + ") + s;
    }
    return out.empty() ? "0" : out;
}

std::optional<SplitMap> split(const ir::Distribution& d, const std::function<int(const std::vector<int>&)>& f) {
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

}  // namespace tw::codegen
