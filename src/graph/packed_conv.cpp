// Convolutions on Hopper's matrix unit, over operands that other kernels bring into its form (packing.h).
#include "graph/packing.h"

namespace tw::graph {

namespace {

class PackedConv : private Packing {
public:
    PackedConv(Writer& w, const ProductAxes& axes, std::vector<Residue> r, std::vector<int> positions, std::size_t phase, bool pack)
        : Packing(w, axes, std::move(r), std::move(positions), phase, pack) {}

    // Phases of one kernel are remainders of the last dimension, `lines` of them in all: what they make is stored as lines of the output.
    static bool write(std::vector<PackedConv>& phases, std::int64_t lines) {
        PackedConv& first = phases[0];
        std::int64_t step = 32;
        for (std::size_t i = 0; i < phases.size(); ++i) {
            PackedConv& p = phases[i];
            if (phases.size() > 1) p.suffix_ = fmt::format("_{}", i);
            p.lines_ = lines;
            p.together_ = static_cast<std::int64_t>(phases.size());
            if (!p.suits()) return false;
            p.choose();
            step = std::min(step, p.step_);
        }
        for (PackedConv& p : phases) {
            p.own_ = first.own_;
            p.across_ = first.across_;
            p.down_ = first.down_;
            p.fold_ = first.fold_;
            p.take_step(step);
            p.stage_output();
            if ((lines > 1 || p.fold_ > 0) && p.staged_ == 0) return false;
        }
        for (PackedConv& p : phases) {
            p.name_nodes();
            for (std::size_t part = 0; part < p.parts_; ++part) {
                p.pack_input(part);
                p.pack_weights(part);
            }
        }
        if (first.position_.empty()) first.split_positions();
        first.turn_places();
        kernel(phases);
        return true;
    }

private:
    // What the kernel sees of the packed input: overlapping rows of (tap, channel), or channels of every stride-th position.
    void view_input(std::size_t part) {
        Argument x = argument_of(packed_[part], false);
        const Axis& l = last();
        if (!apart_) {
            x.dims[x.dims.size() - 2] = l.out;
            x.dims.back() = depth_;
            x.strides[x.strides.size() - 2] = l.stride * lanes_;
            x.offset = l.from() * lanes_;
        } else if (l.stride > 1) {
            x.dims.insert(x.dims.end() - 2, l.stride);
            x.strides.insert(x.strides.end() - 2, lanes_);
            x.dims[x.dims.size() - 2] = width_ / l.stride;
            x.strides[x.strides.size() - 2] = l.stride * lanes_;
        }
        w_.add_argument(x);
        Argument w = argument_of(weights_[part], false);
        w.dims = {groups_};
        for (const auto& t : taps_) w.dims.push_back(t.second);
        w.dims.insert(w.dims.end(), {results_, depth_});
        w.strides.assign(w.dims.size(), 1);
        for (std::size_t d = w.dims.size() - 1; d-- > 0;) w.strides[d] = w.strides[d + 1] * w.dims[d + 1];
        w_.add_argument(w);
    }

    // The taps that are not in the summed dimension: their names and counts; axes without a window have none.
    void name_taps() {
        for (std::size_t d = 0; d < axis_.size(); ++d)
            if (axis_[d].taps > 1 && (d + 1 < axis_.size() || apart_)) taps_.emplace_back(fmt::format("p{}", d), axis_[d].taps);
    }

    std::string tap(std::size_t d) const { return axis_[d].taps > 1 ? fmt::format("p{}", d) : "0"; }
    std::string shift(std::size_t d) const {
        const Axis& a = axis_[d];
        const std::string t = a.taps == 1 ? "" : a.spread == 1 ? tap(d) : fmt::format("{} * {}", tap(d), a.spread);
        return t.empty() ? a.from() == 0 ? "" : std::to_string(a.from()) : t + plus_text(a.from());
    }
    // The row of the input that row `o` of the result and the tap meet.
    std::string meets(std::size_t d, const std::string& o) const {
        const Axis& a = axis_[d];
        const std::string at = a.stride == 1 ? o : fmt::format("{} * {}", o, a.stride);
        const std::string s = shift(d);
        return s.empty() ? at : fmt::format("{} + {}", at, s);
    }

