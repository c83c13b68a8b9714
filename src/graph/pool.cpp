// A block makes several neighbouring rows of the output, of several channels where lines are short. Each row of the input that one of them
// meets is loaded once for each tap of the dimensions before the rows, in whole vectors, and folded into the rows of the output that it
// belongs to. What is left is a window along the line: the sums lie in shared memory, with the fold's identity where the padding is, and
// each thread reads its taps there, neighbouring threads neighbouring words. No division and no mask for each tap, and what is read k times
// is read from shared memory.
#include "graph/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/packing.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kMostPoolTaps = 64;  // of a window: they are written out
constexpr std::int64_t kLongest = 1024;     // a line of the input that a block takes whole
constexpr std::int64_t kOwn = 32;           // sums of a thread
constexpr std::int64_t kMostReach = 512;    // of a window along its line

class Pool {
public:
    Pool(Writer& w, std::vector<Residue> r, std::vector<int> positions, bool terms)
        : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), r_(std::move(r)), position_(std::move(positions)), terms_(terms) {}

    bool write() {
        if (!suits() || !choose()) return false;
        operand();
        w_.anchor_equation = terms_ ? listed() : folded();
        head();
        rows();
        line();
        return true;
    }

private:
    std::size_t dims() const { return position_.size(); }
    std::size_t last() const { return dims() - 1; }
    bool largest() const { return v_.fn == "max"; }
    const char* identity() const { return largest() ? "float(\"-inf\")" : "0.0"; }
    const char* none() const { return largest() ? "(-inf)" : "0"; }  // of `computes`
    std::string joined(const std::string& a, const std::string& b) const {
        return largest() ? fmt::format("tw.maximum({}, {})", a, b) : fmt::format("{} + {}", a, b);
    }
    std::int64_t span(std::size_t d) const { return (r_[d].taps - 1) * r_[d].spread; }
    static std::string times(const std::string& a, std::int64_t by) { return by == 1 ? a : fmt::format("{} * {}", a, by); }

    bool suits() {
        const auto& axes = g_.axes.at(g_.anchor);
        if ((v_.fn != "max" && v_.fn != "sum") || position_.empty() || position_.back() < 0 || axes.size() != 2) return false;
        if (g_.operands.size() != 1 || w_.prim(g_.operands[0].base).dtype != "f32") return false;
        std::int64_t taps = 1;
        for (const Residue& one : r_) taps *= one.taps;
        if (taps < 2 || taps > kMostPoolTaps || r_.back().shift > 0 || span(last()) > kMostReach) return false;
        for (const Dim& d : g_.operands[0].dims)
            if (!d.whole()) return false;
        for (const int atom : position_)
            if (atom >= 0 && !whole_in(g_, atom)) return false;
        for (const int atom : axes[0])
            if (!whole_in(g_, atom)) return false;
        name_outer(w_, outer_, 1);
        for (std::size_t d = 0; d < last(); ++d)
            if (position_[d] >= 0) row_ = static_cast<int>(d);
        return true;
    }

    std::int64_t channels() const { return outer_.outer.empty() ? 1 : outer_.outer.back().count; }
    bool slides() const { return row_ >= 0; }
    const Residue& row() const { return r_[static_cast<std::size_t>(row_)]; }

    // Rows of the input that `count` neighbouring rows of the output meet, from the first one on.
    std::vector<std::int64_t> met(std::int64_t count) const {
        std::set<std::int64_t> out;
        for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t p = 0; p < row().taps; ++p) out.insert(i * row().stride + p * row().spread);
        return {out.begin(), out.end()};
    }

    bool choose() {
        const Residue& l = r_.back();
        const std::int64_t in = v_.window.in.back(), least = 4 / std::gcd(l.stride, std::int64_t{4});
        before_ = up_to(-l.shift, 4);
        whole_ = power_of_two(l.extent) <= kLongest / 2 && in <= kLongest;
        w_.threads = slides() || whole_ ? 128 : 256;
        if (whole_) {
            wide_ = std::max<std::int64_t>(power_of_two(l.extent), 16);
            load_ = std::max<std::int64_t>(power_of_two(in), 16);
            const std::int64_t most = (slides() ? 4 : 16) * w_.threads;
            while (together_ * load_ * 2 <= most && channels() % (together_ * 2) == 0) together_ *= 2;
            w_.threads = static_cast<int>(std::clamp<std::int64_t>(together_ * load_ / 4, 32, w_.threads));
            const std::int64_t reach = before_ + l.shift + (wide_ - 1) * l.stride + span(last()) + 1;
            length_ = up_to(std::max(before_ + load_, reach), std::lcm(std::int64_t{4}, l.stride));
        } else {
            for (wide_ = least; wide_ * 2 * l.stride <= (slides() ? 8 : 16) * w_.threads;) wide_ *= 2;
            if (wide_ < 64) return false;
            const std::int64_t reach = before_ + l.shift + (wide_ - 1) * l.stride + span(last()) + 1;
            limit_ = up_to(reach, 4);
            length_ = load_ = up_to(up_to(reach, 4 * w_.threads), std::lcm(std::int64_t{4 * w_.threads}, l.stride));
        }
        if (together_ * load_ < 128) return false;
        rows_ = 1;
        if (slides()) {
            const std::int64_t own = std::max<std::int64_t>(4, together_ * load_ / w_.threads);
            double fewest = 1e30;
            for (std::int64_t n = 1; n <= std::max<std::int64_t>(1, kOwn / own); ++n) {
                const std::int64_t blocks = blocks_of(row().extent, n);
                // A load of a row and its part in the folds, and a row's way through shared memory.
                const double cost = static_cast<double>(blocks) * (2.0 * static_cast<double>(met(n).size()) + static_cast<double>(n));
                if (cost < fewest) {
                    fewest = cost;
                    rows_ = n;
                }
            }
        }
        if (rows_ * together_ * length_ * 4 > 48 * 1024) return false;
        // The sums and a dozen vectors on their way: more loads at once would leave too few threads for what follows.
        // Windows of three dimensions have more rows to fold: with 512 threads a multiprocessor L1-46 is 17% faster than with 768
        // (bench/results/h200/kernelbench/variants.json).
        if (slides()) w_.blocks_per_sm = (v_.window.in.size() > 2 ? 512 : 768) / w_.threads;
        w_.family = "pooling";
        w_.ranges = true;
        return true;
    }

    void operand() {
        const View& view = g_.operands[0];
        Argument x;
        x.primitive = view.base;
        x.dtype = "f32";
        x.dims = {view.dims[0].size};
        x.strides = {view.dims[0].stride};
        std::int64_t stride = view.dims.back().stride * count_of(v_.window.in);
        for (const std::int64_t n : v_.window.in) {
            stride /= n;
            x.dims.push_back(n);
            x.strides.push_back(stride);
        }
        x_ = w_.operand(x);
    }

    // Of `computes`: the tap whose numbers are `p`, which are names or, where `constant` is given, that tap.
    std::string tap(const std::vector<std::string>& p, const std::vector<std::int64_t>* constant) const {
        std::string x = fmt::format("{}[{}", x_, outer_.name[0]), inside;
        const auto ask = [&](const std::string& what) { inside += (inside.empty() ? "" : " and ") + what; };
        for (std::size_t d = 0; d < dims(); ++d) {
            const Residue& one = r_[d];
            std::string at = position_[d] < 0 ? "0" : times(w_.index_of(position_[d]), one.stride);
            if (constant != nullptr) {
                const std::int64_t off = one.shift + (*constant)[d] * one.spread;
                at += plus_text(off);
                if (off < 0) ask(at + " >= 0");
                if ((one.extent - 1) * one.stride + off >= v_.window.in[d]) ask(fmt::format("{} < {}", at, v_.window.in[d]));
            } else {
                if (one.taps > 1) at += " + " + times(p[d], one.spread);
                at += plus_text(one.shift);
                if (one.taps > 1 || one.shift != 0) {
                    ask(at + " >= 0");
                    ask(fmt::format("{} < {}", at, v_.window.in[d]));
                }
            }
            x += ", " + at;
        }
        x += "]";
        return inside.empty() ? x : fmt::format("where({}, {}, {})", inside, x, none());
    }

    std::string folded() const {
        std::vector<std::string> names;
        for (std::size_t d = 0; d < dims(); ++d) names.push_back(fmt::format("p{}", d));
        std::string text = tap(names, nullptr);
        for (std::size_t d = dims(); d-- > 0;)
            if (r_[d].taps > 1) text = fmt::format("{}({} in 0:{}, {})", largest() ? "max" : "sum", names[d], r_[d].taps, text);
        return text;
    }

    std::string listed() const {
        std::string text;
        std::vector<std::int64_t> p(dims(), 0);
        for (bool more = true; more;) {
            const std::string one = tap({}, &p);
            text = text.empty() ? one : largest() ? fmt::format("maximum({}, {})", text, one) : text + " + " + one;
            more = false;
            for (std::size_t d = dims(); d-- > 0 && !more;) {
                more = ++p[d] < r_[d].taps;
                if (!more) p[d] = 0;
            }
        }
        return largest() ? text : "(" + text + ")";
    }

    void head() {
        std::vector<GridAxis> grid;
        if (!whole_) grid.push_back({"j", blocks_of(r_.back().extent, wide_)});
        for (std::size_t d = last(); d-- > 0;) {
            if (position_[d] < 0) continue;
            const bool down = static_cast<int>(d) == row_;
            grid.push_back({fmt::format("h{}", d), blocks_of(r_[d].extent, down ? rows_ : 1)});
            if (!down) w_.at[position_[d]] = fmt::format("h{}", d);
        }
        std::vector<GridAxis> outer = outer_.outer;
        channel_ = outer_.index[0];
        const auto& atoms = g_.axes.at(g_.anchor)[0];
        if (together_ > 1) {
            outer.back().count /= together_;
            const std::string start = fmt::format("{} * {}", outer.back().name, together_);
            w_.tile.push_back({atoms.back(), start, together_});
            w_.at.erase(atoms.back());
            std::string first;
            for (std::size_t i = 0; i < atoms.size(); ++i) {
                const std::string own = i + 1 == atoms.size() ? start : outer[i].name;
                first = first.empty() ? own : fmt::format("({}) * {} + {}", first, g_.size.at(atoms[i]), own);
            }
            channel_ = fmt::format("{0} : {0} + {1}", first, together_);
        }
        grid.insert(grid.end(), outer.begin(), outer.end());
        w_.grid(grid);
        w_.tile.push_back({position_.back(), whole_ ? "0" : fmt::format("j * {}", wide_), wide_});
    }

    // The shape of a tile of `wide` elements of each channel, after `before`.
    std::string shape(std::int64_t wide, const std::string& before = "") const {
        if (together_ > 1) return fmt::format("({}{}, {})", before, together_, wide);
        return fmt::format("({}{}{})", before, wide, before.empty() ? "," : "");
    }
    const char* each() const { return together_ > 1 ? ":, " : ""; }

    // The index in dimension d: `off` (a number from `values`, ascending) after that of the block's first position; kept inside, with the
    // condition that it was.
    std::string kept(std::size_t d, const std::string& off, const std::vector<std::int64_t>& values, std::string& inside) {
        const bool down = static_cast<int>(d) == row_;
        const std::int64_t step = r_[d].stride * (down ? rows_ : 1), extent = v_.window.in[d], least = r_[d].shift;
        const std::int64_t most = position_[d] < 0 ? least : least + (blocks_of(r_[d].extent, down ? rows_ : 1) - 1) * step;
        std::string index = position_[d] < 0 ? std::to_string(least) : times(fmt::format("h{}", d), step) + plus_text(least);
        if (off != "0") index += " + " + off;
        const bool under = least + values.front() < 0, over = most + values.back() >= extent;
        if (!under && !over) return index;
        const std::string at = fmt::format("at{}", d);
        w_.line(fmt::format("{} = {}", at, index));
        const std::int64_t low = -least, high = extent - most;  // values below the one, or from the other on, are asked
        const auto add = [&](const std::string& what) { inside += (inside.empty() ? "" : " and ") + what; };
        const std::string up = fmt::format("tw.max({}, 0)", at), to = fmt::format("tw.min({}, {})", at, extent - 1);
        if (values.size() == 1 || (under && over && high < low)) {
            if (under) add(at + " >= 0");
            if (over) add(fmt::format("{} < {}", at, extent));
            return under && over ? fmt::format("tw.max({}, 0)", to) : under ? up : to;
        }
        std::string test, out;
        if (under) {
            test += fmt::format("{} >= 0 if {} < {} else ", at, off, low);
            out += fmt::format("{} if {} < {} else ", up, off, low);
        }
        if (over) {
            test += fmt::format("{} < {} if {} >= {} else ", at, extent, off, high);
            out += fmt::format("{} if {} >= {} else ", to, off, high);
        }
        add(fmt::format("({}True)", test));
        return out + at;
    }

    void rows() {
        w_.line(fmt::format("s = tw.shared(f32, {})", shape(length_, fmt::format("{}, ", rows_))));
        const std::int64_t stride = r_.back().stride;
        if (stride > 1)
            w_.line(together_ > 1 ? fmt::format("t = tw.overlay(s, f32, ({}, {}, {}, {}))", rows_, together_, length_ / stride, stride)
                                  : fmt::format("t = tw.overlay(s, f32, ({}, {}, {}))", rows_, length_ / stride, stride));
        w_.line(fmt::format("acc = [tw.full(f32, {}, {})] * {}", shape(load_), identity(), rows_));
        int loops = 0;
        std::string at, inside;
        std::vector<std::pair<std::string, std::vector<std::int64_t>>> offs(last(), {"0", {0}});
        for (std::size_t d = 0; d < last(); ++d) {
            if (static_cast<int>(d) == row_) {
                offs[d] = {"r", met(rows_)};
                w_.open(fmt::format("for r in ({},):", fmt::join(offs[d].second, ", ")));
                ++loops;
            } else if (r_[d].taps > 1) {
                offs[d] = {times(fmt::format("p{}", d), r_[d].spread), {}};
                for (std::int64_t p = 0; p < r_[d].taps; ++p) offs[d].second.push_back(p * r_[d].spread);
                w_.open(fmt::format("for p{} in tw.unroll({}):", d, r_[d].taps));
                ++loops;
            }
        }
        for (std::size_t d = 0; d < last(); ++d) at += ", " + kept(d, offs[d].first, offs[d].second, inside);
        load(at);
        if (!inside.empty()) w_.line(fmt::format("x = tw.where({}, x, {})", inside, identity()));
        if (slides()) {
            w_.open(fmt::format("for i in tw.unroll({}):", rows_));
            w_.line(fmt::format("o = r - {}", times("i", row().stride)));
            const std::string apart = row().spread > 1 ? fmt::format(" and o % {} == 0", row().spread) : "";
            w_.open(fmt::format("if o >= 0 and o <= {}{}:", (row().taps - 1) * row().spread, apart));
            w_.line("acc[i] = " + joined("acc[i]", "x"));
            w_.close();
            w_.close();
        } else {
            w_.line("acc[0] = " + joined("acc[0]", "x"));
        }
        for (; loops > 0; --loops) w_.close();
    }

    void load(const std::string& at) {
        if (whole_) {
            const bool fits = load_ == v_.window.in.back();
            w_.line(
                fmt::format("x = tw.load({}[{}{}, 0:{}]{})", x_, channel_, at, load_, fits ? "" : fmt::format(", fill={}", identity())));
            return;
        }
        const std::string start = times("j", wide_ * r_.back().stride) + plus_text(-before_);
        w_.line(fmt::format("x = tw.load({0}[{1}{2}, {3} : {3} + {4}], fill={5}, limit=({6}{7}))", x_, channel_, at, start, load_,
                            identity(), times("j", wide_ * r_.back().stride) + plus_text(limit_ - before_), ","));
    }

    void line() {
        const auto zone = [&](std::int64_t from, std::int64_t to) {
            w_.line(fmt::format("tw.store(s[:, {}{}:{}], tw.full(f32, {}, {}))", each(), from, to,
                                shape(to - from, fmt::format("{}, ", rows_)), identity()));
        };
        const std::int64_t from = whole_ ? before_ : 0;
        if (from > 0) zone(0, from);
        if (from + load_ < length_) zone(from + load_, length_);
        w_.open(fmt::format("for i in tw.unroll({}):", rows_));
        w_.line(fmt::format("tw.store(s[i, {}{}:{}], acc[i])", each(), from, from + load_));
        w_.close();
        w_.line("tw.sync()");
        const std::int64_t rest = slides() ? row().extent % rows_ : 0;
        store(0, rest > 0 ? rest : rows_);
        if (rest == 0) return;
        w_.open(fmt::format("if h{} < {}:", row_, row().extent / rows_));
        store(rest, rows_ - rest);
        w_.close();
    }

    // Rows of the last block that are not there have one condition for all of them: names inside it are its own.
    void store(std::int64_t from, std::int64_t count) {
        const std::string more = from == 0 ? "" : "_", i = "i" + more, y = "y" + more, p = "p" + more, o = "o" + more;
        const std::string own = i + plus_text(from);
        w_.open(fmt::format("for {} in tw.unroll({}):", i, count));
        if (slides())
            w_.at[position_[static_cast<std::size_t>(row_)]] =
                rows_ == 1 ? fmt::format("h{}", row_) : fmt::format("h{} * {} + {}", row_, rows_, own);
        w_.begin_scope();
        const Residue& l = r_.back();
        w_.line(fmt::format("{} = tw.full(f32, {}, {}, layout=tw.blocked(vector=1))", y, shape(wide_), identity()));
        w_.open(fmt::format("for {} in tw.unroll({}):", p, l.taps));
        w_.line(fmt::format("{} = {}{}", o, times(p, l.spread), plus_text(before_ + l.shift)));
        const std::string part = l.stride == 1
                                     ? fmt::format("s[{0}, {1}{2} : {2} + {3}]", own, each(), o, wide_)
                                     : fmt::format("t[{0}, {1}{4} // {2} : {4} // {2} + {3}, {4} % {2}]", own, each(), l.stride, wide_, o);
        w_.line(fmt::format("{} = {}", y, joined(y, fmt::format("tw.load({})", part))));
        w_.close();
        w_.set(g_.anchor, {y, together_ > 1 ? 3U : 1U, false});
        w_.store(w_.value(g_.root));
        w_.end_scope();
        w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    std::vector<Residue> r_;
    std::vector<int> position_;
    bool terms_;
    ProductAxes outer_;
    int row_ = -1;               // the dimension of which a block has several positions
    bool whole_ = true;          // a block has whole lines
    std::int64_t rows_ = 1;      // positions of that dimension
    std::int64_t together_ = 1;  // channels
    // Of a line: outputs, elements loaded, elements in shared memory, those before the first that is needed, the end of what is needed.
    std::int64_t wide_ = 1, load_ = 1, length_ = 1, before_ = 0, limit_ = 0;
    std::string x_, channel_;
};

}  // namespace

bool write_pool_rows(Writer& w, const std::vector<Residue>& r, const std::vector<int>& positions, bool terms) {
    return Pool(w, r, positions, terms).write();
}

}  // namespace tw::graph
