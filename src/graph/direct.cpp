// A thread has one place of several neighbouring rows, and a few results of each: R x I sums in registers. What it loads of the input
// serves every row whose window meets it, and what it loads of the weights every row: with 16 results of 4 rows and 3x3 taps, 192
// multiplications have 6 loads of the input and 12 of weights (vectors that all threads have in common). No shared memory, nothing to wait
// for.
#include "graph/direct.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/packing.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kSums = 80;       // of a thread
constexpr std::int64_t kMostTaps = 128;  // they are written out

class DirectConv {
public:
    DirectConv(Writer& w, std::vector<Residue> r, std::vector<int> positions, bool pack)
        : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), r_(std::move(r)), position_(std::move(positions)), pack_(pack) {}

    bool write() {
        if (!suits()) return false;
        choose();
        operands();
        equation();
        head();
        body();
        return true;
    }

private:
    std::size_t dims() const { return position_.size(); }
    std::size_t line() const { return dims() - 1; }
    bool has_rows() const { return dims() > 1 && position_[dims() - 2] >= 0; }
    std::size_t row() const { return dims() - 2; }
    bool matrix() const { return m_ >= 0; }
    const char* channel() const { return channels_ == 1 ? "0" : "c"; }
    // Result and channel of the weights as they are, where each group has one result.
    std::string of_channel() const { return v_.window.transposed ? fmt::format("{}, 0", channel()) : fmt::format("0, {}", channel()); }

    bool suits() {
        const auto& axes = g_.axes.at(g_.anchor);
        if (w_.p.rows.contains(v_.from) || position_.empty() || position_.back() < 0) return false;
        if (g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32") return false;
        for (const View& view : g_.operands) {
            if (w_.prim(view.base).dtype != "f32") return false;
            for (const Dim& d : view.dims)
                if (!d.whole()) return false;
        }
        std::int64_t taps = 1;
        for (const Residue& one : r_) taps *= one.taps;
        if (taps == 0 || taps > kMostTaps) return false;
        channels_ = w_.prim(v_.in[0]).shape[2];
        results_ = v_.shape[2];
        if (results_ > 1) {
            if (axes[2].size() != 1 || !whole_in(g_, axes[2][0])) return false;
            m_ = axes[2][0];
        }
        for (const int atom : position_)
            if (atom >= 0 && !whole_in(g_, atom)) return false;
        name_outer(w_, outer_, 2);
        return true;
    }

    void choose() {
        const std::int64_t wide = r_.back().extent;
        if (matrix()) {
            own_ = blocks_of(results_, blocks_of(results_, 16));
            if (results_ > 4) own_ = up_to(own_, 4);
        }
        rows_ = 1;
        if (has_rows()) {
            const std::int64_t n = r_[row()].extent, most = std::max<std::int64_t>(1, (matrix() ? kSums : 8) / own_);
            double least = 1e30;
            for (std::int64_t i = 1; i <= std::min<std::int64_t>(most, 8); ++i) {
                const auto& r = r_[row()];
                const std::int64_t reach = (i - 1) * r.stride + (r.taps - 1) * r.spread + 1;
                if (reach > 24 && i > 1) break;
                // Instructions for each multiplication: a load of the input and its address are three, a vector of weights is two. And
                // what is computed in vain.
                const auto taps = static_cast<double>(r.taps), own = static_cast<double>(own_), work = static_cast<double>(i) * taps * own;
                const double cost = static_cast<double>(up_to(n, i)) / static_cast<double>(n) *
                                    (work + 3.0 * static_cast<double>(reach) + (matrix() ? taps * own / 2 : 0)) / work;
                if (cost < least) {
                    least = cost;
                    rows_ = i;
                }
            }
        }
        place_ = 32;
        for (const std::int64_t p : {64, 128, 256})
            if (p <= (matrix() ? 128 : 256) && up_to(wide, p) * 16 <= up_to(wide, place_) * 17) place_ = p;
        w_.threads = static_cast<int>(place_);
        // Registers for the sums and for what is on its way: 144 a thread.
        w_.blocks_per_sm = static_cast<int>((matrix() ? 448 : 512) / place_);
        w_.family = v_.window.transposed ? "transposed convolution" : "direct convolution";
        w_.ranges = true;
    }

    // The input by (image, group, channel, positions); the weights as they are, or with results last.
    void operands() {
        const View& view = g_.operands[0];
        Argument x;
        x.primitive = view.base;
        x.dtype = "f32";
        for (std::size_t d = 0; d + 1 < view.dims.size(); ++d) {
            x.dims.push_back(view.dims[d].size);
            x.strides.push_back(view.dims[d].stride);
        }
        std::int64_t stride = view.dims.back().stride * count_of(v_.window.in);
        for (const std::int64_t n : v_.window.in) {
            stride /= n;
            x.dims.push_back(n);
            x.strides.push_back(stride);
        }
        x_ = w_.operand(x);
        Argument k;
        k.primitive = g_.operands[1].base;
        k.dtype = "f32";
        for (const Dim& d : g_.operands[1].dims) {
            k.dims.push_back(d.size);
            k.strides.push_back(d.stride);
        }
        if (!matrix()) {
            k_ = w_.operand(k);
            return;
        }
        Scratch packed;
        packed.name = k_ = "P_w";
        packed.dtype = "f32";
        packed.buffer = fmt::format("%{}.w", g_.root);
        packed.dims = {k.dims[0], channels_};
        packed.dims.insert(packed.dims.end(), v_.window.kernel.begin(), v_.window.kernel.end());
        packed.dims.push_back(up_to(results_, own_));
        packed.whole = packed.dims;
        packed.strides.assign(packed.dims.size(), 1);
        for (std::size_t d = packed.dims.size() - 1; d-- > 0;) packed.strides[d] = packed.strides[d + 1] * packed.dims[d + 1];
        w_.add_argument(argument_of(packed, false));
        if (pack_) pack_weights(k, packed);
    }

    void pack_weights(Argument k, const Scratch& packed) {
        Helper h;
        h.name = w_.name() + "_w";
        h.threads = 64;
        k.name = "X";
        Argument z = argument_of(packed, true);
        z.name = "Z";
        h.arguments = {k, z};
        const std::int64_t all = packed.dims.back();
        std::string taps, left;
        std::vector<GridAxis> grid = {{"i", blocks_of(all, 64)}, {"c", channels_}, {"g", packed.dims[0]}};
        for (std::size_t d = 0; d < v_.window.kernel.size(); ++d) {
            taps += fmt::format(", t{}", d);
            left += fmt::format(", t{} in 0:{}", d, v_.window.kernel[d]);
            grid.push_back({fmt::format("t{}", d), v_.window.kernel[d]});
        }
        const bool turned = v_.window.transposed;
        const auto element = [&](const std::string& o) {
            return turned ? fmt::format("X[g, c, {}{}]", o, taps) : fmt::format("X[g, {}, c{}]", o, taps);
        };
        std::string value = element("o");
        if (all > results_) value = fmt::format("where(o < {}, {}, 0)", results_, value);
        if (v_.tf32) value = fmt::format("f32(tf32({}))", value);
        h.computes = fmt::format("    Z[g, c{}, o in 0:{}] = {}", left, all, value);
        Writer body(w_.p, g_, "");
        body.grid(grid);
        h.body = body.body() + fmt::format("    x = tw.load({}, fill=0.0)\n", element("i * 64 : i * 64 + 64"));
        if (v_.tf32 && v_.even) h.body += "    x_up = x * 8192.0 + x\n    x = x_up - (x_up - x)\n";
        h.body += fmt::format("    tw.store(Z[g, c{}, i * 64 : i * 64 + 64], x{})\n", taps, v_.tf32 ? ".to(tf32).to(f32)" : "");
        std::vector<std::string> nodes;
        for (const int m : g_.members)
            if (const std::string& from = w_.prim(m).from; std::find(nodes.begin(), nodes.end(), from) == nodes.end())
                nodes.push_back(from);
        w_.before.push_back(helper_text(h, "packing", nodes));
    }

    static std::string times(const std::string& a, std::int64_t by) { return by == 1 ? a : fmt::format("{} * {}", a, by); }
    // a * by + c
    static std::string affine(const std::string& a, std::int64_t by, std::int64_t c) {
        return a == "0" ? std::to_string(c) : times(a, by) + plus_text(c);
    }

    // Of `computes`: the term of one tap.
    std::string term(const std::vector<std::int64_t>& p) const {
        std::string x = fmt::format("{}[{}, {}, {}", x_, outer_.name[0], outer_.name[1], channel()), inside, tap;
        for (std::size_t d = 0; d < dims(); ++d) {
            const std::int64_t off = r_[d].shift + p[d] * r_[d].spread;
            const std::string at = affine(position_[d] < 0 ? "0" : w_.index_of(position_[d]), r_[d].stride, off);
            x += ", " + at;
            if (off < 0) inside += fmt::format("{}{} >= 0", inside.empty() ? "" : " and ", at);
            if ((r_[d].extent - 1) * r_[d].stride + off >= v_.window.in[d])
                inside += fmt::format("{}{} < {}", inside.empty() ? "" : " and ", at, v_.window.in[d]);
            tap += fmt::format(", {}", r_[d].first - p[d] * r_[d].step);
        }
        x += "]";
        if (!inside.empty()) x = fmt::format("where({}, {}, 0)", inside, x);
        if (v_.tf32) x = fmt::format("f32(tf32({}))", x);
        std::string k;
        const std::string& g = outer_.name[1];
        if (matrix()) k = fmt::format("{}[{}, {}{}, {}]", k_, g, channel(), tap, w_.index_of(m_));
        else k = fmt::format("{}[{}, {}{}]", k_, g, of_channel(), tap);
        if (v_.tf32 && !matrix()) k = fmt::format("f32(tf32({}))", k);
        return fmt::format("{} * {}", x, k);
    }

    void equation() {
        std::string text;
        std::vector<std::int64_t> p(dims(), 0);
        for (bool more = true; more;) {
            text += (text.empty() ? "" : " + ") + term(p);
            more = false;
            for (std::size_t d = dims(); d-- > 0 && !more;) {
                more = ++p[d] < r_[d].taps;
                if (!more) p[d] = 0;
            }
        }
        w_.anchor_equation = channels_ == 1 ? fmt::format("({})", text) : fmt::format("sum(c in 0:{}, {})", channels_, text);
    }

    void head() {
        std::vector<GridAxis> grid;
        if (matrix()) grid.push_back({"ob", blocks_of(results_, own_)});
        grid.push_back({"j", blocks_of(r_.back().extent, place_)});
        for (std::size_t d = line(); d-- > 0;) {
            if (position_[d] < 0) continue;
            const std::int64_t n = r_[d].extent;
            grid.push_back({fmt::format("h{}", d), d == row() ? blocks_of(n, rows_) : n});
            if (d != row()) w_.at[position_[d]] = fmt::format("h{}", d);
        }
        grid.insert(grid.end(), outer_.outer.begin(), outer_.outer.end());
        w_.grid(grid);
        if (!matrix()) {
            w_.tile = {{position_.back(), fmt::format("j * {}", place_), place_}};
            return;
        }
        w_.tile = {{position_.back(), fmt::format("j * {}", place_), place_}, {m_, fmt::format("ob * {}", own_), own_}};
        const auto turn = [&](Read& read) {
            std::stable_sort(read.places.begin(), read.places.end(), [&](const Place& a, const Place& b) {
                const auto rank = [&](const Place& p) { return p.atom == m_ ? 2 : p.atom == position_.back() ? 1 : 0; };
                return rank(a) < rank(b);
            });
        };
        for (auto& [id, read] : g_.reads) turn(read);
        turn(g_.output);
    }

    // An index of a dimension before the last: `index`, which has `step` times the unrolled `name` in it (empty: it has none) and otherwise
    // lies between `least` and `most`. Where blocks at the edges have none there, it is kept inside, and `inside` says whether it was.
    std::string kept(const std::string& at, const std::string& index, const std::string& name, std::int64_t step, std::int64_t count,
                     std::int64_t least, std::int64_t most, std::int64_t extent) {
        const std::int64_t low = least >= 0 ? 0 : std::min(count, blocks_of(-least, step));
        const std::int64_t high = most >= extent ? 0 : std::min(count, blocks_of(extent - most, step));
        if (low == 0 && high == count) return index;
        w_.line(fmt::format("{} = {}", at, index));
        const std::string under = fmt::format("{} >= 0", at), over = fmt::format("{} < {}", at, extent);
        const std::string up = fmt::format("tw.max({}, 0)", at), down = fmt::format("tw.min({}, {})", at, extent - 1);
        std::string out, test;
        if (low > high || count == 1 || w_.p.rows.contains("every:" + v_.from)) {
            out = low == 0 ? down : high == count ? up : fmt::format("tw.max({}, 0)", down);
            test = low == 0 ? over : high == count ? under : fmt::format("{} and {}", under, over);
        } else {
            const auto chosen = [&](const std::string& first, const std::string& last, const std::string& else_) {
                std::string text;
                if (low > 0) text += fmt::format("{} if {} < {} else ", first, name, low);
                if (high < count) text += fmt::format("{} if {} >= {} else ", last, name, high);
                return text + else_;
            };
            out = chosen(up, down, at);
            test = fmt::format("({})", chosen(under, over, "True"));
        }
        inside_ += (inside_.empty() ? "" : " and ") + test;
        return out;
    }

    // Loads the input of one row: `down` rows after the first that the block's windows meet, at the tap `last` of the last dimension.
    void load_input(const std::string& down, const std::string& last) {
        inside_.clear();
        std::string at = fmt::format("{}[{}, {}, {}", x_, outer_.index[0], outer_.index[1], channel());
        for (std::size_t d = 0; d < line(); ++d) {
            const std::string q = position_[d] < 0 ? "0" : fmt::format("h{}", d);
            const bool rows = has_rows() && d == row();
            const std::int64_t each = rows ? rows_ : 1, blocks = position_[d] < 0 ? 1 : blocks_of(r_[d].extent, each);
            std::string text = affine(q, each * r_[d].stride, r_[d].shift);
            if (rows && down != "0") text += " + " + down;
            if (!rows && r_[d].taps > 1) text += " + " + times(fmt::format("p{}", d), r_[d].spread);
            const std::int64_t most = (blocks - 1) * each * r_[d].stride + r_[d].shift;
            const std::int64_t step = rows ? 1 : r_[d].spread, count = rows ? reach() : r_[d].taps;
            at += ", " +
                  kept(fmt::format("at{}", d), text, rows ? down : fmt::format("p{}", d), step, count, r_[d].shift, most, v_.window.in[d]);
        }
        const Residue& l = r_.back();
        const std::string off = l.taps > 1 ? " + " + times(last, l.spread) : "";
        if (l.stride == 1 && l.extent <= place_) {
            const std::string start = std::to_string(l.shift) + off;
            at += fmt::format(", {0} : {0} + {1}]", l.shift == 0 && !off.empty() ? off.substr(3) : start, place_);
        } else {
            // One by one: a tile that is cut off at either end would be loaded in two ways, with a branch between them.
            at += l.stride == 1 ? fmt::format(", tw.arange({0}) + (j * {0}{1}{2})]", place_, plus_text(l.shift), off)
                                : fmt::format(", (tw.arange({0}) + j * {0}) * {1}{2}{3}]", place_, l.stride, plus_text(l.shift), off);
        }
        w_.line(fmt::format("x = tw.load({}, fill=0.0)", at));
        if (!inside_.empty()) w_.line(fmt::format("x = tw.where({}, x, tw.zeros(f32, ({},)))", inside_, place_));
        if (v_.tf32 && v_.even) round_even(w_, {"x"});
        if (v_.tf32) w_.line("x = x.to(tf32).to(f32)");
    }

    static std::string tap_text(const Residue& r, const std::string& p) {
        if (r.taps == 1) return std::to_string(r.first);
        if (r.step == -1) return plus_text(r.first).empty() ? p : p + plus_text(r.first);
        return fmt::format("{} - {}", r.first, times(p, r.step));
    }
    std::string taps_text() const {
        std::string out;
        for (std::size_t d = 0; d < dims(); ++d) out += ", " + tap_text(r_[d], fmt::format("p{}", d));
        return out;
    }

    // Rows of the input that the windows of a block's rows meet.
    std::int64_t reach() const { return has_rows() ? (rows_ - 1) * r_[row()].stride + (r_[row()].taps - 1) * r_[row()].spread + 1 : 1; }

    void body() {
        w_.line(matrix() ? fmt::format("acc = [tw.zeros(f32, ({}, {}), layout=tw.rows())] * {}", place_, own_, rows_)
                         : fmt::format("acc = [tw.zeros(f32, ({},))] * {}", place_, rows_));
        if (channels_ > 1) w_.open(fmt::format("for c in tw.range({}):", channels_));
        matrix() ? many() : single();
        if (channels_ > 1) w_.close();
        // Rows of the last block that are not there: one condition for all of them.
        const std::int64_t rest = has_rows() ? r_[row()].extent % rows_ : 0;
        store(0, rest > 0 ? rest : rows_);
        if (rest == 0) return;
        w_.open(fmt::format("if h{} < {}:", row(), r_[row()].extent / rows_));
        store(rest, rows_ - rest);
        w_.close();
    }

    void store(std::int64_t from, std::int64_t count) {
        const std::string name = from == 0 ? "i" : "e", own = name + plus_text(from);
        w_.open(fmt::format("for {} in tw.unroll({}):", name, count));
        if (has_rows()) w_.at[position_[row()]] = rows_ == 1 ? fmt::format("h{}", row()) : fmt::format("h{} * {} + {}", row(), rows_, own);
        w_.begin_scope();
        w_.set(g_.anchor, {fmt::format("acc[{}]", own), matrix() ? 3U : 1U, false});
        w_.store(w_.value(g_.root));
        w_.end_scope();
        w_.close();
    }

    // Loops over the taps of the dimensions before the rows; returns how many.
    int outer_taps() {
        int loops = 0;
        for (std::size_t d = 0; d < line(); ++d) {
            if (r_[d].taps == 1 || (has_rows() && d == row())) continue;
            w_.open(fmt::format("for p{} in tw.unroll({}):", d, r_[d].taps));
            ++loops;
        }
        return loops;
    }

    void many() {
        int loops = outer_taps();
        if (r_.back().taps > 1) {
            w_.open(fmt::format("for p{} in tw.unroll({}):", line(), r_.back().taps));
            ++loops;
        }
        const std::string last = fmt::format("p{}", line());
        const std::int64_t n = reach();
        const bool list = n > 1;
        if (list) {
            w_.line(fmt::format("xs = [tw.zeros(f32, ({},))] * {}", place_, n));
            w_.open(fmt::format("for r in tw.unroll({}):", n));
            load_input("r", last);
            w_.line("xs[r] = x");
            w_.close();
        } else {
            load_input("0", last);
        }
        const bool down = has_rows() && r_[row()].taps > 1;
        if (down) w_.open(fmt::format("for p{} in tw.unroll({}):", row(), r_[row()].taps));
        w_.line(fmt::format("w = tw.load({0}[{1}, {4}{2}, ob * {3} : ob * {3} + {3}])", k_, outer_.index[1], taps_text(), own_, channel()));
        w_.open(fmt::format("for i in tw.unroll({}):", rows_));
        std::string x = "x";
        if (list) {
            const Residue& one = r_[row()];
            x = fmt::format("xs[{}{}]", times("i", one.stride), down ? " + " + times(fmt::format("p{}", row()), one.spread) : "");
        }
        w_.line(fmt::format("acc[i] = tw.fma({}[:, None], w[None, :], acc[i])", x));
        w_.close();
        if (down) w_.close();
        for (; loops > 0; --loops) w_.close();
    }

    // One result: its sum goes tap by tap, rows first, in one chain of multiply-adds.
    void single() {
        int loops = outer_taps();
        const bool rows = has_rows();
        const Residue down = rows ? r_[row()] : Residue{};
        const std::int64_t tall = rows ? down.taps : 1, wide = r_.back().taps;
        std::string names;
        for (std::int64_t t = 0; t < tall * wide; ++t) {
            std::string tap;
            for (std::size_t d = 0; d < dims(); ++d) {
                const std::int64_t p = d == line() ? t % wide : t / wide;
                tap += ", " + (d == line() || (rows && d == row()) ? std::to_string(r_[d].first - p * r_[d].step)
                                                                   : tap_text(r_[d], fmt::format("p{}", d)));
            }
            names += fmt::format("{}tw.load({}[{}, {}{}])", t ? ", " : "", k_, outer_.index[1], of_channel(), tap);
            if (v_.tf32) names += ".to(tf32).to(f32)";
        }
        w_.line(fmt::format("w = [{}]", names));
        const std::int64_t n = reach();
        w_.open(fmt::format("for r in tw.unroll({}):", n));
        w_.open(fmt::format("for q in tw.unroll({}):", wide));
        load_input(n > 1 ? "r" : "0", "q");
        w_.open(fmt::format("for i in tw.unroll({}):", rows_));
        const std::int64_t s = rows ? down.stride : 1, spread = rows ? down.spread : 1;
        w_.line(fmt::format("t = r - {}", times("i", s)));
        w_.open(fmt::format("if t >= 0 and t <= {}{}:", (tall - 1) * spread, spread > 1 ? fmt::format(" and t % {} == 0", spread) : ""));
        const std::string which = spread > 1 ? fmt::format("t // {}", spread) : "t";
        w_.line(fmt::format("acc[i] = tw.fma(x, w[{} + q], acc[i])", times(which, wide)));
        w_.close();
        w_.close();
        w_.close();
        w_.close();
        for (; loops > 0; --loops) w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    std::vector<Residue> r_;
    std::vector<int> position_;
    int m_ = -1;
    bool pack_;
    ProductAxes outer_;
    std::int64_t channels_ = 1, results_ = 1, own_ = 1, rows_ = 1, place_ = 32;
    std::string x_, k_, inside_;
};

}  // namespace

