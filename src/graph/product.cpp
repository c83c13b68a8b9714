// Products and convolutions on the matrix unit: tiles through shared memory, what follows them in the same kernel.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "graph/product.h"
#include "graph/window.h"

namespace tw::graph {

namespace {

struct Side {
    std::string name;    // of the parameter
    std::string shared;  // of the buffer
    std::string filled;  // what is stored to: all of the buffer, or its part that is no padding
    std::string across = ":";
    bool turned = false;  // k comes first in memory
    std::string dtype;
};

class Product {
public:
    explicit Product(Writer& w) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), conv_(v_.kind == Kind::conv) {}

    void write() {
        w_.family = conv_ ? "convolution" : "product";
        ProductAxes axes;
        if (!arrange_product(w_, axes)) return;
        const bool open = !w_.p.sizes.empty();  // templates whose choices hang on the extents themselves
        if (!open && !conv_ && write_long_product(w_, axes)) {
            zeroed_ = true;
            return;
        }
        if (!open && (conv_ ? write_packed_conv(w_, axes)
                            : write_thin_product(w_, axes) || write_split_product(w_, axes) || write_narrow_product(w_, axes)))
            return;
        m_ = axes.m;
        n_ = axes.n;
        outer_ = axes.outer;
        index_ = axes.index;
        name_ = axes.name;
        choose();
        describe();
        if (w_.failed) return;
        head();
        conv_ ? conv_body() : matmul_body();
        if (staged_) stage();
        w_.set(g_.anchor, {"acc", 3U, false});
        zeroed_ = parts_ > 1;
        w_.store(w_.value(g_.root), zeroed_);
    }
    bool zeroed() const { return zeroed_; }

private:
    void choose() {
        const std::int64_t m = g_.size.at(m_), n = g_.size.at(n_);
        const Shape& a = w_.prim(v_.in[0]).shape;
        depth_ = conv_ ? a[2] : a[2];
        const bool narrow_type = type() != "f32";
        levels_ = 1;
        if (conv_)
            for (const std::int64_t k : v_.window.kernel) levels_ += k > 1 ? 1 : 0;
        bm_ = m > 64 ? 128 : 64;
        bn_ = n > 64 && levels_ == 1 ? 128 : 64;
        bk_ = narrow_type || (conv_ && pointwise() && depth_ % 32 == 0) ? 32 : depth_ <= 8 ? 8 : 16;
        staged_ = conv_ && pointwise() && !narrow_type && n % 4 == 0;
        if (staged_ && depth_ % 64 == 0) bk_ = 64;
        w_.threads = bm_ == 128 || bn_ == 128 ? 256 : 128;
        if (staged_ && v_.tf32 && w_.threads == 256) w_.blocks_per_sm = 2;
        warps_ = w_.threads == 128 ? "(2, 2)" : bm_ == 128 ? "(4, 2)" : "(2, 4)";
        std::int64_t tiles = ((m + bm_ - 1) / bm_) * ((n + bn_ - 1) / bn_);
        for (const GridAxis& axis : outer_) tiles *= axis.count;
        const std::int64_t steps = (depth_ + bk_ - 1) / bk_;
        if (!conv_ && tiles < 132 && steps >= 512) {
            bool plain = true;
            for (const int id : g_.members) plain = plain && (id == g_.anchor || w_.prim(id).kind == Kind::reshape);
            if (!plain) return w_.fail("a long sum for few results", g_.anchor);
            // Equal parts of the sum: a few for each multiprocessor.
            for (parts_ = std::max<std::int64_t>(1, 528 / tiles); steps % parts_ != 0;) --parts_;
            steps_ = steps / parts_;
        }
    }

    const std::string& type() const { return w_.prim(g_.operands[0].base).dtype; }

    // Declares an operand by its dimensions (view order given); the two tile dimensions come last, the contiguous one innermost.
    Side side(const View& view, std::vector<std::size_t> outer, std::size_t row, std::size_t k, std::vector<std::size_t> inner,
              const char* shared) {
        Side s;
        s.dtype = w_.prim(view.base).dtype;
        s.shared = shared;
        s.turned = view.dims[row].stride < view.dims[k].stride;
        Argument a;
        a.primitive = view.base;
        a.dtype = s.dtype;
        std::vector<std::size_t> order = std::move(outer);
        order.push_back(s.turned ? k : row);
        order.push_back(s.turned ? row : k);
        order.insert(order.end(), inner.begin(), inner.end());
        for (const std::size_t d : order) {
            if (!view.dims[d].whole()) w_.fail("a product of a slice", w_.sliced_operand());
            a.dims.push_back(view.dims[d].size);
            a.strides.push_back(view.dims[d].stride);
        }
        s.name = w_.operand(a);
        return s;
    }

