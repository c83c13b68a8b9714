// Convolutions row by row over an input that was padded first (operators_products.cpp): every tap meets an element, nothing is masked.
// Output positions of a transposed one with one remainder of division by the stride meet the same taps, at input positions that follow
// one another: for each remainder a convolution of stride 1, whose results lie `stride` apart. No tap is looked at in vain.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/direct.h"
#include "graph/pool.h"

namespace tw::graph {

// To tf32, ties to even, by arithmetic that is exact but for one sum: x + 8192 x keeps the upper bits of x, rounded, in f32's 24.
void round_even(Writer& w, const std::vector<std::string>& names) {
    for (const std::string& x : names) {
        w.line(fmt::format("{0}_up = {0} * 8192.0 + {0}", x));
        w.line(fmt::format("{0} = {0}_up - ({0}_up - {0})", x));
    }
}

std::vector<Residue> residues(const Window& w, std::size_t d) {
    std::vector<Residue> out;
    const std::int64_t stride = w.stride[d], dilation = w.dilation[d];
    if (!w.transposed) return {{0, w.out[d], w.kernel[d], 0, -1, -w.padding[d], dilation, stride, 1}};
    for (std::int64_t rest = 0; rest < std::min(stride, w.out[d]); ++rest) {
        Residue r;
        r.rest = rest;
        r.extent = (w.out[d] - rest + stride - 1) / stride;
        r.apart = stride;
        r.step = stride / std::gcd(stride, dilation);
        r.spread = dilation * r.step / stride;
        for (std::int64_t t = 0; t < w.kernel[d]; ++t) {
            if ((rest + w.padding[d] - t * dilation) % stride != 0) continue;
            ++r.taps;
            r.first = t;  // the last one: input positions then rise with p
            r.shift = (rest + w.padding[d] - t * dilation) / stride;
        }
        out.push_back(r);
    }
    return out;
}

namespace {

// A group whose anchor's positions are those of one remainder in each dimension: what it reads and writes there are views.
class Phase {
public:
    Phase(const Primitives& p, Group g, std::vector<Residue> r) : p_(p), g_(std::move(g)), r_(std::move(r)) {}

    // The atoms of the positions, one for each dimension (-1: an extent of 1); empty: what follows sees them otherwise.
    std::vector<int> split() {
        const Primitive& v = p_.list[static_cast<std::size_t>(g_.anchor)];
        const Window& w = v.window;
        std::vector<int> old = g_.axes.at(g_.anchor).back();
        Shape wide;
        for (const std::int64_t n : w.out)
            if (n > 1) wide.push_back(n);
        std::vector<std::vector<std::size_t>> dims;  // by old atom: the dimensions that it covers
        if (old.size() == 1) {
            dims.emplace_back();
            for (std::size_t d = 0; d < w.out.size(); ++d)
                if (w.out[d] > 1) dims[0].push_back(d);
        } else {
            if (old.size() != wide.size()) return {};
            for (std::size_t d = 0; d < w.out.size(); ++d) {
                if (w.out[d] == 1) continue;
                if (g_.size.at(old[dims.size()]) != w.out[d]) return {};
                dims.push_back({d});
            }
        }
        std::vector<int> atoms(w.out.size(), -1);
        int next = g_.size.rbegin()->first + 1;
        for (std::size_t i = 0; i < old.size(); ++i) {
            std::vector<int> fresh;
            for (const std::size_t d : dims[i]) {
                g_.size[next] = r_[d].extent;
                atoms[d] = next;
                fresh.push_back(next++);
            }
            if (!replace(old[i], fresh, dims[i], w)) return {};
        }
        settle(g_.output, p_.list[static_cast<std::size_t>(g_.root)].dtype);
        for (auto& [id, read] : g_.reads) settle(read, p_.list[static_cast<std::size_t>(id)].dtype);
        return atoms;
    }