    // Index of the packed input's last two or three dimensions; `at` is the position in the row.
    std::string in_row(const std::string& at, const std::string& k) const {
        const Axis& l = last();
        if (!apart_) return fmt::format("{}, {}", at, k);
        const std::string t = shift(rows());
        if (l.stride == 1) return fmt::format("{} + {}, {}", at, t, k);
        return fmt::format("({0}) % {1}, {2} + ({0}) // {1}, {3}", t, l.stride, at, k);
    }

    void equation() {
        std::string x = "_x" + suffix_ + "[" + axes_.name[0];
        for (std::size_t d = 0; d < rows(); ++d) x += ", " + meets(d, position_[d] < 0 ? "0" : w_.index_of(position_[d]));
        const std::string place = w_.index_of(position_.back());
        x = fmt::format("{}, {}])", x, in_row(lines_ == 1 ? place : fmt::format("{} // {}", place, lines_), "k"));
        std::string w = "_w" + suffix_ + "[" + axes_.name[1];
        for (const auto& t : taps_) w += ", " + t.first;
        w += fmt::format(", {}, k])", w_.index_of(axes_.m));
        const auto term = [&](const char* of_x, const char* of_w) { return fmt::format("f32({}{} * f32({}{}", of_x, x, of_w, w); };
        std::string text = term("P", "P");
        if (parts_ > 1) text = fmt::format("({} + {} + {})", term("P", "L"), term("L", "P"), text);
        // In the order in which the kernel adds: steps of k around the taps, or one step, inside them.
        const bool once = depth_ <= step_;
        if (once) text = fmt::format("sum(k in 0:{}, {})", depth_, text);
        for (std::size_t i = taps_.size(); i-- > 0;)
            text = apart_ || once ? listed(text, taps_[i]) : fmt::format("sum({} in 0:{}, {})", taps_[i].first, taps_[i].second, text);
        w_.anchor_equation = once ? text : fmt::format("sum(k in 0:{}, {})", depth_, text);
    }

    // The sum over a tap, term by term.
    static std::string listed(const std::string& term, const std::pair<std::string, std::int64_t>& tap) {
        std::string out;
        for (std::int64_t t = 0; t < tap.second; ++t) {
            std::string one = term;
            for (std::size_t at = one.find(tap.first); at != std::string::npos; at = one.find(tap.first, at))
                one.replace(at, tap.first.size(), std::to_string(t));
            out += (t ? " + " : "(") + one;
        }
        return out + ")";
    }

    void loops() {
        w_.open(fmt::format("for kb in tw.range({}):", blocks_of(depth_, step_)));
        for (const auto& [name, count] : taps_) w_.open(fmt::format("for {} in tw.unroll({}):", name, count));
    }
    void end_loops() {
        for (std::size_t i = 0; i < taps_.size(); ++i) w_.close();
        w_.close();
    }
    std::string row_of(std::size_t d, const std::string& more) const {
        return d + 1 < rows() || down_ == 1 ? fmt::format("h{}", d) : fmt::format("h{} * {}{}", d, down_, more);
    }
    static const char* low(std::size_t part) { return part == 0 ? "" : "_low"; }