    void describe() {
        if (!conv_) {
            const bool batched = g_.operands[0].dims[0].size > 1 || g_.operands[1].dims[0].size > 1;
            const std::vector<std::size_t> outer = batched ? std::vector<std::size_t>{0} : std::vector<std::size_t>{};
            a_ = side(g_.operands[0], outer, 1, 2, {}, "sa");
            b_ = side(g_.operands[1], outer, 2, 1, {}, "sb");
            batch_ = batched;
            return;
        }
        std::vector<std::size_t> taps;
        for (std::size_t d = 0; d < v_.window.kernel.size(); ++d) taps.push_back(3 + d);
        a_ = side(g_.operands[1], {0}, 1, 2, taps, "sa");
        Argument x;
        x.primitive = g_.operands[0].base;
        x.dtype = w_.prim(x.primitive).dtype;
        for (const Dim& d : g_.operands[0].dims) {
            if (!d.whole()) w_.fail("a convolution of a slice", w_.sliced_operand());
            x.dims.push_back(d.size);
            x.strides.push_back(d.stride);
        }
        b_.name = w_.operand(x);
        b_.dtype = x.dtype;
        b_.shared = "sb";
        b_.turned = true;
    }

    void head() {
        const std::int64_t m = g_.size.at(m_), n = g_.size.at(n_);
        std::vector<GridAxis> grid = {w_.blocks("j", n, bn_), w_.blocks("i", m, bm_)};
        if (parts_ > 1) grid.push_back({"part", parts_});
        grid.insert(grid.end(), outer_.begin(), outer_.end());
        w_.grid(grid);
        w_.tile = {{m_, fmt::format("i * {}", bm_), bm_}, {n_, fmt::format("j * {}", bn_), bn_}};
        if (staged_) return arena();
        const int pad = type() == "f32" ? 4 : 8;
        const auto buffer = [&](Side& s, std::int64_t rows) {
            s.filled = s.shared;
            const auto shape = s.turned ? fmt::format("({}, {})", bk_, rows) : fmt::format("({}, {})", rows, bk_);
            w_.line(fmt::format("{} = tw.shared({}, {}, pad={})", s.shared, s.dtype, shape, s.turned ? 8 : pad));
        };
        buffer(a_, bm_);
        buffer(b_, bn_);
    }

    // Operands and what is stored go through one buffer, one after the other.
    void arena() {
        const auto wide = [&](const Side& s, std::int64_t rows) { return s.turned ? rows + 8 : bk_ + 4; };
        const auto high = [&](const Side& s, std::int64_t rows) { return s.turned ? bk_ : rows; };
        const std::int64_t first = high(a_, bm_) * wide(a_, bm_), second = high(b_, bn_) * wide(b_, bn_);
        w_.line(fmt::format("arena = tw.shared(f32, ({},))", std::max(first + second, bm_ * (bn_ + 8))));
        const auto part = [&](Side& s, std::int64_t rows, std::int64_t offset) {
            w_.line(fmt::format("{} = tw.overlay(arena, f32, ({}, {}){})", s.shared, high(s, rows), wide(s, rows),
                                offset == 0 ? "" : fmt::format(", offset_bytes={}", 4 * offset)));
            s.filled = fmt::format("{}[:, 0:{}]", s.shared, s.turned ? rows : bk_);
            if (s.turned) s.across = fmt::format("0:{}", rows);
        };
        part(a_, bm_, 0);
        part(b_, bn_, first);
        w_.line(fmt::format("staged = tw.overlay(arena, f32, ({}, {}))", bm_, bn_ + 8));
    }

    // From the fragments of the matrix unit to whole vectors along the rows.
    void stage() {
        w_.line("tw.sync()");
        w_.line(fmt::format("tw.store(staged[:, 0:{}], acc)", bn_));
        w_.line("tw.sync()");
        w_.line(fmt::format("acc = tw.load(staged[:, 0:{}], layout=tw.blocked(vector=4))", bn_));
    }

    std::string zeros() const { return fmt::format("tw.zeros(f32, ({}, {}), layout=tw.mma_c(warps={}))", bm_, bn_, warps_); }

    std::string slice(const char* var, std::int64_t by) const { return fmt::format("{0} * {1} : {0} * {1} + {1}", var, by); }