    Group& group() { return g_; }

private:
    bool replace(int atom, const std::vector<int>& fresh, const std::vector<std::size_t>& dims, const Window& w) {
        const auto in_list = [&](std::vector<int>& list) {
            const auto at = std::find(list.begin(), list.end(), atom);
            if (at != list.end()) list.insert(list.erase(at), fresh.begin(), fresh.end());
        };
        in_list(g_.order);
        for (auto& [id, axes] : g_.axes)
            for (auto& axis : axes) in_list(axis);
        const auto in_read = [&](Read& read) {
            for (std::size_t i = 0; i < read.places.size(); ++i) {
                const Place place = read.places[i];
                if (place.atom != atom) continue;
                if (place.start != 0 || place.extent != g_.size.at(atom)) return false;
                std::vector<Place> made;
                std::int64_t stride = place.stride;
                for (std::size_t k = dims.size(); k-- > 0;) {
                    const std::size_t d = dims[k];
                    if (r_[d].rest > 0) made.insert(made.begin(), {-1, stride, r_[d].rest, r_[d].rest + 1});
                    made.insert(made.begin(), {fresh[k], stride * r_[d].apart, 0, r_[d].extent});
                    stride *= w.out[d];
                }
                read.places.insert(read.places.erase(read.places.begin() + static_cast<std::ptrdiff_t>(i)), made.begin(), made.end());
                return true;
            }
            return true;
        };
        bool fine = in_read(g_.output);
        for (auto& [id, read] : g_.reads) fine = fine && in_read(read);
        return fine;
    }

