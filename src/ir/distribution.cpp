#include "ir/distribution.h"

#include <algorithm>
#include <map>
#include <set>

namespace tw::ir {
namespace {

int product(const std::vector<DistDigit>& digits) {
    int n = 1;
    for (const DistDigit& d : digits) n *= d.extent;
    return n;
}

void add_digits(const std::vector<DistDigit>& digits, int index, std::vector<int>& coordinate) {
    for (const DistDigit& d : digits) {
        if (d.dim >= 0) coordinate[static_cast<std::size_t>(d.dim)] += (index % d.extent) * d.step;
        index /= d.extent;
    }
}

std::vector<DistDigit> merged(const std::vector<DistDigit>& digits) {
    std::vector<DistDigit> out;
    for (DistDigit d : digits) {
        if (d.extent == 1) continue;
        if (d.dim < 0) d.step = 0;
        if (!out.empty()) {
            DistDigit& last = out.back();
            const bool continues = last.dim == d.dim && (d.dim < 0 || last.step * last.extent == d.step);
            if (continues) {
                last.extent *= d.extent;
                continue;
            }
        }
        out.push_back(d);
    }
    return out;
}

}  // namespace

int Distribution::threads() const { return product(thread); }
int Distribution::values() const { return product(value); }

int Distribution::elements() const {
    int n = 1;
    for (int e : shape) n *= e;
    return n;
}

std::vector<int> Distribution::at(int t, int v) const {
    std::vector<int> coordinate(shape.size(), 0);
    add_digits(thread, t, coordinate);
    add_digits(value, v, coordinate);
    return coordinate;
}

std::vector<std::pair<int, int>> Distribution::owners(const std::vector<int>& coordinate) const {
    std::vector<std::pair<int, int>> result;
    for (int t = 0; t < threads(); ++t) {
        for (int v = 0; v < values(); ++v) {
            if (at(t, v) == coordinate) result.emplace_back(t, v);
        }
    }
    return result;
}

Distribution normalized(const Distribution& d) { return {d.shape, merged(d.thread), merged(d.value)}; }

bool same_map(const Distribution& a, const Distribution& b) {
    if (a.shape != b.shape) return false;
    const Distribution x = normalized(a), y = normalized(b);
    if (x == y) return true;
    if (x.threads() != y.threads() || x.values() != y.values()) return false;
    for (int t = 0; t < x.threads(); ++t) {
        for (int v = 0; v < x.values(); ++v) {
            if (x.at(t, v) != y.at(t, v)) return false;
        }
    }
    return true;
}

bool covers_exactly(const Distribution& d) {
    // Tables of what threads and values contribute, so that the product of both costs one addition per dimension.
    const std::size_t rank = d.shape.size();
    auto table = [&](const std::vector<DistDigit>& digits, int count) {
        std::vector<int> coordinates(static_cast<std::size_t>(count) * rank, 0), one(rank);
        for (int i = 0; i < count; ++i) {
            std::fill(one.begin(), one.end(), 0);
            add_digits(digits, i, one);
            std::copy(one.begin(), one.end(), coordinates.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * rank));
        }
        return coordinates;
    };
    const int threads = d.threads(), values = d.values();
    const std::vector<int> of_thread = table(d.thread, threads), of_value = table(d.value, values);
    std::vector<int> holder(static_cast<std::size_t>(d.elements()), -1);  // the last thread seen with the element
    int covered = 0;
    for (int t = 0; t < threads; ++t) {
        for (int v = 0; v < values; ++v) {
            std::size_t index = 0;
            for (std::size_t i = 0; i < rank; ++i) {
                const int c = of_thread[static_cast<std::size_t>(t) * rank + i] + of_value[static_cast<std::size_t>(v) * rank + i];
                if (c < 0 || c >= d.shape[i]) return false;
                index = index * static_cast<std::size_t>(d.shape[i]) + static_cast<std::size_t>(c);
            }
            if (holder[index] == t) return false;
            if (holder[index] < 0) ++covered;
            holder[index] = t;
        }
    }
    return covered == d.elements();
}

Distribution sliced(const Distribution& d, int dim) {
    Distribution out;
    out.shape = d.shape;
    out.shape.erase(out.shape.begin() + dim);
    for (DistDigit digit : d.thread) {
        if (digit.dim == dim) digit = {digit.extent, -1, 0};
        if (digit.dim > dim) --digit.dim;
        out.thread.push_back(digit);
    }
    for (DistDigit digit : d.value) {
        if (digit.dim == dim) continue;
        if (digit.dim > dim) --digit.dim;
        out.value.push_back(digit);
    }
    return out;
}

std::optional<Distribution> windowed(const Distribution& d, int dim, int extent) {
    if (extent < 1 || d.shape[static_cast<std::size_t>(dim)] % extent != 0) return std::nullopt;
    Distribution out;
    out.shape = d.shape;
    out.shape[static_cast<std::size_t>(dim)] = extent;
    for (const DistDigit& digit : d.thread) {
        if (digit.dim == dim && digit.step * digit.extent > extent && digit.extent > 1) return std::nullopt;
        out.thread.push_back(digit);
    }
    for (DistDigit digit : d.value) {
        if (digit.dim != dim || digit.step * digit.extent <= extent) {
            out.value.push_back(digit);
            continue;
        }
        if (digit.step >= extent) {
            if (digit.step % extent != 0) return std::nullopt;
            continue;  // chooses the window
        }
        if (extent % digit.step != 0 || digit.extent % (extent / digit.step) != 0) return std::nullopt;
        digit.extent = extent / digit.step;
        out.value.push_back(digit);
    }
    return out;
}