    // What is loaded goes through shared memory into the fragments of the matrix unit. `next` loads what the next round multiplies.
    void multiply(const std::string& acc, const std::function<void()>& next = {}) {
        w_.line("tw.sync()");
        w_.line(fmt::format("tw.store({}, a)", a_.filled));
        w_.line(fmt::format("tw.store({}, b)", b_.filled));
        w_.line("tw.sync()");
        if (next) next();
        const std::int64_t unit = type() == "f32" ? 8 : 16;
        w_.open(fmt::format("for kk in tw.unroll({}):", bk_ / unit));
        const auto part = [&](const Side& s) {
            const std::string range = fmt::format("kk * {0} : kk * {0} + {0}", unit);
            return s.turned ? fmt::format("{}[{}, {}].T", s.shared, range, s.across) : fmt::format("{}[:, {}]", s.shared, range);
        };
        w_.line(fmt::format("fa = tw.load({}, layout=tw.mma_a())", part(a_)));
        w_.line(fmt::format("fb = tw.load({}, layout=tw.mma_b())", part(b_)));
        if (type() != "f32") {
            w_.line(fmt::format("tw.mma({}, fa, fb)", acc));
        } else if (v_.tf32) {
            w_.line(fmt::format("tw.mma({}, fa.to(tf32), fb.to(tf32))", acc));
        } else {
            w_.line("ha = fa.to(tf32)");
            w_.line("hb = fb.to(tf32)");
            w_.line("la = (fa - ha.to(f32)).to(tf32)");
            w_.line("lb = (fb - hb.to(f32)).to(tf32)");
            w_.line(fmt::format("tw.mma({}, la, hb)", acc));
            w_.line(fmt::format("tw.mma({}, ha, lb)", acc));
            w_.line(fmt::format("tw.mma({}, ha, hb)", acc));
        }
        w_.close();
    }

    std::string term(const std::string& a, const std::string& b) const {
        if (type() != "f32") return fmt::format("f32({}) * f32({})", a, b);
        return v_.tf32 ? fmt::format("f32(tf32({})) * f32(tf32({}))", a, b) : fmt::format("{} * {}", a, b);
    }

    void matmul_body() {
        const std::string before = batch_ ? index_[0] + ", " : "", left = batch_ ? name_[0] + ", " : "";
        w_.line("acc = " + zeros());
        const std::int64_t steps = parts_ > 1 ? steps_ : (depth_ + bk_ - 1) / bk_;
        const std::string from = parts_ > 1 ? fmt::format("part * {} + ", steps_) : "";
        const auto load = [&](const char* var, const Side& s, const char* block, std::int64_t rows, const std::string& k) {
            const std::string row = slice(block, rows);
            w_.line(fmt::format("{} = tw.load({}[{}{}, {}], fill=0.0)", var, s.name, before, s.turned ? k : row, s.turned ? row : k));
        };
        const auto both = [&](const std::string& k) {
            load("a", a_, "i", bm_, k);
            load("b", b_, "j", bn_, k);
        };
        constexpr std::int64_t kRounds = 16;
        // Tiles that are all full: with others this form is not seen to be the sum.
        const bool full = g_.size.at(m_) % bm_ == 0 && g_.size.at(n_) % bn_ == 0 && depth_ % bk_ == 0;
        if (full && steps > kRounds && steps % kRounds == 0 && type() == "f32") {
            // The matrix unit does not round sums to nearest: of a long one, parts are added up outside it. What the next round multiplies
            // is on its way during this one.
            w_.open(fmt::format("for c in tw.range({}):", steps / kRounds));
            w_.line("chunk = " + zeros());
            w_.line(fmt::format("first = {}c * {}", from, kRounds));
            both(slice("first", bk_));
            w_.open(fmt::format("for cc in tw.range({}):", kRounds));
            w_.line(fmt::format("k = {}c * {} + cc", from, kRounds));
            multiply("chunk", [&] { both(fmt::format("k * {0} + {0} : k * {0} + {1}", bk_, 2 * bk_)); });
            w_.close();
            w_.line("acc = acc + chunk");
        } else {
            w_.open(fmt::format("for c in tw.range({}):", parts_ > 1 ? std::to_string(steps) : w_.parts(depth_, bk_)));
            w_.line(fmt::format("k = {}c", from));
            both(slice("k", bk_));
            multiply("acc");
        }
        w_.close();
        const auto element = [&](const Side& s, const std::string& row) {
            return s.turned ? fmt::format("{}[{}k, {}]", s.name, left, row) : fmt::format("{}[{}{}, k]", s.name, left, row);
        };
        w_.anchor_equation = fmt::format("sum(k in 0:{}, {})", depth_, term(element(a_, w_.index_of(m_)), element(b_, w_.index_of(n_))));
    }