    void produce() {
        loops();
        w_.line("slot = ring.acquire()");
        std::string w = axes_.index[1];
        for (const auto& t : taps_) w += ", " + t.first;
        for (std::size_t part = 0; part < parts_; ++part)
            w_.line(fmt::format("tw.tma_load(sw{}[slot], {}[{}, ob * {}, kb * {}], on=ring.full(slot))", low(part), weights_[part].name, w,
                                columns_, step_));
        const std::string& z = axes_.index[0];
        // Neighbouring rows are one tile: which row a consumer reads is then a formula of its number.
        const bool together = down_ == 1 || axis_[rows() - 1].stride == 1;
        for (std::int64_t r = 0; r < (together ? 1 : down_); ++r) {
            std::string rows_text;
            for (std::size_t d = 0; d < rows(); ++d) {
                const std::string o = row_of(d, plus_text(r));
                rows_text += ", " + meets(d, axis_[d].stride == 1 ? o : "(" + o + ")");
            }
            const std::string place = down_ == 1 ? ", 0" : together ? "" : fmt::format(", {}", r);
            for (std::size_t part = 0; part < parts_; ++part)
                w_.line(fmt::format("tw.tma_load(sx{}[slot{}], {}[{}{}, {}], on=ring.full(slot))", low(part), place, packed_[part].name, z,
                                    rows_text, in_row(fmt::format("jb * {}", across_ * kPositions), fmt::format("kb * {}", step_))));
        }
        end_loops();
    }

    std::string sum(std::int64_t i) const { return fmt::format("acc{}{}", i, suffix_); }

    void consume() {
        loops();
        w_.line("slot = ring.wait()");
        w_.open("with tw.wgmma_batch():");
        for (std::int64_t i = 0; i < own_; ++i) {
            const auto multiply = [&](std::size_t x, std::size_t y) {
                w_.line(
                    fmt::format("tw.wgmma({}, {}{}[slot, {}], sw{}[slot].T)", sum(i), fold_ > 0 ? "sr" : "sx", low(x), chunk(i), low(y)));
            };
            if (parts_ > 1) {
                multiply(0, 1);
                multiply(1, 0);
            }
            multiply(0, 0);
        }
        w_.close();
        w_.line("tw.wgmma_wait(1)");
        w_.line("ring.release(keep=1)");
        end_loops();
        w_.line("tw.wgmma_wait(0)");
        w_.line("ring.release()");
    }

    // The chunk i of consumer w: in shared memory, and of the result.
    std::string chunk(std::int64_t i) const {
        const std::string from =
            down_ == 1 ? fmt::format("w * {}{}", own_ * kPositions, plus_text(i * kPositions)) : std::to_string(i * kPositions);
        return fmt::format("{0}, {1} : {1} + {2}, :", down_ == 1 ? "0" : "w", from, kPositions);
    }

    // Where the consumer's chunk i of a row begins.
    std::string column(std::int64_t i) const {
        std::string from = fmt::format("jb * {}", across_ * kPositions * lines_);
        if (down_ == 1) from += fmt::format(" + w * {}", own_ * kPositions * lines_);
        return from + plus_text(i * kPositions);
    }

    void store(std::int64_t i) {
        w_.begin_scope();
        w_.tile = {{position_.back(), column(i), kPositions}, {axes_.m, fmt::format("ob * {}", columns_), columns_}};
        w_.set(g_.anchor, {sum(i), 3U, false});
        w_.store(w_.value(g_.root));
        w_.end_scope();
    }

    // Results that a thread stores at once, as the rows of the output are aligned: threads side by side then fill sectors.
    std::int64_t vector() const {
        std::int64_t all = g_.output.offset;
        for (const Place& p : g_.output.places)
            if (p.atom != position_.back()) all |= p.atom < 0 ? p.stride * p.start : p.stride;
        return all % 4 == 0 ? 4 : all % 2 == 0 ? 2 : 1;
    }

