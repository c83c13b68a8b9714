#include "emulate/contents.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <unordered_map>

#include "base/index.h"
#include "emulate/machine.h"
#include "ir/promise.h"

namespace tw::emulate {
namespace {

std::int64_t elements_of(const ir::Tensor& t, const std::vector<std::int64_t>& sizes) {
    std::int64_t n = 1;
    for (const ir::Expr& e : t.dims) n *= std::max<std::int64_t>(0, size_value(e, sizes).value_or(0));
    return n;
}

// The group of every row, non-decreasing.
std::vector<std::int64_t> group_numbers(std::int64_t rows, std::int64_t groups, Spread spread, std::mt19937_64& random) {
    std::vector<std::int64_t> numbers(at(rows), 0);
    if (groups < 1) return numbers;
    auto any = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
    const std::int64_t large = any(groups) / 2 * 2;
    for (std::int64_t p = 0; p < rows; ++p) {
        std::int64_t& g = numbers[at(p)];
        switch (spread) {
            case Spread::lowest: g = 0; break;
            case Spread::highest: g = groups - 1; break;
            case Spread::random: g = any(groups); break;
            case Spread::single: g = std::min(p, groups - 1); break;
            case Spread::ragged: g = any(8) ? large : any(groups) / 2 * 2; break;
        }
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

// A table of tiles as freely as the promise allows: groups are cut at every height in turn while the tiles suffice, and the order is
// mixed, the empty tiles with the others. Pre: `first` and `end` hold a table of the fewest tiles, at most `tiles`.
void cut_and_shuffle(std::vector<std::int64_t>& first, std::vector<std::int64_t>& end, std::int64_t tiles, std::int64_t width,
                     std::mt19937_64& random) {
    constexpr std::int64_t heights = 16;  // every sixteenth of the width
    auto fewest = [&](std::int64_t rows) { return (rows + width - 1) / width; };
    std::int64_t spare = tiles - static_cast<std::int64_t>(first.size()), cut = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> table;
    for (std::size_t n = 0; n < first.size();) {
        const std::int64_t stop = end[n];  // of the group
        std::int64_t p = first[n];
        while (n < first.size() && end[n] == stop) ++n;
        while (p < stop) {
            const std::int64_t height = std::min(
                stop - p, std::max<std::int64_t>(1, width * (cut * 7 % heights + 1) / heights - static_cast<std::int64_t>(random() % 2)));
            const std::int64_t more = 1 + fewest(stop - p - height) - fewest(stop - p);
            const std::int64_t taken = more <= spare ? height : std::min(stop - p, width);
            if (more <= spare) spare -= more, ++cut;
            table.emplace_back(p, p + taken);
            p += taken;
        }
    }
    table.resize(at(tiles), {0, 0});
    std::shuffle(table.begin(), table.end(), random);
    first.clear();
    end.clear();
    for (const auto& [from, to] : table) first.push_back(from), end.push_back(to);
}

// Numbers of [lo, hi), of which none from 0 up comes twice: as many as there are, then negative ones. Without a negative one in the range,
// what is missing comes again: no contents keep the promise.
void distinct_numbers(std::int64_t* row, std::int64_t count, std::int64_t lo, std::int64_t hi, Spread spread, std::mt19937_64& random) {
    const std::int64_t first = std::max<std::int64_t>(lo, 0), places = std::max<std::int64_t>(0, hi - first);
    const bool mixed = spread == Spread::random || spread == Spread::ragged;
    // Every place once, in the order of a walk by a step that has no factor in common with their number.
    std::int64_t step = places / 2 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(places + 1));
    while (step < 1 || std::gcd(step, places) > 1) ++step;
    std::int64_t at = places > 0 ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(places)) : 0;
    for (std::int64_t n = 0, taken = 0; n < count; ++n) {
        const bool none = lo < 0 && (spread == Spread::lowest || (spread == Spread::ragged && random() % 4 == 0));
        if (none || taken >= places) {
            row[n] =
                lo < 0 ? lo + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(std::min<std::int64_t>(hi, 0) - lo)) : lo;
            continue;
        }
        row[n] = mixed ? first + at : spread == Spread::highest ? hi - 1 - taken : first + taken;
        at = (at + step) % places;
        ++taken;
    }
    if (mixed) std::shuffle(row, row + count, random);
}

std::vector<std::vector<std::int64_t>> contents_for(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                                                    Spread spread, std::uint64_t seed) {
    std::vector<std::vector<std::int64_t>> contents(tensors.size());
    std::mt19937_64 random(seed * 2654435761u + 17);
    std::vector<bool> made(tensors.size(), false);
    for (std::size_t i = 0; i < tensors.size(); ++i) {  // pairs first
        const ir::Tensor& t = tensors[i];
        if (t.offsets_of >= 0) {
            const std::int64_t groups = elements_of(t, sizes) - 1;
            auto& of = contents[at(t.offsets_of)];
            if (!made[at(t.offsets_of)]) of = group_numbers(elements_of(tensors[at(t.offsets_of)], sizes), groups, spread, random);
            for (std::int64_t e = 0; e <= groups; ++e) contents[i].push_back(std::lower_bound(of.begin(), of.end(), e) - of.begin());
            made[i] = made[at(t.offsets_of)] = true;
        } else if (t.inverse_of >= 0) {
            auto& of = contents[at(t.inverse_of)];
            const auto n = elements_of(t, sizes);
            of.resize(at(n));
            contents[i].resize(at(n));
            std::iota(of.begin(), of.end(), 0);
            if (spread == Spread::highest) std::reverse(of.begin(), of.end());
            else if (spread != Spread::lowest) std::shuffle(of.begin(), of.end(), random);
            for (std::int64_t p = 0; p < n; ++p) contents[i][at(of[at(p)])] = p;
            made[i] = made[at(t.inverse_of)] = true;
        }
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {  // tables of tiles, of groups that are there or made now
        const ir::Tensor& t = tensors[i];
        if (!t.tile_ends) continue;
        auto &first = contents[at(t.tile_ends->starts)], &groups = contents[at(t.tile_ends->groups)];
        const std::int64_t tiles = elements_of(t, sizes), rows = elements_of(tensors[at(t.tile_ends->groups)], sizes);
        const auto& range = tensors[at(t.tile_ends->groups)].content_range;
        const std::int64_t least = range ? size_value(range->first, sizes).value_or(0) : 0,
                           end = range ? size_value(range->second, sizes).value_or(1) : 8;
        const bool given = made[at(t.tile_ends->groups)];
        // As many tiles as there are must do: else all rows go to one group. If they still do not, no contents keep the promise.
        for (Spread attempt : {spread, Spread::lowest}) {
            if (!given) {
                groups = group_numbers(rows, end - least, attempt, random);
                for (std::int64_t& g : groups) g += least;
            }
            first.clear();
            contents[i].clear();
            for (std::int64_t p = 0; p < rows;) {
                std::int64_t stop = p;
                while (stop < rows && groups[at(stop)] == groups[at(p)]) ++stop;
                for (; p < stop; p += t.tile_ends->width) first.push_back(p), contents[i].push_back(stop);
                p = stop;
            }
            if (static_cast<std::int64_t>(first.size()) <= tiles) break;
        }
        if ((spread == Spread::random || spread == Spread::ragged) && static_cast<std::int64_t>(first.size()) <= tiles)
            cut_and_shuffle(first, contents[i], tiles, t.tile_ends->width, random);
        first.resize(at(tiles), 0);
        contents[i].resize(at(tiles), 0);
        made[i] = made[at(t.tile_ends->starts)] = made[at(t.tile_ends->groups)] = true;
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const ir::Tensor& t = tensors[i];
        if (made[i] || !ir::has_promise(t)) continue;
        // Sorted alone: any numbers do.
        const std::int64_t lo = t.content_range ? size_value(t.content_range->first, sizes).value_or(0) : 0;
        const std::int64_t hi = t.content_range ? std::max(lo + 1, size_value(t.content_range->second, sizes).value_or(1)) : 64;
        auto& values = contents[i];
        values.resize(at(elements_of(t, sizes)));
        for (std::size_t n = 0; n < values.size(); ++n) {
            const std::int64_t any = lo + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(hi - lo));
            switch (spread) {
                case Spread::lowest: values[n] = lo; break;
                case Spread::highest: values[n] = hi - 1; break;
                case Spread::single: values[n] = lo + static_cast<std::int64_t>(n) % (hi - lo); break;
                default: values[n] = any; break;
            }
        }
        if (t.dims.empty()) continue;
        const auto row = std::max<std::int64_t>(1, size_value(t.dims.back(), sizes).value_or(1));
        for (std::size_t from = 0; t.content_distinct && from + at(row) <= values.size(); from += at(row))
            distinct_numbers(&values[from], row, t.content_range ? lo : -1, t.content_range ? hi : row + 1, spread, random);
        if (!t.content_sorted) continue;
        for (auto from = values.begin(); values.end() - from >= row; from += row) std::sort(from, from + row);
    }
    return contents;
}

bool kept(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
          const std::vector<std::vector<std::int64_t>>& contents) {
    return !broken_promise(tensors, sizes, [&](int tensor, std::int64_t n) { return contents[at(tensor)][at(n)]; });
}

}  // namespace

