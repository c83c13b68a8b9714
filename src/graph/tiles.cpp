// Pointwise groups and groups with reductions: blocks over what is kept, loops over what is folded, one pass for each level of reductions
// that depend on one another.
#include <fmt/format.h>

#include <algorithm>

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

class Tiles {
public:
    explicit Tiles(Writer& w) : w_(w), g_(w.g) {}

    void write() {
        find_levels();
        w_.family = reductions_.empty() ? "pointwise" : "reduction";
        choose_tile();
        if (w_.failed) return;
        for (int level = 1; level <= deepest_; ++level) pass(level);
        const bool of_all = stores_everywhere();
        if (of_all) begin_loops();
        w_.store(w_.value(g_.root), split_);
        if (of_all) end_loops();
    }

    bool split() const { return split_; }

private:
    void find_levels() {
        std::map<int, int> level;
        for (const int m : g_.members) {
            int l = 0;
            for (const int q : w_.prim(m).in)
                if (const auto found = level.find(q); found != level.end()) l = std::max(l, found->second);
            if (w_.prim(m).kind == Kind::reduce) {
                reductions_.emplace_back(m, ++l);
                deepest_ = std::max(deepest_, l);
            }
            level[m] = l;
        }
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
                grid.push_back({w_.at[g_.order[i]], g_.size.at(g_.order[i])});
            }
            w_.grid(grid);
            return;
        }
        const int inner = g_.order[n - 1];
        const std::int64_t extent = g_.size.at(inner);
        const bool folded = g_.reduced.contains(inner);
        split_ = !reductions_.empty() && deepest_ == 1 && reductions_.size() == 1 && w_.prim(reductions_[0].first).fn == "sum" &&
                 !stores_everywhere() && g_.kept() < 256 && g_.folded() >= 32768 && linear_above();
        std::int64_t wide = 0, rows = 1;
        bool again = false;
        if (g_.reduced.empty()) {
            // A vector of 16 bytes a thread, as many blocks as fit: kernels/activations.py was measured so.
            wide = std::min<std::int64_t>(power_of_two(extent), 1024);
            if (n > 1) rows = std::min(std::max<std::int64_t>(1, 1024 / wide), power_of_two(g_.size.at(g_.order[n - 2])));
            if (g_.members.size() <= 6 && wide * rows == 1024) w_.blocks_per_sm = 8;
        } else if (folded) {
            const bool alone = g_.reduced.size() == 1;
            held_ = alone && extent <= 8192 && !split_;
            wide = held_ ? std::max<std::int64_t>(32, power_of_two(extent)) : std::min<std::int64_t>(power_of_two(extent), 2048);
            // Long rows that are read twice: one block a multiprocessor, so that the second pass finds its row in L2 (132 rows in 40 MB).
            again = !held_ && alone && !split_ && !picks() && (deepest_ > 1 || stores_everywhere()) && extent >= 16384 && extent <= 75000;
            if (again) wide = 8192;
            const bool row = n > 1 && !g_.reduced.contains(g_.order[n - 2]) && !picks() && !split_;
            if (held_ && row) rows = std::min(std::max<std::int64_t>(1, 4096 / wide), power_of_two(g_.size.at(g_.order[n - 2])));
        } else {
            const std::int64_t blocks = g_.kept() / std::max<std::int64_t>(1, extent);
            wide = std::min<std::int64_t>(power_of_two(extent), blocks * ((extent + 511) / 512) >= 264 ? 512 : 128);
            w_.threads = 128;
            // Few columns: a block has several rows at a time, so that enough is on its way.
            const bool under = n > 1 && g_.reduced.size() == 1 && g_.reduced.contains(g_.order[n - 2]) && !split_ && !picks();
            if (under && blocks * ((extent + 127) / 128) < 132 && g_.size.at(g_.order[n - 2]) % 64 == 0) {
                under_ = 64;
                wide = 32;
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
        if (under_ > 0) w_.threads = 512;
        if (again) {
            w_.threads = 1024;
            w_.blocks_per_sm = 1;
        }
        place_axes(inner, wide, rows, grid);
    }

    void place_axes(int inner, std::int64_t wide, std::int64_t rows, std::vector<GridAxis>& grid) {
        const std::size_t n = g_.order.size();
        const std::int64_t extent = g_.size.at(inner);
        const bool folded = g_.reduced.contains(inner);
        std::string start = "0";
        if (!folded) {
            grid.push_back({"j", (extent + wide - 1) / wide});
            start = grid.back().count == 1 ? "0" : fmt::format("j * {}", wide);
            if (grid.back().count == 1) grid.pop_back();
        } else if (split_) {
            const std::int64_t chunks = (extent + wide - 1) / wide;
            steps_ = std::max<std::int64_t>(1, std::min<std::int64_t>(16, extent / wide));
            if (extent % wide == 0) steps_ = equal_parts(chunks, steps_);
            // A last chunk that is not full stays with the others where there are blocks enough: the number of elements that a block adds
            // is then seen to be the same for all.
            if (extent % wide != 0 && g_.kept() * (g_.folded() / extent) >= 264) steps_ = chunks;
            grid.push_back({"part", (extent + wide * steps_ - 1) / (wide * steps_)});
            start = "c";
        } else if (!held_) {
            start = fmt::format("c * {}", wide);
        }
        if (under_ > 0) w_.tile.push_back({g_.order[n - 2], fmt::format("c * {}", under_), under_});
        if (rows > 1) {
            const int outer = g_.order[n - 2];
            grid.push_back({"m", (g_.size.at(outer) + rows - 1) / rows});
            w_.tile.push_back({outer, grid.back().count == 1 ? "0" : fmt::format("m * {}", rows), rows});
            if (grid.back().count == 1) grid.pop_back();
        }
        w_.tile.push_back({inner, start, wide});
        for (std::size_t i = n - 1; i-- > 0;) {
            const int a = g_.order[i];
            if ((rows > 1 || under_ > 0) && i == n - 2) continue;
            w_.at[a] = fmt::format("{}{}", g_.reduced.contains(a) && !split_ ? "r" : "b", i);
            if (!g_.reduced.contains(a) || split_) grid.push_back({w_.at[a], g_.size.at(a)});
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
                axis.count = (g_.size.at(a) + steps_ - 1) / steps_;
                axis.name = "part";
            }
            rows_atom_ = a;
            return;
        }
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

    void begin_loops() {
        loops_ = 0;
        const auto loop = [&](const std::string& text) {
            w_.open(text);
            ++loops_;
        };
        if (split_) {
            const TileAxis& t = w_.tile.back();
            if (rows_atom_ >= 0) {
                const std::int64_t n = g_.size.at(rows_atom_);
                loop(fmt::format("for {} in tw.range(part * {}, tw.min(part * {} + {}, {})):", w_.at[rows_atom_], steps_, steps_, steps_,
                                 n));
            } else {
                const std::int64_t all = (g_.size.at(t.atom) + t.extent - 1) / t.extent;
                loop(steps_ == all       ? fmt::format("for step in tw.range({}):", all)
                     : all % steps_ == 0 ? fmt::format("for step in tw.range(part * {0}, part * {0} + {0}):", steps_)
                                         : fmt::format("for step in tw.range(part * {0}, tw.min(part * {0} + {0}, {1})):", steps_, all));
                w_.line(fmt::format("c = step * {}", t.extent));
            }
            return;
        }
        for (std::size_t i = 0; i < g_.order.size(); ++i) {
            const int a = g_.order[i];
            if (!g_.reduced.contains(a)) continue;
            const bool tiled = w_.tile.back().atom == a;
            if (under_ > 0 && w_.tile[0].atom == a) {
                loop(fmt::format("for c in tw.range({}):", g_.size.at(a) / under_));
                continue;
            }
            if (!tiled) loop(fmt::format("for {} in tw.range({}):", w_.at[a], g_.size.at(a)));
            else if (!held_)
                loop(fmt::format("for c in tw.range({}):", (g_.size.at(a) + w_.tile.back().extent - 1) / w_.tile.back().extent));
        }
    }

    void end_loops() {
        for (; loops_ > 0; --loops_) w_.close();
    }

    void pass(int level) {
        std::vector<std::pair<int, std::string>> now;
        for (const auto& [id, l] : reductions_)
            if (l == level) now.emplace_back(id, w_.fresh("s"));
        const int axis = static_cast<int>(w_.tile.size()) - 1;
        const bool across = g_.reduced.contains(w_.tile.back().atom);
        const unsigned kept = across && w_.tile.size() == 2 ? 1U : across ? 0U : w_.all_axes();
        const bool looped = !(held_ && across);
        if (looped)
            for (const auto& [id, s] : now)
                w_.line(fmt::format("{} = tw.full(f32, {}, {})", s, w_.tile_shape(w_.all_axes()), identity(w_.prim(id).fn)));
        begin_loops();
        for (const auto& [id, s] : now) {
            const std::string& fn = w_.prim(id).fn;
            const Value v = w_.value(w_.prim(id).in[0]);
            std::string text = v.axes == w_.all_axes() ? v.text : w_.as_tile(v);
            // Columns beyond the last have the identity too, though nobody stores them: so every iteration folds something of one form.
            const std::string mask = w_.mask(axis);
            if (!mask.empty() && (across || looped)) text = fmt::format("tw.where({}, {}, {})", mask, text, identity(fn));
            if (looped)
                w_.line(fmt::format("{} = {}", s,
                                    combine(fn, s, v.axes == w_.all_axes() || !text.starts_with("tw.zeros") ? text : "(" + text + ")")));
            else w_.line(fmt::format("{} = {}", s, text));
        }
        end_loops();
        for (const auto& [id, s] : now) {
            if (across || under_ > 0) w_.line(fmt::format("{0} = tw.{1}({0}, axis={2})", s, w_.prim(id).fn, under_ > 0 ? 0 : axis));
            w_.set(id, {s, under_ > 0 ? 2U : kept, false});
        }
    }

    Writer& w_;
    Group& g_;
    std::vector<std::pair<int, int>> reductions_;  // with their levels
    int deepest_ = 0, loops_ = 0, rows_atom_ = -1;
    bool held_ = false, split_ = false;   // the folded atom is in registers; many blocks add to one result
    std::int64_t steps_ = 1, under_ = 0;  // under_: rows of a tile whose rows are folded
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
    Tiles tiles(w);
    tiles.write();
    return tiles.split();
}

}  // namespace tw::graph
