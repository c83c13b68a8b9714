// Pointwise groups and groups with reductions: blocks over what is kept, loops over what is folded, one pass for each level of reductions
// that depend on one another.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/pairs.h"
#include "graph/writer.h"

namespace tw::graph {

namespace {

const char* identity(const std::string& fn) {
    return fn == "max" ? "float(\"-inf\")" : fn == "min" ? "float(\"inf\")" : fn == "prod" ? "1.0" : "0.0";
}

std::string combine(const std::string& fn, const std::string& a, const std::string& b) {
    if (fn == "max") return fmt::format("tw.maximum({}, {})", a, b);
    if (fn == "min") return fmt::format("tw.minimum({}, {})", a, b);
    return fmt::format("{} {} {}", a, fn == "prod" ? "*" : "+", b);
}

// A divisor of n near to `wanted`, or `wanted`: parts of one length are seen to add up to the whole.
std::int64_t equal_parts(std::int64_t n, std::int64_t wanted) {
    for (std::int64_t far = 0; far <= 3 * wanted; ++far) {
        if (n % (wanted + far) == 0) return wanted + far;
        if (4 * far <= 3 * wanted && n % (wanted - far) == 0) return wanted - far;
    }
    return wanted;
}

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kHeldRow = 8192;    // elements of a row in registers
constexpr std::int64_t kNestedRow = 8192;  // of a row that is one of several which are folded together, a chunk at a time

class Tiles {
public:
    explicit Tiles(Writer& w) : w_(w), g_(w.g), pairs_(w) {}

    std::function<void(const Value&)> store;  // in place of storing the root

    // One row or several in registers, each a line of the root.
    bool holds_rows() const { return !g_.reduced.empty() && g_.reduced.contains(g_.order.back()) && in_registers() && stores_everywhere(); }

    void write() {
        find_levels();
        w_.family = reductions_.empty() ? "pointwise" : "reduction";
        choose_tile();
        if (w_.failed) return;
        for (int level = 1; level <= deepest_; ++level) pass(level);
        const bool of_all = stores_everywhere();
        if (of_all) begin_loops();
        if (store) store(w_.value(g_.root));
        else w_.store(w_.value(g_.root), split_);
        if (of_all) end_loops();
    }

    bool split() const { return split_; }

    // Its rows stay on the chip. That is best for few rows, too: one launch, and a block has no more than 224 KB of them to read.
    bool stages() {
        find_levels();
        return staged_operand() >= 0;
    }

private:
    void find_levels() {
        std::map<int, int> level;
        const bool again = !in_registers();
        for (const int m : g_.members) {
            int l = 0;
            for (const int q : w_.prim(m).in)
                if (const auto found = level.find(q); found != level.end()) l = std::max(l, found->second);
            if (w_.prim(m).kind == Kind::reduce) {
                if (const int with = again && w_.prim(m).dtype != "f64" ? pairs_.find(m) : -1; with >= 0) {
                    l = level.at(with);
                } else {
                    reductions_.emplace_back(m, ++l);
                    deepest_ = std::max(deepest_, l);
                }
            }
            level[m] = l;
        }
    }

    // The folded line is one dimension that a block holds: no pass over it reads it again.
    bool in_registers() const {
        if (g_.order.empty() || g_.reduced.size() != 1) return false;
        return g_.reduced.contains(g_.order.back()) ? g_.size.at(g_.order.back()) <= kHeldRow : columns_held();
    }

    // Short columns of much data, that are needed again after they are folded.
    bool columns_held() const {
        const std::size_t n = g_.order.size();
        if (n < 2 || !g_.reduced.contains(g_.order[n - 2]) || g_.reduced.size() != 1 || picks() || !stores_everywhere()) return false;
        const std::int64_t rows = g_.size.at(g_.order[n - 2]), columns = g_.size.at(g_.order[n - 1]);
        return rows >= 8 && rows <= 256 && power_of_two(rows) == rows && columns >= 128 && g_.kept() >= 264 * 128;
    }

    // The root has atoms that are folded: the last pass goes over them again.
    bool stores_everywhere() const {
        for (const Place& place : g_.output.places)
            if (g_.reduced.contains(place.atom)) return true;
        return false;
    }

    bool picks() const {
        return std::any_of(g_.members.begin(), g_.members.end(), [&](int m) { return w_.prim(m).kind == Kind::pick; });
    }