    // From registers a warp stores 8 neighbouring positions of 4 results at once, a sector each. Through shared memory, some results at a
    // time, it stores rows of all positions that the consumer has. What follows the sums is done to these, so that few registers hold it.
    // The remainders of a line lie there as in the output; those without taps are zeros.
    void store_staged(const std::vector<PackedConv>& phases) {
        const std::int64_t wide = own_ * kPositions;
        for (std::int64_t rest = 0; lines_ > 1 && rest < lines_; ++rest)
            if (std::none_of(phases.begin(), phases.end(), [&](const PackedConv& p) { return p.r_.back().rest == rest; }))
                w_.line(fmt::format("tw.store(so[w, :, 0:{}, {}], tw.zeros(f32, ({}, {})))", wide, rest, staged_, wide));
        w_.open(fmt::format("for q in tw.unroll({}):", columns_ / staged_));
        for (const PackedConv& p : phases)
            for (std::int64_t i = 0; i < own_; ++i)
                w_.line(fmt::format("tw.store(so[w{2}{3}].T, {0}[:, q * {1} : q * {1} + {1}])", p.sum(i), staged_,
                                    own_ * lines_ == 1 ? "" : fmt::format(", :, {0} : {0} + {1}", i * kPositions, kPositions),
                                    lines_ == 1 ? "" : fmt::format(", {}", p.r_.back().rest)));
        w_.line("own.sync()");
        w_.tile = {{axes_.m, fmt::format("ob * {} + q * {}", columns_, staged_), staged_},
                   {position_.back(), fold_ > 0 ? "0" : column(0), (fold_ > 0 ? fold_ : wide) * lines_}};
        if (fold_ > 0) {
            const std::size_t d = rows() - 1;
            const std::int64_t each = own_ * rows_of_chunk();
            const std::string row = row_of(d, fmt::format(" + w * {} + r", each));
            w_.open(fmt::format("for r in tw.unroll({}):", each));
            if (axis_[d].out % down_ != 0) w_.open(fmt::format("if {} < {}:", row, axis_[d].out));
            load_staged(fmt::format("{0}[w, :, r * {1} : r * {1} + {1}]", lines_ == 1 ? "so" : "line", fold_ * lines_));
            if (position_[d] >= 0) w_.at[position_[d]] = row;
            w_.store(w_.value(g_.root));
            if (axis_[d].out % down_ != 0) w_.close();
            w_.close();
        } else {
            load_staged(lines_ == 1 ? "so[w]" : fmt::format("line[w, :, 0:{}]", wide * lines_));
            w_.store(w_.value(g_.root));
        }
        w_.line("own.sync()");
        w_.close();
    }

    void load_staged(const std::string& from) {
        w_.line(fmt::format("y = tw.load({}, layout=tw.blocked(vector={}))", from, vector()));
        w_.set(g_.anchor, {"y", 3U, false});
    }

    // What all phases of a kernel share.
    void begin() {
        // A warp copies: two blocks then have 112 registers a thread, as sums of 64 want.
        w_.threads = 288;
        w_.blocks_per_sm = 2;
        w_.ranges = true;
        for (std::size_t part = 0; part < parts_; ++part) {
            w_.line(fmt::format("sx{} = tw.shared(tf32, ({}, {}, {}, {}), swizzle={})", low(part), stages_, down_,
                                fold_ > 0 ? fold_ : across_ * kPositions, step_, step_ * 4));
            if (fold_ > 0)
                w_.line(fmt::format("sr{0} = tw.overlay(sx{0}, tf32, ({1}, 2, {2}, {3}), swizzle={4})", low(part), stages_,
                                    own_ * kPositions, step_, step_ * 4));
            w_.line(fmt::format("sw{} = tw.shared(tf32, ({}, {}, {}), swizzle={})", low(part), stages_, columns_, step_, step_ * 4));
        }
        if (lines_ > 1) {
            w_.line(fmt::format("so = tw.shared(f32, (2, {}, {}, {}))", staged_, staged_row(), lines_));
            w_.line(fmt::format("line = tw.overlay(so, f32, (2, {}, {}))", staged_, staged_row() * lines_));
        } else if (staged_ > 0) {
            w_.line(fmt::format("so = tw.shared(f32, (2, {}, {}), pad={})", staged_, own_ * kPositions, kStagedPad));
        }
        w_.line(fmt::format("ring = tw.pipeline({}, consumers=2)", stages_));
        std::vector<GridAxis> grid = {{"ob", blocks_of(results_, columns_)}, {"jb", blocks_of(places(), kPositions * across_)}};
        for (std::size_t d = rows(); d-- > 0;)
            grid.push_back({fmt::format("h{}", d), d + 1 == rows() ? blocks_of(axis_[d].out, down_) : axis_[d].out});
        grid.insert(grid.end(), axes_.outer.begin(), axes_.outer.end());
        w_.grid(grid);
    }