    // A remainder is where the view begins, if tensors may begin there (begins_well); else it is an index of the kernel.
    static void settle(Read& read, const std::string& dtype) {
        const auto fixed = [](const Place& p) { return p.atom < 0; };
        Shape strides;
        for (const Place& p : read.places)
            if (!fixed(p)) strides.push_back(p.stride);
        for (std::size_t i = read.places.size(); i-- > 0;) {
            const Place& p = read.places[i];
            if (!fixed(p) || !begins_well(strides, p.stride * p.start, dtype)) continue;
            read.offset += p.stride * p.start;
            read.places.erase(read.places.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }

    const Primitives& p_;
    Group g_;
    std::vector<Residue> r_;
};

class Dense {
public:
    Dense(Writer& w, std::vector<Residue> r, std::vector<int> positions)
        : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), r_(std::move(r)), positions_(std::move(positions)) {}

    void write() {
        w_.family = v_.window.transposed ? "transposed convolution" : "convolution";
        w_.ranges = true;
        matrix_ = v_.kind == Kind::conv;
        pool_ = v_.kind == Kind::window && v_.fn != "dot";
        if (pool_) w_.family = "pooling";
        for (std::size_t d = 0; d < positions_.size(); ++d)
            if (positions_[d] >= 0) line_ = d;
        if (!arrange()) return;
        choose();
        const bool none = std::any_of(r_.begin(), r_.end(), [](const Residue& r) { return r.taps == 0; });
        if (!none) operands();
        if (w_.failed) return;
        head();
        if (none) {
            w_.line(fmt::format("acc = tw.zeros(f32, {})", matrix_ ? fmt::format("({}, {})", bm_, bn_) : fmt::format("({},)", bn_)));
            w_.anchor_equation = "0.0";
        } else {
            body();
        }
        w_.set(g_.anchor, {"acc", matrix_ ? 3U : 1U, false});
        w_.store(w_.value(g_.root));
    }

private:
    bool arrange() {
        const auto& axes = g_.axes.at(g_.anchor);
        for (std::size_t d = 0; d + 1 < axes.size(); ++d) {
            std::string index = "0", name = "0";
            if (d == 2 && matrix_) {
                if (axes[d].size() != 1) {
                    w_.fail("what follows a convolution cuts its channels", g_.root == g_.anchor ? -1 : g_.anchor);
                    return false;
                }
                m_ = axes[d][0];
                name_.push_back(w_.index_of(m_));
                continue;
            }
            for (const int a : axes[d]) {
                const std::string own = fmt::format("b{}", outer_.size());
                outer_.push_back({own, g_.size.at(a)});
                w_.at[a] = own;
                index = index == "0" ? own : fmt::format("({} * {} + {})", index, g_.size.at(a), own);
                name = name == "0" ? w_.index_of(a) : fmt::format("({} * {} + {})", name, g_.size.at(a), w_.index_of(a));
            }
            index_.push_back(index);
            name_.push_back(name);
        }
        return true;
    }

    void choose() {
        const std::int64_t n = g_.size.at(positions_[line_]);
        depth_ = pool_ ? 1 : w_.prim(v_.in[0]).shape[2];
        if (!matrix_) {
            bn_ = std::clamp<std::int64_t>(power_of_two(n), 32, 256);
            w_.threads = static_cast<int>(std::min<std::int64_t>(bn_, 128));
            return;
        }
        const std::int64_t m = g_.size.at(m_);
        bm_ = m > 64 ? 128 : m > 32 ? 64 : 32;
        // As wide as leaves the least beside the last tile; the wider one where that is equal, and where the accumulators stay in
        // registers.
        std::int64_t levels = 1;
        for (const Residue& r : r_) levels += r.taps > 1 ? 1 : 0;
        for (const std::int64_t wide : {128, 64, 32}) {
            if (wide > 32 && bm_ * wide * levels > 256 * 128) continue;
            if (bn_ == 0 || (n + wide - 1) / wide * wide < (n + bn_ - 1) / bn_ * bn_) bn_ = wide;
        }
        bk_ = depth_ <= 8 ? 8 : 16;
        w_.threads = bm_ * bn_ > 4096 ? 256 : 128;
        warps_ = w_.threads == 128 ? "(2, 2)" : bm_ == 128 ? "(4, 2)" : "(2, 4)";
    }

    void operands() {
        const View& x = g_.operands[0];
        Argument a;
        a.primitive = x.base;
        a.dtype = w_.prim(x.base).dtype;
        for (std::size_t d = 0; d < x.dims.size(); ++d) {
            if (!x.dims[d].whole()) return w_.fail("a window over a slice", w_.sliced_operand());
            if (d + 1 == x.dims.size()) continue;
            a.dims.push_back(x.dims[d].size);
            a.strides.push_back(x.dims[d].stride);
        }
        std::int64_t stride = x.dims.back().stride * count_of(v_.window.in);
        for (const std::int64_t n : v_.window.in) {
            stride /= n;
            a.dims.push_back(n);
            a.strides.push_back(stride);
        }
        x_ = w_.operand(a);
        if (a.dtype != "f32") return w_.fail("a window over a narrow type");
        if (pool_) return;
        Argument k;
        k.primitive = g_.operands[1].base;
        k.dtype = w_.prim(k.primitive).dtype;
        for (const Dim& d : g_.operands[1].dims) {
            if (!d.whole()) return w_.fail("a convolution with a slice of a kernel", w_.sliced_operand());
            k.dims.push_back(d.size);
            k.strides.push_back(d.stride);
        }
        kernel_ = w_.operand(k);
        if (k.dtype != "f32") w_.fail("a convolution of a narrow type");
    }

    void head() {
        const std::int64_t n = g_.size.at(positions_[line_]);
        std::vector<GridAxis> grid = {{"j", (n + bn_ - 1) / bn_}};
        if (matrix_) grid.push_back({"i", (g_.size.at(m_) + bm_ - 1) / bm_});
        for (std::size_t d = positions_.size(); d-- > 0;) {
            if (d == line_ || positions_[d] < 0) continue;
            w_.at[positions_[d]] = fmt::format("q{}", d);
            grid.push_back({w_.at[positions_[d]], g_.size.at(positions_[d])});
        }
        grid.insert(grid.end(), outer_.begin(), outer_.end());
        w_.grid(grid);
        if (matrix_) w_.tile.push_back({m_, fmt::format("i * {}", bm_), bm_});
        w_.tile.push_back({positions_[line_], fmt::format("j * {}", bn_), bn_});
    }

    static std::string plus(const std::string& a, std::int64_t by) { return by == 0 ? a : fmt::format("{} + {}", a, by); }

    // q * stride + shift + p * spread
    std::string met(std::size_t d, std::string q) const {
        const Residue& r = r_[d];
        if (r.stride > 1 && q != "0") q = fmt::format("{} * {}", q, r.stride);
        std::string text = r.shift == 0 && q != "0" ? q : q == "0" ? std::to_string(r.shift) : plus(q, r.shift);
        if (r.taps > 1) text += r.spread == 1 ? fmt::format(" + p{}", d) : fmt::format(" + p{} * {}", d, r.spread);
        return text;
    }

    std::string tap(std::size_t d) const {
        const Residue& r = r_[d];
        if (r.taps == 1) return std::to_string(r.first);
        if (r.step == -1) return fmt::format("p{}", d);
        return fmt::format("{} - p{}{}", r.first, d, r.step == 1 ? "" : fmt::format(" * {}", r.step));
    }

    std::string taps() const {
        std::string out;
        for (std::size_t d = 0; d < r_.size(); ++d) out += ", " + tap(d);
        return out;
    }

    // The input's element or tile: positions of the kernel, or of `computes`.
    std::string input(const std::string& channel, bool tile) const {
        std::string out = fmt::format("{}[{}", x_, tile ? index_[0] : name_[0]);
        if (!pool_) out += fmt::format(", {}, {}", tile ? index_[1] : name_[1], channel);
        for (std::size_t d = 0; d < r_.size(); ++d) {
            if (tile && d == line_ && r_[d].stride > 1) {
                out += ", " + met(d, fmt::format("(tw.arange({0}) + j * {0})", bn_));
            } else if (tile && d == line_) {
                const std::string start = met(d, fmt::format("j * {}", bn_));
                out += fmt::format(", {0} : {0} + {1}", start, bn_);
            } else {
                out += ", " + met(d, positions_[d] < 0 ? "0" : tile ? fmt::format("q{}", d) : w_.index_of(positions_[d]));
            }
        }
        return out + "]";
    }

    void body() {
        const std::string zeros = matrix_ ? fmt::format("tw.zeros(f32, ({}, {}), layout=tw.mma_c(warps={}))", bm_, bn_, warps_)
                                          : fmt::format("tw.full(f32, ({},), {})", bn_, largest() ? "float(\"-inf\")" : "0.0");
        if (matrix_) {
            w_.line(turned() ? fmt::format("sa = tw.shared(f32, ({}, {}), pad=8)", bk_, bm_)
                             : fmt::format("sa = tw.shared(f32, ({}, {}), pad=4)", bm_, bk_));
            w_.line(fmt::format("sb = tw.shared(f32, ({}, {}), pad=8)", bk_, bn_));
        }
        // A sum of its own for each loop: so each is seen to be the sum that `computes` states. And the matrix unit does not round sums to
        // nearest: over all taps its errors would add up.
        std::vector<std::string> sums = {"acc"};
        w_.line("acc = " + zeros);
        for (std::size_t d = 0; d < r_.size(); ++d) {
            if (r_[d].taps == 1) continue;
            w_.open(fmt::format("for p{} in tw.range({}):", d, r_[d].taps));
            sums.push_back(fmt::format("acc{}", d));
            w_.line(fmt::format("{} = {}", sums.back(), zeros));
        }
        matrix_ ? matrix(sums.back()) : direct(sums.back());
        for (; sums.size() > 1; sums.pop_back()) {
            w_.line(folded(sums[sums.size() - 2], sums.back()));
            w_.close();
        }
        std::string text = input("c", false);
        if (!pool_) {
            const std::string kernel = weight(name_[1], "c", name_[2]);
            text = v_.tf32 ? fmt::format("f32(tf32({})) * f32(tf32({}))", text, kernel) : fmt::format("{} * {}", text, kernel);
            text = fmt::format("sum(c in 0:{}, {})", depth_, text);
        }
        for (std::size_t d = r_.size(); d-- > 0;)
            if (r_[d].taps > 1) text = fmt::format("{}(p{} in 0:{}, {})", largest() ? "max" : "sum", d, r_[d].taps, text);
        w_.anchor_equation = text;
    }

    // Channels come before results in the kernels of transposed convolutions.
    bool turned() const { return v_.window.transposed; }
    std::string weight(const std::string& group, const std::string& channel, const std::string& result) const {
        return fmt::format("{}[{}, {}, {}{}]", kernel_, group, turned() ? channel : result, turned() ? result : channel, taps());
    }

    void matrix(const std::string& sum) {
        w_.open(fmt::format("for c in tw.range({}):", (depth_ + bk_ - 1) / bk_));
        const std::string k = fmt::format("c * {0} : c * {0} + {0}", bk_);
        w_.line(fmt::format("b = tw.load({}, fill=0.0)", input(k, true)));
        w_.line(fmt::format("a = tw.load({}, fill=0.0)", weight(index_[1], k, fmt::format("i * {0} : i * {0} + {0}", bm_))));
        if (v_.tf32 && v_.even) round_even(w_, {"a", "b"});
        w_.line("tw.sync()");
        w_.line("tw.store(sa, a)");
        w_.line("tw.store(sb, b)");
        w_.line("tw.sync()");
        w_.open(fmt::format("for kk in tw.unroll({}):", bk_ / 8));
        w_.line(fmt::format("fa = tw.load(sa[{}, layout=tw.mma_a())", turned() ? "kk * 8 : kk * 8 + 8, :].T" : ":, kk * 8 : kk * 8 + 8]"));
        w_.line("fb = tw.load(sb[kk * 8 : kk * 8 + 8, :].T, layout=tw.mma_b())");
        if (v_.tf32) {
            w_.line(fmt::format("tw.mma({}, fa.to(tf32), fb.to(tf32))", sum));
        } else {
            w_.line("ha = fa.to(tf32)");
            w_.line("hb = fb.to(tf32)");
            w_.line("la = (fa - ha.to(f32)).to(tf32)");
            w_.line("lb = (fb - hb.to(f32)).to(tf32)");
            for (const char* part : {"la, hb", "ha, lb", "ha, hb"}) w_.line(fmt::format("tw.mma({}, {})", sum, part));
        }
        w_.close();
        w_.close();
    }

    bool largest() const { return pool_ && v_.fn == "max"; }
    std::string folded(const std::string& to, const std::string& value) const {
        return largest() ? fmt::format("{0} = tw.maximum({0}, {1})", to, value) : fmt::format("{0} = {0} + {1}", to, value);
    }

    void direct(const std::string& sum) {
        if (pool_) {
            w_.line(fmt::format("x = tw.load({}, fill=0.0)", input("", true)));
            w_.line(folded(sum, "x"));
            return;
        }
        const char* round = v_.tf32 ? ".to(tf32).to(f32)" : "";
        w_.open(fmt::format("for c in tw.range({}):", depth_));
        w_.line(fmt::format("x = tw.load({}, fill=0.0){}", input("c", true), round));
        w_.line(fmt::format("{0} = {0} + x * tw.load({1}){2}", sum, weight(index_[1], "c", index_[2]), round));
        w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    std::vector<Residue> r_;
    std::vector<int> positions_;
    bool matrix_ = true, pool_ = false;
    int m_ = -1;
    std::size_t line_ = 0;  // the dimension whose positions are the tile's columns
    std::vector<GridAxis> outer_;
    std::vector<std::string> index_, name_;  // of sample, group and, one by one, channel
    std::int64_t bm_ = 64, bn_ = 0, bk_ = 16, depth_ = 1;
    std::string warps_, x_, kernel_;
};

const std::string kDirect = "direct:";  // Precision::rows

// What is tried where a direct convolution is not proved: first the same with every tap kept inside the image, then another template.
std::string instead_of_direct(const Primitives& p, const Primitive& v) {
    const std::string every = "every:" + v.from;
    return p.rows.contains(every) ? kDirect + v.from : every;
}

// A window whose positions are one phase: their atoms split by dimension. Nothing: what follows sees them otherwise.
struct OnePhase {
    Group group;
    std::vector<Residue> residues;
    std::vector<int> positions;
};
std::optional<OnePhase> one_phase(const Primitives& p, Group g) {
    const Window& window = p.list[static_cast<std::size_t>(g.anchor)].window;
    const auto axes = g.axes.at(g.anchor);
    if (axes.back().empty()) return std::nullopt;
    std::set<int> ends;
    for (const auto& axis : axes)
        if (!axis.empty()) ends.insert({axis.back(), atom_before(g, axis.front())});
    join_atoms(g, ends);
    std::vector<Residue> r;
    for (std::size_t d = 0; d < window.out.size(); ++d) r.push_back(residues(window, d)[0]);
    Phase phase(p, std::move(g), r);
    auto positions = phase.split();
    if (positions.empty()) return std::nullopt;
    return OnePhase{phase.group(), std::move(r), std::move(positions)};
}

bool without_taps(const std::vector<Residue>& r) {
    return std::any_of(r.begin(), r.end(), [](const Residue& one) { return one.taps == 0; });
}

// Every position of the output along one dimension, as one phase without taps.
Residue whole_dimension(std::int64_t n) { return {0, n, 0, 0, 1, 0, 1, 1, 1}; }

// Which remainder of each dimension the i-th of all combinations has; the last dimension's changes first.
std::vector<Residue> combination(const std::vector<std::vector<Residue>>& all, std::size_t i) {
    std::vector<Residue> r(all.size());
    for (std::size_t d = all.size(); d-- > 0; i /= all[d].size()) r[d] = all[d][i % all[d].size()];
    return r;
}

// Remainders of the last dimension together, on the matrix unit: a kernel for each combination of the others, which stores whole lines of
// the output. Lines that no tap meets are stored by kernels of their own. Nothing: not for this convolution.
std::optional<std::vector<KernelText>> write_lines(const Primitives& p, const Group& g, const std::string& name,
                                                   const std::vector<std::vector<Residue>>& all) {
    const Primitive& v = p.list[static_cast<std::size_t>(g.anchor)];
    const std::size_t lines = all.back().size();
    std::size_t rows = 1;
    for (std::size_t d = 0; d + 1 < all.size(); ++d) rows *= all[d].size();
    std::vector<KernelText> out;
    bool packed = false;
    for (std::size_t i = 0; i < rows; ++i) {
        std::vector<std::vector<Residue>> met;
        for (std::size_t k = 0; k < lines; ++k)
            if (auto r = combination(all, i * lines + k); !without_taps(r)) met.push_back(std::move(r));
        std::vector<Residue> line = combination(all, i * lines);
        line.back() = whole_dimension(v.window.out.back());
        Phase phase(p, g, line);
        const auto positions = phase.split();
        if (positions.empty()) return std::nullopt;
        Writer w(p, phase.group(), rows == 1 ? name : fmt::format("{}_{}", name, i));
        if (met.empty()) Dense(w, line, positions).write();
        else if (!write_packed_phases(w, met, positions, static_cast<std::int64_t>(lines), i * lines, !packed)) return std::nullopt;
        packed = packed || !met.empty();
        if (w.failed) return std::nullopt;
        auto kernel = w.finish();
        if (!kernel) return std::nullopt;
        kernel->rows = "apart:" + v.from;  // Precision::rows: what is not proved together is tried one by one
        out.push_back(std::move(*kernel));
    }
    return out;
}

}  // namespace

std::optional<KernelText> write_direct(const Primitives& p, const Group& group, const std::string& name) {
    const Primitive& v = p.list[static_cast<std::size_t>(group.anchor)];
    if (v.window.padded || p.rows.contains(kDirect + v.from) || !direct_is_better(p, group)) return std::nullopt;
    auto one = one_phase(p, group);
    if (!one) return std::nullopt;
    Writer w(p, one->group, name);
    if (!write_direct_phase(w, one->residues, one->positions, true) || w.failed) return std::nullopt;
    auto kernel = w.finish();
    if (!kernel) return std::nullopt;
    kernel->rows = instead_of_direct(p, v);
    return std::move(*kernel);
}

std::optional<KernelText> write_pool(const Primitives& p, const Group& group, const std::string& name) {
    const Primitive& v = p.list[static_cast<std::size_t>(group.anchor)];
    const std::string other = "terms:" + v.from, never = "pool:" + v.from;  // Precision::rows
    if (v.kind != Kind::window || v.window.padded || v.window.transposed || v.fn == "dot" || p.rows.contains(never)) return std::nullopt;
    auto one = one_phase(p, group);
    if (!one) return std::nullopt;
    const auto& kernel_dims = v.window.kernel;
    const auto wide = std::count_if(kernel_dims.begin(), kernel_dims.end(), [](std::int64_t n) { return n > 1; });
    Writer w(p, one->group, name);
    // Taps one by one where one dimension has them, a fold elsewhere: each is the form that is seen to be what the kernel does; then the
    // other, then another template.
    if (!write_pool_rows(w, one->residues, one->positions, (wide == 1) != p.rows.contains(other)) || w.failed) return std::nullopt;
    auto kernel = w.finish();
    if (!kernel) return std::nullopt;
    kernel->rows = p.rows.contains(other) ? never : other;
    return std::move(*kernel);
}

Result<std::vector<KernelText>> write_dense(const Primitives& p, const Group& group, const std::string& name) {
    const Primitive& v = p.list[static_cast<std::size_t>(group.anchor)];
    const int store = group.root == group.anchor ? -1 : group.anchor;
    const auto refused = [&](const char* what) {
        return Unexpected<Problem>{Problem{v.from, what, "this is a limit of the generator", store}};
    };
    for (const int m : group.members) {
        const Primitive& u = p.list[static_cast<std::size_t>(m)];
        if (u.kind == Kind::pick || (u.kind == Kind::pointwise && (u.fn == "triu" || u.fn == "tril" || u.fn == "causal")))
            return refused("what follows asks for places in its result");
    }
    Group g = group;
    const auto axes = g.axes.at(g.anchor);
    if (axes.back().empty()) return refused("a convolution with a single position");
    std::set<int> ends;
    for (const auto& axis : axes)
        if (!axis.empty()) ends.insert({axis.back(), atom_before(g, axis.front())});
    join_atoms(g, ends);
    std::vector<std::vector<Residue>> all;
    std::size_t count = 1;
    for (std::size_t d = 0; d < v.window.out.size(); ++d) {
        all.push_back(residues(v.window, d));
        count *= all.back().size();
    }
    if (count > 128) return refused("a transposed convolution with more than 128 remainders of its strides");
    std::vector<KernelText> out;
    bool packed = false, ready = false;
    const bool direct = !p.rows.contains(kDirect + v.from) && !p.rows.contains(v.from) && direct_is_better(p, g);
    if (!direct && v.window.transposed && all.back().size() > 1 && all.back().size() <= 8 && !p.rows.contains(v.from) &&
        !p.rows.contains("apart:" + v.from))
        if (auto lines = write_lines(p, g, name, all)) return std::move(*lines);
    const auto finish = [&](Writer& w) -> std::optional<Problem> {
        if (w.failed) return w.problem;
        auto kernel = w.finish();
        if (!kernel) return kernel.error();
        if (packed) kernel->rows = v.from;
        if (direct && ready) kernel->rows = instead_of_direct(p, v);
        out.push_back(std::move(*kernel));
        return std::nullopt;
    };
    bool filled = false;
    for (std::size_t i = 0; i < count && count > 1 && !filled; ++i) filled = without_taps(combination(all, i));
    if (filled) {
        // Positions that no tap meets: a kernel gives all positions what these have, row by row; the others are written over it.
        std::vector<Residue> whole;
        for (const std::int64_t n : v.window.out) whole.push_back(whole_dimension(n));
        Phase phase(p, g, whole);
        const auto positions = phase.split();
        if (positions.empty()) return refused("what follows a convolution cuts its positions");
        Writer w(p, phase.group(), name + "_none");
        Dense(w, whole, positions).write();
        if (auto problem = finish(w)) return Unexpected<Problem>{*problem};
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto r = combination(all, i);
        if (filled && without_taps(r)) continue;
        const std::string own = count == 1 ? name : fmt::format("{}_{}", name, i);
        Phase phase(p, g, r);
        const auto positions = phase.split();
        if (positions.empty()) return refused("what follows a convolution cuts its positions");
        Writer w(p, phase.group(), own);
        if (direct && write_direct_phase(w, r, positions, !ready)) ready = true;
        else if (write_packed_phases(w, {r}, positions, 1, i, !packed)) packed = true;
        else Dense(w, r, positions).write();
        if (auto problem = finish(w)) return Unexpected<Problem>{*problem};
    }
    return out;
}

}  // namespace tw::graph