    void choose_tile() {
        const std::size_t n = g_.order.size();
        std::vector<GridAxis> grid;
        if (n == 0) {
            w_.threads = 32;
            w_.grid({});
            return;
        }
        if (picks() && g_.reduced.empty()) {
            w_.threads = 32;
            for (std::size_t i = n; i-- > 0;) {
                w_.at[g_.order[i]] = fmt::format("b{}", i);
                grid.push_back(w_.blocks(w_.at[g_.order[i]], g_.size.at(g_.order[i]), 1));
            }
            w_.grid(grid);
            return;
        }
        if (stage()) return;
        const int inner = g_.order[n - 1];
        const std::int64_t extent = g_.size.at(inner);
        const bool folded = g_.reduced.contains(inner);
        split_ = !reductions_.empty() && deepest_ == 1 && reductions_.size() == 1 && pairs_.none() &&
                 w_.prim(reductions_[0].first).fn == "sum" && !stores_everywhere() && g_.kept() < 256 && g_.folded() >= 32768 &&
                 !wide_within() && linear_above();
        std::int64_t wide = 0, rows = 1;
        bool again = false, few = false;
        if (g_.reduced.empty()) {
            // A vector of 16 bytes a thread, as many blocks as fit: kernels/activations.py was measured so.
            // Of 128 threads: 0.5% faster than of 256 (L1-19, bench/results/h200/kernelbench/variants.json).
            w_.threads = 128;
            const std::int64_t tile = 4 * w_.threads;
            wide = std::min<std::int64_t>(power_of_two(extent), tile);
            if (n > 1) rows = std::min(std::max<std::int64_t>(1, tile / wide), power_of_two(g_.size.at(g_.order[n - 2])));
            if (g_.members.size() <= 6 && wide * rows == tile) w_.blocks_per_sm = 16;
        } else if (folded) {
            const bool alone = g_.reduced.size() == 1;
            held_ = in_registers() && !split_;
            wide = held_ ? std::max<std::int64_t>(32, power_of_two(extent)) : std::min<std::int64_t>(power_of_two(extent), 2048);
            // Long rows that are read twice: one block a multiprocessor, so that the second pass finds its row in L2 (132 rows in 40 MB).
            again = !held_ && alone && !split_ && !picks() && (deepest_ > 1 || stores_everywhere()) && extent >= 16384 && extent <= 75000;
            if (again) wide = 8192;
            // Several rows at a time: a last part of a row that is not full is shown to be right where it is the only one.
            if (!held_ && !alone && !split_ && extent % wide != 0 && extent <= kNestedRow) wide = power_of_two(extent);
            // Few lines in f64, that only one block may add up each.
            few = !held_ && !again && wide_within() && g_.kept() < 264;
            if (few) wide = std::min<std::int64_t>(power_of_two(extent), 4096);
            const bool row = n > 1 && !g_.reduced.contains(g_.order[n - 2]) && !picks() && !split_;
            if (held_ && row) rows = std::min(std::max<std::int64_t>(1, 4096 / wide), power_of_two(g_.size.at(g_.order[n - 2])));
            // Several rows at a time, of which each block would read the same operand anew.
            if (!held_ && !again && !few && alone && row && deepest_ == 1 && reductions_.size() == 1 && pairs_.none() &&
                !stores_everywhere() && wide == 2048 && g_.size.at(g_.order[n - 2]) % kRows == 0 && g_.kept() >= 264 * kRows &&
                shared_by_rows(g_.order[n - 2], inner)) {
                rows = kRows;
                wide = 1024;
                w_.blocks_per_sm = 4;
            }
        } else {
            const std::int64_t blocks = g_.kept() / std::max<std::int64_t>(1, extent);
            wide = std::min<std::int64_t>(power_of_two(extent), blocks * ((extent + 511) / 512) >= 264 ? 512 : 128);
            w_.threads = 128;
            // Few columns: a block has several rows at a time, so that enough is on its way.
            held_ = columns_held();
            const bool under = n > 1 && g_.reduced.size() == 1 && g_.reduced.contains(g_.order[n - 2]) && !split_ && !picks();
            if (held_) {
                under_ = g_.size.at(g_.order[n - 2]);
                wide = std::min<std::int64_t>(128, 8192 / under_);  // 32 registers a thread
                if (under_ > 64 && g_.members.size() <= 12) w_.blocks_per_sm = 3;
            } else if (under && blocks * ((extent + 127) / 128) < 132 && g_.size.at(g_.order[n - 2]) % 64 == 0) {
                under_ = 64;
                wide = 32;
            } else if (under && deepest_ == 1 && pairs_.none() && !stores_everywhere() && extent >= 256 &&
                       g_.size.at(g_.order[n - 2]) % 8 == 0) {
                // Measured: tiles of 16 rows of 128 with all threads resident are the fastest; two vectors a thread are on their way.
                under_ = g_.size.at(g_.order[n - 2]) % 16 == 0 ? 16 : 8;
                wide = 2048 / under_;
                if (g_.members.size() <= 4) w_.blocks_per_sm = 8;
            }
        }
        wide = std::max<std::int64_t>(wide, 32);
        // Parts of a long line that are all full: as above.
        if (split_ && folded && extent % wide != 0 && g_.kept() * (g_.folded() / extent) < 264)
            for (std::int64_t even = wide / 2; even >= 128; even /= 2)
                if (extent % even == 0) {
                    wide = even;
                    break;
                }
        w_.threads = static_cast<int>(std::clamp<std::int64_t>(wide * rows / 4, 32, g_.reduced.empty() || folded ? 256 : 128));
        if (wide > 4096) w_.threads = 512;
        if (under_ > 0) w_.threads = under_ <= 16 || held_ ? 256 : 512;
        if (few) w_.threads = static_cast<int>(std::max<std::int64_t>(32, wide / 4));
        if (again) {
            w_.threads = 1024;
            w_.blocks_per_sm = 1;
        }
        place_axes(inner, wide, rows, grid);
    }