std::vector<std::vector<std::int64_t>> promised_contents(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                                                         Spread spread, std::uint64_t seed) {
    auto contents = contents_for(tensors, sizes, spread, seed);
    // Groups that other offsets hold may leave more tiles than the table has; all rows in one group need the fewest.
    const bool tables = std::any_of(tensors.begin(), tensors.end(), [](const ir::Tensor& t) { return t.tile_ends.has_value(); });
    if (tables && spread != Spread::lowest && !kept(tensors, sizes, contents)) return contents_for(tensors, sizes, Spread::lowest, seed);
    return contents;
}

bool promises_can_hold(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes) {
    if (std::none_of(tensors.begin(), tensors.end(), ir::has_promise)) return true;
    return kept(tensors, sizes, contents_for(tensors, sizes, Spread::lowest, 1));
}

std::optional<std::string> broken_promise(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes,
                                          const std::function<std::int64_t(int, std::int64_t)>& element) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const ir::Tensor& t = tensors[i];
        if (!ir::has_promise(t)) continue;
        const int id = static_cast<int>(i);
        const std::int64_t n = elements_of(t, sizes),
                           row = t.dims.empty() ? 1 : std::max<std::int64_t>(1, size_value(t.dims.back(), sizes).value_or(1));
        auto place = [&](std::int64_t k) {
            std::string text;
            for (std::size_t d = t.dims.size(); d-- > 0;) {
                const std::int64_t extent = std::max<std::int64_t>(1, size_value(t.dims[d], sizes).value_or(1));
                text = std::to_string(k % extent) + (text.empty() ? "" : ", ") + text;
                k /= extent;
            }
            return t.name + "[" + text + "]";
        };
        if (t.tile_ends) {
            const ir::Tensor &first = tensors[at(t.tile_ends->starts)], &groups = tensors[at(t.tile_ends->groups)];
            const std::int64_t rows = elements_of(groups, sizes);
            std::vector<bool> covered(at(rows), false);
            for (std::int64_t k = 0; k < n; ++k) {
                const std::int64_t from = element(t.tile_ends->starts, k), to = std::min(element(id, k), from + t.tile_ends->width);
                for (std::int64_t p = from; p < to; ++p) {
                    const std::string tile = "tile " + std::to_string(k) + " of " + first.name + " and " + t.name;
                    if (p < 0 || p >= rows) return tile + " reaches row " + std::to_string(p) + " of " + std::to_string(rows);
                    if (covered[at(p)]) return "row " + std::to_string(p) + " lies in " + tile + " and in an earlier one";
                    covered[at(p)] = true;
                    if (element(t.tile_ends->groups, p) != element(t.tile_ends->groups, from))
                        return tile + " has rows of two groups: " + groups.name + "[" + std::to_string(p) + "] differs from " +
                               groups.name + "[" + std::to_string(from) + "]";
                }
            }
            for (std::int64_t p = 0; p < rows; ++p) {
                if (!covered[at(p)]) return "row " + std::to_string(p) + " lies in no tile of " + first.name + " and " + t.name;
            }
        }
        std::unordered_map<std::int64_t, std::int64_t> places;  // of a row's elements from 0 up (distinct)
        std::int64_t before = 0, below = 0;  // below: how many group numbers are less than the element's index (offsets_of)
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int64_t v = element(id, k);
            const std::string said = place(k) + " is " + std::to_string(v);
            if (t.offsets_of >= 0) {
                const std::int64_t rows = elements_of(tensors[at(t.offsets_of)], sizes);
                while (below < rows && element(t.offsets_of, below) < k) ++below;
                if (v != below)
                    return said + ", but " + std::to_string(below) + " elements of " + tensors[at(t.offsets_of)].name + " are below " +
                           std::to_string(k) + " (it is sorted, and " + t.name + " holds its offsets)";
            }
            if (t.content_range) {
                const std::int64_t lo = size_value(t.content_range->first, sizes).value_or(0),
                                   hi = size_value(t.content_range->second, sizes).value_or(0);
                if (v < lo || v >= hi)
                    return said + ", outside the promised range [" + std::to_string(lo) + ", " + std::to_string(hi) + ")";
            }
            if (t.content_sorted && k % row != 0 && v < before)
                return said + " after " + std::to_string(before) + ", but " + t.name + " is promised to be sorted";
            if (t.content_distinct && k % row == 0) places.clear();
            if (t.content_distinct && v >= 0) {
                if (const auto [earlier, fresh] = places.try_emplace(v, k); !fresh)
                    return said + ", and so is " + place(earlier->second) + ", but " + t.name + " is promised to hold distinct places";
            }
            if (t.inverse_of >= 0 && (v < 0 || v >= n || element(t.inverse_of, v) != k))
                return said + ", but " + t.name + " is promised to be the inverse of " + tensors[at(t.inverse_of)].name;
            before = v;
        }
    }
    return std::nullopt;
}