std::optional<Distribution> gathered_by_quads(const Distribution& d) {
    Distribution out = normalized(d);
    const int last = static_cast<int>(out.shape.size()) - 1;
    if (last < 0 || out.thread.empty() || out.thread[0] != DistDigit{4, last, 2}) return std::nullopt;
    if (out.value.empty() || out.value[0] != DistDigit{2, last, 1}) return std::nullopt;
    DistDigit* runs = nullptr;
    for (auto* digits : {&out.thread, &out.value}) {
        for (std::size_t i = 0; i < digits->size(); ++i) {
            DistDigit& digit = (*digits)[i];
            if (digit.dim < 0) return std::nullopt;
            if (i == 0 || digit.dim != last) continue;
            if (digit.step % 8 != 0) return std::nullopt;
            if (digits == &out.value && digit.step == 8 && digit.extent % 4 == 0) runs = &digit;
        }
    }
    if (!runs) return std::nullopt;
    out.thread[0].step = 8;
    out.value[0].extent = 8;
    *runs = {runs->extent / 4, last, 32};
    return out;
}

Distribution permuted(const Distribution& d, const std::vector<int>& perm) {
    Distribution out = d;
    std::vector<int> where(perm.size());
    for (std::size_t i = 0; i < perm.size(); ++i) {
        out.shape[i] = d.shape[static_cast<std::size_t>(perm[i])];
        where[static_cast<std::size_t>(perm[i])] = static_cast<int>(i);
    }
    for (auto* digits : {&out.thread, &out.value}) {
        for (DistDigit& digit : *digits) {
            if (digit.dim >= 0) digit.dim = where[static_cast<std::size_t>(digit.dim)];
        }
    }
    return out;
}

std::optional<Distribution> blocked(const std::vector<int>& shape, int threads, int vector) {
    Distribution d;
    d.shape = shape;
    if (shape.empty()) {
        d.thread.push_back({threads, -1, 0});
        return d;
    }
    const int last = static_cast<int>(shape.size()) - 1;
    if (vector < 1 || shape[static_cast<std::size_t>(last)] % vector != 0) return std::nullopt;
    if (vector > 1) d.value.push_back({vector, last, 1});
    int left = threads;
    for (int dim = last; dim >= 0; --dim) {
        int step = dim == last ? vector : 1;
        int units = shape[static_cast<std::size_t>(dim)] / step;
        int across = 1;  // the largest divisor of both: units that different threads take
        for (int c = std::min(units, left); c >= 1; --c) {
            if (units % c == 0 && left % c == 0) {
                across = c;
                break;
            }
        }
        if (across > 1) d.thread.push_back({across, dim, step});
        if (units / across > 1) d.value.push_back({units / across, dim, step * across});
        left /= across;
    }
    if (left > 1) d.thread.push_back({left, -1, 0});
    return d;
}

Distribution tiled_fragment(const target::FragmentMap& map, int rows, int cols, int warps_m, int warps_n) {
    Distribution d;
    d.shape = {rows, cols};
    auto convert = [](const target::FragmentDigit& f) {
        if (f.row_step != 0) return DistDigit{f.size, 0, f.row_step};
        if (f.col_step != 0) return DistDigit{f.size, 1, f.col_step};
        return DistDigit{f.size, -1, 0};
    };
    for (const auto& f : map.thread_digits) d.thread.push_back(convert(f));
    for (const auto& f : map.value_digits) d.value.push_back(convert(f));
    const int rows_per_warp = rows / warps_m, cols_per_warp = cols / warps_n;
    if (warps_m > 1) d.thread.push_back({warps_m, 0, rows_per_warp});
    if (warps_n > 1) d.thread.push_back({warps_n, 1, cols_per_warp});
    if (cols_per_warp > map.cols) d.value.push_back({cols_per_warp / map.cols, 1, map.cols});
    if (rows_per_warp > map.rows) d.value.push_back({rows_per_warp / map.rows, 0, map.rows});
    return d;
}

std::string to_string(const Distribution& d) {
    std::string s = "(";
    for (std::size_t i = 0; i < d.shape.size(); ++i) s += (i ? "," : "") + std::to_string(d.shape[i]);
    s += ") t[";
    auto digits = [&](const std::vector<DistDigit>& list) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            const DistDigit& g = list[i];
            s += (i ? " " : "") + std::to_string(g.extent);
            s += g.dim < 0 ? std::string(":copy") : ":d" + std::to_string(g.dim) + "*" + std::to_string(g.step);
        }
    };
    digits(d.thread);
    s += "] v[";
    digits(d.value);
    return s + "]";
}

}  // namespace tw::ir