    // The one large operand whose rows are folded, where rows fit the shared memory of a block or a cluster of blocks and are needed again
    // after a fold; -1: none. Other operands of the folded atom have no more than a row.
    int staged_operand() const {
        const std::size_t n = g_.order.size();
        if (!w_.p.sizes.empty() || reductions_.empty() || n < 1 || n > 3 || g_.reduced.size() != 1 || !g_.reduced.contains(g_.order.back()))
            return -1;
        if (picks() || wide_within() || (deepest_ == 1 && !stores_everywhere())) return -1;
        const int inner = g_.order.back();
        const std::int64_t extent = g_.size.at(inner);
        if (extent <= kHeldRow || extent > kClusterRow) return -1;
        for (const int a : g_.order)
            if (a != inner && g_.size.at(a) > 65535) return -1;
        int operand = -1;
        for (const auto& [id, read] : g_.reads) {
            const auto has = [&places = read.places](int atom) {
                return std::any_of(places.begin(), places.end(), [&](const Place& p) { return p.atom == atom; });
            };
            if (!has(inner)) continue;
            if (n > 1 && std::none_of(g_.order.begin(), g_.order.end(), [&](int a) { return a != inner && has(a); })) continue;
            const Place& last = read.places.back();
            if (operand >= 0 || w_.prim(id).dtype != "f32" || last.atom != inner || last.stride != 1 || last.start != 0 ||
                last.extent != extent)
                return -1;
            operand = id;
        }
        return operand;
    }