    // What each remainder of a line is, by the place in it.
    static std::string equation_of_line(const std::vector<PackedConv>& phases, const std::vector<std::string>& equations) {
        const PackedConv& first = phases[0];
        std::vector<std::string> of(static_cast<std::size_t>(first.lines_), "0.0");
        for (std::size_t i = 0; i < phases.size(); ++i)
            of[first.lines_ == 1 ? 0 : static_cast<std::size_t>(phases[i].r_.back().rest)] = equations[i];
        std::string text = of[0];
        for (std::size_t rest = 1; rest < of.size(); ++rest)
            text =
                fmt::format("where({} % {} < {}, {}, {})", first.w_.index_of(first.position_.back()), first.lines_, rest, text, of[rest]);
        return text;
    }

    static void kernel(std::vector<PackedConv>& phases) {
        PackedConv& first = phases[0];
        Writer& w = first.w_;
        std::vector<std::string> equations;
        for (PackedConv& p : phases) {
            p.name_taps();
            for (std::size_t part = 0; part < p.parts_; ++part) p.view_input(part);
            p.equation();
            equations.push_back(w.anchor_equation);
        }
        w.anchor_equation = equation_of_line(phases, equations);
        first.begin();
        w.open("with tw.warps(8, name=\"producer\"):");
        for (PackedConv& p : phases) p.produce();
        w.close();
        w.open("with tw.warpgroups(0, 1, name=\"consumer\") as w:");
        for (PackedConv& p : phases)
            for (std::int64_t i = 0; i < p.own_; ++i) w.line(fmt::format("{} = tw.zeros(f32, ({}, {}))", p.sum(i), kPositions, p.columns_));
        for (PackedConv& p : phases) p.consume();
        const std::size_t d = first.rows() - 1;
        for (std::size_t e = 0; e < first.rows(); ++e)
            if (first.position_[e] >= 0) w.at[first.position_[e]] = first.row_of(e, " + w");
        if (first.staged_ > 0) w.line("own = tw.named_barrier(1 + w, 128)");
        const bool guarded = first.rows() > 0 && first.fold_ == 0 && first.axis_[d].out % first.down_ != 0;
        if (guarded) w.open(fmt::format("if {} < {}:", first.row_of(d, " + w"), first.axis_[d].out));
        if (first.staged_ > 0) first.store_staged(phases);
        for (std::int64_t i = 0; first.staged_ == 0 && i < first.own_; ++i) first.store(i);
        if (guarded) w.close();
        w.close();
    }

    std::vector<std::pair<std::string, std::int64_t>> taps_;
};

}  // namespace

bool write_packed_conv(Writer& w, const ProductAxes& axes) {
    const Window& win = w.prim(w.g.anchor).window;
    if (win.transposed || win.padded) return false;
    std::vector<Residue> r;
    for (std::size_t d = 0; d < win.in.size(); ++d) r.push_back(residues(win, d)[0]);
    std::vector<PackedConv> one;
    one.emplace_back(w, axes, r, std::vector<int>{}, 0, true);
    return PackedConv::write(one, 1);
}

bool write_packed_phases(Writer& w, const std::vector<std::vector<Residue>>& r, const std::vector<int>& positions, std::int64_t lines,
                         std::size_t phase, bool pack) {
    const auto& axes = w.g.axes.at(w.g.anchor);
    ProductAxes found;
    if (axes[2].size() != 1) return false;
    found.m = axes[2][0];
    name_outer(w, found, 2);
    std::vector<PackedConv> phases;
    for (std::size_t i = 0; i < r.size(); ++i) phases.emplace_back(w, found, r[i], positions, phase + i, pack && i == 0);
    return PackedConv::write(phases, lines);
}

}  // namespace tw::graph