bool direct_is_better(const Primitives& p, const Group& g) {
    const Primitive& v = p.list[static_cast<std::size_t>(g.anchor)];
    if (v.kind == Kind::window) return v.fn == "dot";
    if (v.kind != Kind::conv || p.large <= 1) return false;
    const Window& w = v.window;
    double positions = 1, taps = 1, padded = 1, deep = 1;
    std::int64_t smallest = 1;
    // What is stored as lines (dense.cpp) has several short rows in a tile (packing.h).
    const Shape& input_shape = p.list[static_cast<std::size_t>(v.in[0])].shape;
    const bool rows = w.out.size() > 1 && w.transposed && w.stride.back() > 1 && w.stride.back() <= 8 && v.shape[1] == 1 &&
                      count_of(input_shape) * v.shape[2] * w.taps() >= p.large;
    for (std::size_t d = 0; d < w.out.size(); ++d) {
        const std::int64_t phases = w.transposed ? w.stride[d] : 1, n = blocks_of(w.out[d], phases);
        const std::int64_t own = std::max<std::int64_t>(1, w.kernel[d] / phases);
        const bool last = d + 1 == w.out.size();
        positions *= static_cast<double>(last ? up_to(n, n > 32 ? 64 : 32) : n) * static_cast<double>(phases);
        padded *= static_cast<double>(last ? (n <= 32 && rows ? power_of_two(n) : up_to(n, 64)) : n) * static_cast<double>(phases);
        taps *= static_cast<double>(w.kernel[d]) / static_cast<double>(phases);
        if (!last) deep *= static_cast<double>(own);
        else smallest = w.dilation[d] > 1 ? 1 : own;
    }
    const auto channels = static_cast<double>(input_shape[2]);
    const auto batch = static_cast<double>(v.shape[0] * v.shape[1]), results = static_cast<double>(v.shape[2]);
    const std::int64_t run = up_to(static_cast<std::int64_t>(channels), 4) * smallest;
    // Multiplications a second and bytes a second as measured of the kernels that this is chosen over: small steps of k cost as whole ones.
    const double step = run > 16 ? static_cast<double>(up_to(run, 32)) : run > 8 ? 32 : 24;
    const double bytes = 4 * batch * static_cast<double>(count_of(w.out)) * results;
    const double input = 4 * batch * channels * static_cast<double>(count_of(w.in));
    const double parts = v.tf32 ? 1 : 3;
    const double matrix = batch * padded * results * deep * (w.dilation.back() > 1 ? taps / deep : 1) * step * parts / 90e12 +
                          bytes / 2.1e12 + input * (v.tf32 ? 2 : 5) / 2.5e12;
    // Remainders are launches of their own, each of which touches every sector of its rows.
    const double touched = w.transposed && v.shape[1] == 1 ? static_cast<double>(std::min<std::int64_t>(w.stride.back(), 8)) : 1;
    const double direct =
        batch * positions * static_cast<double>(up_to(v.shape[2], 4)) * channels * taps / 20e12 + bytes * touched / 3.5e12;
    // Short lines and few results are not for the kernels that this counts, but for others that were measured at an eighth of their speed.
    const std::int64_t line = blocks_of(w.out.back(), w.transposed ? w.stride.back() : 1);
    return direct < (line < (rows ? 5 : 24) || v.shape[2] < 16 ? 8 : 1) * matrix;
}

bool write_direct_phase(Writer& w, const std::vector<Residue>& r, const std::vector<int>& positions, bool pack) {
    return DirectConv(w, r, positions, pack).write();
}

}  // namespace tw::graph