    // Rows that stay in shared memory: copied once, folded as they arrive, folded again or written from there. The forms and their sizes
    // are those of kernels/softmax_sm90.py, measured (docs/performance/memory.md): 64 KB a block as far as eight blocks go, so that three
    // share a multiprocessor, then two blocks, then one.
    bool stage() {
        const int operand = staged_operand();
        if (operand < 0) return false;
        const int inner = g_.order.back();
        const std::int64_t extent = g_.size.at(inner), kilobytes = (extent * 4 + 1023) / 1024;
        const auto parts = [](std::int64_t all, std::int64_t each) { return static_cast<int>((all + each - 1) / each); };
        blocks_ = kilobytes <= 512 ? parts(kilobytes, 64) : kilobytes <= 784 ? 7 : 8;
        w_.cluster = blocks_;
        w_.blocks_per_sm = kilobytes <= 512 ? 3 : kilobytes <= 784 ? 2 : 1;
        w_.threads = kilobytes <= 512 ? 256 : 512;
        const std::int64_t wide = 4 * w_.threads;
        chunks_ = (extent + blocks_ * wide - 1) / (blocks_ * wide);
        const Read& read = g_.reads.at(operand);
        bool vectors = read.offset % 4 == 0;
        for (const Place& place : read.places) vectors = vectors && (place.atom == inner || place.stride % 4 == 0);
        std::string axes = "rank", counts = std::to_string(blocks_);
        std::vector<GridAxis> grid;
        for (std::size_t i = g_.order.size() - 1; i-- > 0;) {
            w_.at[g_.order[i]] = fmt::format("b{}", i);
            grid.push_back({fmt::format("b{}", i), g_.size.at(g_.order[i])});
            axes += ", " + grid.back().name;
            counts += fmt::format(", {}", grid.back().count);
        }
        if (blocks_ > 1) w_.line(fmt::format("{} = tw.grid({})", axes, counts));
        else w_.grid(grid);
        w_.line(fmt::format("row = tw.shared(f32, ({}, {}))", chunks_, wide));
        std::size_t states = reductions_.size();
        for (const auto& [id, level] : reductions_) states += pairs_.of(id) != nullptr ? 1 : 0;
        if (blocks_ > 1) w_.line(fmt::format("parts = tw.shared(f32, ({},))", states));
        const std::string start = blocks_ > 1 ? fmt::format("(rank * {} + c * {})", chunks_ * wide, wide) : fmt::format("c * {}", wide);
        w_.tile.push_back({inner, start, wide, extent != blocks_ * chunks_ * wide});
        w_.open(fmt::format("for c in tw.range({}):", chunks_));
        w_.line(fmt::format("tw.cp_async(row[c], {})", w_.place_of(read)));
        w_.line("tw.cp_async_commit()");
        w_.close();
        w_.staged[operand] = fmt::format("tw.load(row[c], layout=tw.blocked(vector={}))", vectors ? 4 : 1);
        return true;
    }

    // What each block of a cluster has of its part of a row becomes that of the row.
    void unite(const std::vector<std::pair<std::string, std::string>>& folds) {
        if (blocks_ <= 1) return;
        const int first = next_state_;
        for (const auto& [fn, s] : folds) w_.line(fmt::format("tw.store(parts[{}], {})", next_state_++, s));
        w_.line("tw.cluster_sync()");
        for (std::size_t i = 0; i < folds.size(); ++i) {
            const auto& [fn, s] = folds[i];
            w_.line(fmt::format("{} = tw.full(f32, (), {})", s, identity(fn)));
            w_.open(fmt::format("for q in tw.unroll({}):", blocks_));
            w_.line(fmt::format("{} = {}", s, combine(fn, s, fmt::format("tw.load(parts[{}], rank=q)", first + static_cast<int>(i)))));
            w_.close();
        }
    }

    void unite_exponentials(const std::string& top, const std::string& sum) {
        if (blocks_ <= 1) return;
        const std::string part = w_.fresh("top"), more = w_.fresh("top");
        const int at = next_state_;
        next_state_ += 2;
        w_.line(fmt::format("tw.store(parts[{}], {})", at, top));
        w_.line(fmt::format("tw.store(parts[{}], {})", at + 1, sum));
        w_.line("tw.cluster_sync()");
        w_.line(fmt::format("{} = tw.full(f32, (), -3.0e38)", top));
        w_.line(fmt::format("{} = tw.full(f32, (), 0.0)", sum));
        w_.open(fmt::format("for q in tw.range({}, unroll=True):", blocks_));
        w_.line(fmt::format("{} = tw.load(parts[{}], rank=q)", part, at));
        w_.line(fmt::format("{} = tw.maximum({}, {})", more, top, part));
        w_.line(
            fmt::format("{0} = {0} * tw.exp({1} - {2}) + tw.load(parts[{3}], rank=q) * tw.exp({4} - {2})", sum, top, more, at + 1, part));
        w_.line(fmt::format("{} = {}", top, more));
        w_.close();
    }