    // One tap, at every position: positions of the input are those of the result.
    bool pointwise() const {
        const Window& w = v_.window;
        bool plain = w.taps() == 1;
        for (std::size_t d = 0; d < w.in.size(); ++d) plain = plain && w.stride[d] == 1 && w.padding[d] == 0 && w.in[d] == w.out[d];
        return plain;
    }

    void pointwise_body() {
        std::string tap;
        for (std::size_t d = 0; d < v_.window.in.size(); ++d) tap += ", 0";
        w_.line("acc = " + zeros());
        w_.open(fmt::format("for c in tw.range({}):", (depth_ + bk_ - 1) / bk_));
        const std::string row = slice("i", bm_), k = slice("c", bk_), o = w_.index_of(m_);
        w_.line(fmt::format("b = tw.load({}[{}, {}, {}, {}], fill=0.0)", b_.name, index_[0], index_[1], k, slice("j", bn_)));
        w_.line(fmt::format("a = tw.load({}[{}, {}, {}{}], fill=0.0)", a_.name, index_[1], a_.turned ? k : row, a_.turned ? row : k, tap));
        if (v_.tf32 && v_.even) round_even(w_, {"a", "b"});
        multiply("acc");
        w_.close();
        const std::string kernel = fmt::format("{}[{}, {}, {}{}]", a_.name, name_[1], a_.turned ? "c" : o, a_.turned ? o : "c", tap);
        const std::string x = fmt::format("{}[{}, {}, c, {}]", b_.name, name_[0], name_[1], w_.index_of(n_));
        w_.anchor_equation = fmt::format("sum(c in 0:{}, {})", depth_, term(x, kernel));
    }

    void conv_body() {
        if (pointwise()) return pointwise_body();
        Taps taps(w_, v_.window, "", zeros(), "{0} + {1}");
        taps.positions(fmt::format("tw.arange({}) + j * {}", bn_, bn_));
        taps.open();
        const auto names = taps.tap_names();
        std::string tap;
        for (const std::string& t : names) tap += ", " + t;
        w_.open(fmt::format("for c in tw.range({}):", (depth_ + bk_ - 1) / bk_));
        w_.line(fmt::format("b = tw.load({}[{}, {}, {}, at], fill=0.0)", b_.name, index_[0], index_[1], slice("c", bk_)));
        if (taps.masked()) w_.line("b = tw.where(inside[None, :], b, 0.0)");
        const std::string row = slice("i", bm_), k = slice("c", bk_);
        w_.line(fmt::format("a = tw.load({}[{}, {}, {}{}], fill=0.0)", a_.name, index_[1], a_.turned ? k : row, a_.turned ? row : k, tap));
        if (v_.tf32 && v_.even) round_even(w_, {"a", "b"});
        multiply(taps.accumulator());
        w_.close();
        taps.close();
        const std::string o = w_.index_of(m_);
        w_.anchor_equation = over_taps(v_.window, "sum", [&](const std::vector<std::string>& t) {
            const Met met = meets(v_.window, w_.index_of(n_), t);
            std::string x = fmt::format("{}[{}, {}, c, {}]", b_.name, name_[0], name_[1], met.position), at;
            if (!met.inside.empty()) x = fmt::format("where({}, {}, 0)", met.inside, x);
            for (const std::string& one : t) at += ", " + one;
            const std::string kernel = fmt::format("{}[{}, {}, {}{}]", a_.name, name_[1], a_.turned ? "c" : o, a_.turned ? o : "c", at);
            return fmt::format("sum(c in 0:{}, {})", depth_, term(x, kernel));
        });
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    bool conv_, batch_ = false, zeroed_ = false, staged_ = false;
    int m_ = -1, n_ = -1, levels_ = 1;
    std::vector<GridAxis> outer_;
    std::vector<std::string> index_, name_;  // of the outer dimensions
    std::int64_t bm_ = 64, bn_ = 64, bk_ = 16, depth_ = 1, parts_ = 1, steps_ = 0;
    std::string warps_;
    Side a_, b_;
};

}  // namespace

bool write_product(Writer& w) {
    Product product(w);
    product.write();
    return product.zeroed();
}

}  // namespace tw::graph