std::optional<std::string> without_memory(const ir::Tensor& t, const std::vector<std::int64_t>& sizes) {
    for (std::size_t d = 0; d < t.strides.size(); ++d) {
        if (const auto stride = size_value(t.strides[d], sizes); stride && *stride < 0 && size_value(t.dims[d], sizes).value_or(0) > 1)
            return "with these sizes `" + t.name + "` has a stride of " + std::to_string(*stride);
    }
    return std::nullopt;
}

std::optional<std::string> impossible_shape(const std::vector<ir::Tensor>& tensors, const std::vector<std::int64_t>& sizes) {
    for (const ir::Tensor& t : tensors) {
        for (const ir::Expr& e : t.dims) {
            if (const auto extent = size_value(e, sizes); extent && *extent < 0)
                return "with these sizes `" + t.name + "` has a dimension of " + std::to_string(*extent);
        }
        if (auto none = without_memory(t, sizes)) return none;
    }
    return std::nullopt;
}

std::optional<std::string> broken_promise(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes,
                                          const std::vector<TensorData>& tensors) {
    for (const ir::Tensor& t : kernel.tensors) {
        if (target::info(t.dtype).is_float) continue;
        if (auto none = without_memory(t, sizes)) return none;
    }
    return broken_promise(kernel.tensors, sizes, [&](int tensor, std::int64_t n) {
        const TensorData& data = tensors[at(tensor)];
        std::int64_t place = 0;
        for (std::size_t d = data.dims.size(); d-- > 0;) {
            place += n % data.dims[d] * data.strides[d];
            n /= data.dims[d];
        }
        return static_cast<std::int64_t>(load_value(&data.bytes[at(place * target::bytes(data.dtype))], data.dtype));
    });
}

}  // namespace tw::emulate