    void place_axes(int inner, std::int64_t wide, std::int64_t rows, std::vector<GridAxis>& grid) {
        const std::size_t n = g_.order.size();
        const std::int64_t extent = g_.size.at(inner);
        const bool folded = g_.reduced.contains(inner);
        std::string start = "0";
        if (!folded) {
            grid.push_back(w_.blocks("j", extent, wide));
            start = grid.back().count == 1 ? "0" : fmt::format("j * {}", wide);
            if (grid.back().count == 1) grid.pop_back();
        } else if (split_) {
            const std::int64_t chunks = (extent + wide - 1) / wide;
            steps_ = std::max<std::int64_t>(1, std::min<std::int64_t>(16, extent / wide));
            if (extent % wide == 0) steps_ = equal_parts(chunks, steps_);
            // A last chunk that is not full stays with the others where there are blocks enough: the number of elements that a block adds
            // is then seen to be the same for all.
            if (extent % wide != 0 && g_.kept() * (g_.folded() / extent) >= 264) steps_ = chunks;
            grid.push_back(w_.blocks("part", extent, wide * steps_));
            start = "c";
        } else if (!held_) {
            start = fmt::format("c * {}", wide);
        }
        if (under_ > 0) w_.tile.push_back({g_.order[n - 2], held_ ? "0" : fmt::format("c * {}", under_), under_});
        if (rows > 1) {
            const int outer = g_.order[n - 2];
            grid.push_back(w_.blocks("m", g_.size.at(outer), rows));
            w_.tile.push_back({outer, grid.back().count == 1 ? "0" : fmt::format("m * {}", rows), rows});
            if (grid.back().count == 1) grid.pop_back();
        }
        w_.tile.push_back({inner, start, wide});
        for (std::size_t i = n - 1; i-- > 0;) {
            const int a = g_.order[i];
            if ((rows > 1 || under_ > 0) && i == n - 2) continue;
            w_.at[a] = fmt::format("{}{}", g_.reduced.contains(a) && !split_ ? "r" : "b", i);
            if (!g_.reduced.contains(a) || split_) grid.push_back(w_.blocks(w_.at[a], g_.size.at(a), 1));
        }
        if (split_ && !folded) split_rows(grid);
        w_.grid(grid);
    }

    // Columns are kept: the last folded atom is cut into parts of 64, a block each.
    void split_rows(std::vector<GridAxis>& grid) {
        for (std::size_t i = g_.order.size(); i-- > 0;) {
            const int a = g_.order[i];
            if (!g_.reduced.contains(a)) continue;
            const std::string name = w_.at[a];
            steps_ = 64;
            for (GridAxis& axis : grid) {
                if (axis.name != name) continue;
                axis = w_.blocks("part", g_.size.at(a), steps_);
            }
            rows_atom_ = a;
            return;
        }
    }

    bool wide_within() const {
        return std::any_of(g_.members.begin(), g_.members.end(), [&](int m) { return w_.prim(m).dtype == "f64"; });
    }

    // An operand with the folded atom has no rows.
    bool shared_by_rows(int row, int inner) const {
        const auto has = [](const Read& read, int atom) {
            return std::any_of(read.places.begin(), read.places.end(), [&](const Place& p) { return p.atom == atom; });
        };
        return std::any_of(g_.reads.begin(), g_.reads.end(), [&](const auto& r) { return has(r.second, inner) && !has(r.second, row); });
    }

    // What stands between the sum and the root only scales it: it may be applied to every part.
    bool linear_above() const {
        for (const int m : g_.members) {
            if (m <= reductions_[0].first) continue;
            const Primitive& v = w_.prim(m);
            const bool scale = v.kind == Kind::pointwise && (v.fn == "div" || v.fn == "mul") && w_.prim(v.in[1]).kind == Kind::number;
            if (v.kind != Kind::reshape && !scale) return false;
        }
        return true;
    }

    // `first`: only the first part of each loop, of which `near_` counts the elements.
    void begin_loops(bool first = false) {
        loops_ = 0;
        near_ = under_ > 0                                 ? under_
                : g_.reduced.contains(w_.tile.back().atom) ? std::min(w_.tile.back().extent, g_.size.at(w_.tile.back().atom))
                                                           : 1;
        const auto loop = [&](const std::string& text) {
            w_.open(text);
            ++loops_;
        };
        if (chunks_ > 0) {
            loop(fmt::format("for c in tw.range({}, unroll=2):", chunks_));
            if (!arrived_) {  // an empty group each time, so that always the same number may be on its way
                w_.line("tw.cp_async_commit()");
                w_.line(fmt::format("tw.cp_async_wait({})", chunks_));
            }
            arrived_ = true;
            return;
        }
        if (split_) {
            const TileAxis& t = w_.tile.back();
            if (rows_atom_ >= 0) {
                const std::int64_t n = g_.size.at(rows_atom_);
                loop(fmt::format("for {} in tw.range(part * {}, tw.min(part * {} + {}, {})):", w_.at[rows_atom_], steps_, steps_, steps_,
                                 n));
            } else {
                const std::int64_t all = (g_.size.at(t.atom) + t.extent - 1) / t.extent;
                const std::string whole = w_.parts(g_.size.at(t.atom), t.extent);
                loop(steps_ == all       ? fmt::format("for step in tw.range({}):", whole)
                     : all % steps_ == 0 ? fmt::format("for step in tw.range(part * {0}, part * {0} + {0}):", steps_)
                                         : fmt::format("for step in tw.range(part * {0}, tw.min(part * {0} + {0}, {1})):", steps_, whole));
                w_.line(fmt::format("c = step * {}", t.extent));
            }
            return;
        }
        for (std::size_t i = 0; i < g_.order.size(); ++i) {
            const int a = g_.order[i];
            if (!g_.reduced.contains(a)) continue;
            const bool tiled = w_.tile.back().atom == a;
            if (under_ > 0 && w_.tile[0].atom == a) {
                if (held_) continue;
                loop(fmt::format("for c in tw.range({}):", first ? 1 : g_.size.at(a) / under_));
                continue;
            }
            if (!tiled) {
                const std::int64_t rounds = first ? std::min<std::int64_t>(g_.size.at(a), near_ >= 64 ? 1 : 64) : g_.size.at(a);
                if (first) near_ *= rounds;
                loop(fmt::format("for {} in tw.range({}):", w_.at[a], rounds));
            } else if (!held_) {
                loop(fmt::format("for c in tw.range({}):", first ? "1" : w_.parts(g_.size.at(a), w_.tile.back().extent)));
            }
        }
    }

    void end_loops() {
        for (; loops_ > 0; --loops_) w_.close();
    }

    // What is folded is read as it is, over the whole tile, from a tensor that ends where its atoms end: a load fills in what is outside.
    const Read* loaded(int id) const {
        while (w_.prim(id).kind == Kind::reshape && g_.has(id)) id = w_.prim(id).in[0];
        const auto read = g_.reads.find(id);
        if (read == g_.reads.end() || w_.prim(id).dtype != "f32" || w_.axes_of(read->second) != w_.all_axes()) return nullptr;
        for (const Place& place : read->second.places)
            if (place.atom >= 0 && (place.start != 0 || place.extent != g_.size.at(place.atom))) return nullptr;
        return &read->second;
    }

    // The value that a reduction folds, over the whole tile; columns beyond the last have `outside`. Those that are kept have it too,
    // though nobody stores them: so every iteration folds something of one form.
    std::string folded(int id, const std::string& outside) {
        const std::string mask = w_.mask(static_cast<int>(w_.tile.size()) - 1);
        if (const Read* read = mask.empty() || under_ == 0 || held_ ? nullptr : loaded(id)) {
            const std::string x = w_.fresh("x");
            w_.line(fmt::format("{} = {}", x, w_.load(*read, w_.parameter(*read, "f32"), "f32", outside)));
            return x;
        }
        const Value v = w_.value(id);
        std::string text = v.axes == w_.all_axes() ? v.text : w_.as_tile(v);
        if (!mask.empty()) text = fmt::format("tw.where({}, {}, {})", mask, text, outside);
        return text;
    }

    bool across() const { return g_.reduced.contains(w_.tile.back().atom); }
    unsigned kept_axes() const { return under_ > 0 ? 2U : !across() ? w_.all_axes() : w_.tile.size() == 2 ? 1U : 0U; }
    std::string start(const std::string& value, bool in_f64 = false) {
        const std::string s = w_.fresh("s");
        w_.line(fmt::format("{} = tw.full({}, {}, {})", s, in_f64 ? "f64" : "f32", w_.tile_shape(w_.all_axes()), value));
        return s;
    }
    // What the lanes of a block hold, of one line.
    std::string lanes(const std::string& fn, const std::string& s) const {
        return across() || under_ > 0 ? fmt::format("tw.{}({}, axis={})", fn, s, under_ > 0 ? 0 : static_cast<int>(w_.tile.size()) - 1) : s;
    }
    std::string wide(const std::string& s) const { return w_.spread({s, kept_axes(), false}, w_.all_axes()); }

    // The first part of a row that is on its way to shared memory, as every block of its cluster reads it.
    std::string first_part(const Pair& pair) {
        near_ = w_.tile.back().extent;
        const TileAxis axis = w_.tile.back();
        const auto staged = std::exchange(w_.staged, {});
        w_.tile.back() = {axis.atom, "0", axis.extent};
        w_.begin_scope();
        const std::string part = w_.fresh("s");
        const Value v = w_.value(pair.of);
        w_.line(fmt::format("{} = {}", part, v.axes == w_.all_axes() ? v.text : w_.as_tile(v)));
        w_.end_scope();
        w_.tile.back() = axis;
        w_.staged = staged;
        return part;
    }

    // A sum, and the sum of squares about its mean, in one pass: about a value near to the mean, that of the line's first part. Where that
    // part has m of n elements, the squares lose at most n / m roundings, whatever the data are.
    void moments(const Pair& pair) {
        const std::string part = chunks_ > 0 ? first_part(pair) : start("0.0");
        if (chunks_ == 0) {
            begin_loops(true);
            w_.line(fmt::format("{0} = {0} + {1}", part, folded(pair.of, "0.0")));
            end_loops();
        }
        const std::string near = w_.fresh("near"), sum = start("0.0"), squares = start("0.0"), x = w_.fresh("d");
        w_.line(fmt::format("{} = {} / {}.0", near, lanes("sum", part), near_));
        begin_loops();
        const std::string mask = w_.mask(static_cast<int>(w_.tile.size()) - 1);
        const Value v = w_.value(pair.of);
        const std::string apart = fmt::format("{} - {}", v.axes == w_.all_axes() ? v.text : "(" + w_.as_tile(v) + ")", wide(near));
        w_.line(mask.empty() ? fmt::format("{} = {}", x, apart) : fmt::format("{} = tw.where({}, {}, 0.0)", x, mask, apart));
        w_.line(fmt::format("{0} = {0} + {1}", sum, x));
        w_.line(fmt::format("{0} = {0} + {1} * {1}", squares, x));
        end_loops();
        const std::string n = real_text(static_cast<double>(g_.folded()), true), first = w_.fresh("s"), second = w_.fresh("s");
        if (lanes("sum", sum) != sum) w_.line(fmt::format("{} = {}", sum, lanes("sum", sum)));
        std::string all_squares = lanes("sum", squares);
        if (blocks_ > 1) {
            w_.line(fmt::format("{} = {}", squares, all_squares));
            unite({{"sum", sum}, {"sum", squares}});
            all_squares = squares;
        }
        w_.line(fmt::format("{} = {} + {} * {}", first, sum, near, n));
        w_.line(fmt::format("{} = {} - {} * ({} / {})", second, all_squares, sum, sum, n));
        w_.set(pair.first, {first, kept_axes(), false});
        w_.set(pair.second, {second, kept_axes(), false});
    }

    // A maximum, and the sum of exponentials below it, in one pass. It starts at a finite value: infinities have no difference.
    void exponentials(const Pair& pair) {
        const std::string best = start("-3.0e38"), sum = start("0.0"), top = w_.fresh("top"), x = w_.fresh("x");
        begin_loops();
        w_.line(fmt::format("{} = {}", x, folded(pair.of, "-3.0e38")));
        w_.line(fmt::format("{} = tw.maximum({}, {})", top, best, x));
        // What is beyond the last column of a line that is kept is only ever its own: nothing there is stored.
        const std::string mask = across() ? w_.mask(static_cast<int>(w_.tile.size()) - 1) : "",
                          one = fmt::format("tw.exp({} - {})", x, top);
        w_.line(fmt::format("{0} = {0} * tw.exp({1} - {2}) + {3}", sum, best, top,
                            mask.empty() ? one : fmt::format("tw.where({}, {}, 0.0)", mask, one)));
        w_.line(fmt::format("{} = {}", best, top));
        end_loops();
        std::string all = best;
        if (lanes("max", best) != best) {
            all = w_.fresh("s");
            w_.line(fmt::format("{} = {}", all, lanes("max", best)));
            const std::string scaled = w_.fresh("s");
            w_.line(fmt::format("{} = {} * tw.exp({} - {})", scaled, sum, best, wide(all)));
            w_.line(fmt::format("{} = {}", sum, lanes("sum", scaled)));
        }
        unite_exponentials(all, sum);
        w_.set(pair.first, {all, kept_axes(), false});
        w_.set(pair.second, {sum, kept_axes(), false});
    }

    void pass(int level) {
        std::vector<std::pair<int, std::string>> now;
        for (const auto& [id, l] : reductions_) {
            if (l != level) continue;
            if (const Pair* pair = pairs_.of(id)) {
                if (pair->exponentials) exponentials(*pair);
                else moments(*pair);
            } else {
                now.emplace_back(id, "");
            }
        }
        if (now.empty()) return;
        const bool looped = !held_;
        for (auto& [id, s] : now) s = looped ? start(identity(w_.prim(id).fn), adds_f64(id)) : w_.fresh("s");
        begin_loops();
        for (const auto& [id, s] : now) {
            const std::string& fn = w_.prim(id).fn;
            std::string text = folded(w_.prim(id).in[0], identity(fn));
            if (adds_f64(id) && w_.prim(w_.prim(id).in[0]).dtype != "f64") text += ".to(f64)";
            w_.line(fmt::format("{} = {}", s, looped ? combine(fn, s, text.starts_with("tw.zeros") ? "(" + text + ")" : text) : text));
        }
        end_loops();
        std::vector<std::pair<std::string, std::string>> parts;
        for (const auto& [id, s] : now) {
            if (lanes(w_.prim(id).fn, s) != s) w_.line(fmt::format("{} = {}", s, lanes(w_.prim(id).fn, s)));
            // Of a line of -inf alone, no exponential is taken of the difference of infinities.
            if (w_.prim(id).finite && held_ && id != g_.root) w_.line(fmt::format("{0} = tw.maximum({0}, -3.0e38)", s));
            parts.emplace_back(w_.prim(id).fn, s);
        }
        unite(parts);
        for (const auto& [id, s] : now) {
            const bool f64 = w_.prim(id).dtype == "f64";
            if (adds_f64(id) && !f64) w_.line(fmt::format("{0} = {0}.to(f32)", s));
            w_.set(id, {s, kept_axes(), false, f64});
        }
    }

    // A sum in f64, or of f64 numbers.
    bool adds_f64(int id) const { return w_.prim(id).dtype == "f64" || w_.prim(w_.prim(id).in[0]).dtype == "f64"; }

    Writer& w_;
    Group& g_;
    std::vector<std::pair<int, int>> reductions_;  // with their levels
    int deepest_ = 0, loops_ = 0, rows_atom_ = -1;
    bool held_ = false, split_ = false;   // the folded atom is in registers; many blocks add to one result
    std::int64_t steps_ = 1, under_ = 0;  // under_: rows of a tile whose rows are folded
    std::int64_t near_ = 0;               // elements of the first part of each line
    std::int64_t chunks_ = 0;             // rows in shared memory: chunks of a row in each block
    int blocks_ = 1, next_state_ = 0;
    bool arrived_ = false;
    Pairs pairs_;
};

}  // namespace

bool write_tiles(Writer& w) {
    std::set<int> ends;
    for (const int m : w.g.members) {
        const Primitive& v = w.prim(m);
        if (v.kind != Kind::pointwise || (v.fn != "triu" && v.fn != "tril" && v.fn != "causal")) continue;
        const auto& axes = w.g.axes.at(m);
        for (std::size_t d = axes.size() - 2; d < axes.size(); ++d) {
            if (axes[d].size() > 1) w.fail("a triangle over dimensions that a reshape cuts");
            if (!axes[d].empty()) ends.insert({axes[d].back(), atom_before(w.g, axes[d].front())});
        }
    }
    join_atoms(w.g, ends);
    if (!Tiles(w).stages() && write_moments(w)) return false;
    Tiles tiles(w);
    tiles.write();
    return tiles.split();
}

bool write_held_rows(Writer& w, const std::function<void(const Value&)>& store) {
    join_atoms(w.g, {});
    Tiles tiles(w);
    if (!tiles.holds_rows()) return false;
    tiles.store = store;
    tiles.write();
    return !w.failed;
}

bool has_staged_rows(const Primitives& p, Group g) {
    join_atoms(g, {});
    Writer w(p, g, "");
    return Tiles(w).stages();
}

}  // namespace tw::graph
