#include "graph/packing.h"

#include <algorithm>

namespace tw::graph {

bool Packing::suits() {
    const Window& win = v_.window;
    if (w_.p.rows.contains(v_.from)) return false;
    parts_ = v_.tf32 ? 1 : 2;
    if (g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32") return false;
    for (const View& view : g_.operands) {
        if (w_.prim(view.base).dtype != "f32") return false;
        for (const Dim& d : view.dims)
            if (!d.whole()) return false;
    }
    if (g_.operands[0].dims[3].stride != 1) return false;
    std::int64_t positions = 1, taps = 1;
    const Window* edge = unpadded();
    for (std::size_t d = 0; d < win.in.size(); ++d) {
        axis_.push_back({win.in[d], r_[d].extent, r_[d].taps, r_[d].stride, r_[d].shift, r_[d].spread});
        if (edge != nullptr) {
            Axis& a = axis_.back();
            a.in = edge->in[d];
            a.shift -= edge->padding[d];
            a.before = edge->padding[d];
            a.full = edge->out[d];
        }
        positions *= r_[d].extent;
        taps *= r_[d].taps;
    }
    const Shape& x = w_.prim(v_.in[0]).shape;  // (b, g, c, s)
    batch_ = x[0];
    groups_ = x[1];
    channels_ = x[2];
    results_ = g_.size.at(axes_.m);
    if (groups_ != 1) return false;
    if (!whole_in(g_, axes_.m) || (position_.empty() && !whole_in(g_, axes_.n))) return false;
    if (!position_.empty() && position_.back() < 0) return false;
    if (win.taps() == 1 || taps == 0) return false;                        // nothing is gained by a copy of the input
    for (std::size_t i = 0; position_.empty() && i + 1 < axis_.size();) {  // a dimension without a window is part of the one before it
        Axis &a = axis_[i], &b = axis_[i + 1];
        const bool plain = b.taps == 1 && b.stride == 1 && b.shift == 0 && b.in == b.out && a.stride == 1 && a.shift == 0;
        if (!plain) {
            ++i;
            continue;
        }
        a.in *= b.in;
        a.out *= b.in;
        a.spread *= b.in;
        axis_.erase(axis_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
    // Lines of the output are made by launches that are large together, whatever each has of it.
    if (lines_ > 1) taps = count_of(win.kernel), positions = count_of(win.in);
    if (batch_ * channels_ * results_ * taps < w_.p.large / positions) return false;
    const Axis& l = last();
    apart_ = l.taps > 1 && l.spread > 1;
    if (w_.p.large > 1 && (results_ < 16 || (short_row() == 0 ? l.out < 24 : l.out < 5))) return false;
    if (axis_.size() == 1 && l.out <= kPositions) return false;
    return !(apart_ && l.stride > 1 && axis_.size() == 3);
}

const Window* Packing::unpadded() {
    const Primitive& e = w_.prim(g_.operands[0].base);
    if (!v_.window.padded || e.kind != Kind::window || e.window.taps() != 1 || e.window.in.size() != v_.window.in.size()) return nullptr;
    int x = e.in[0];
    while (w_.prim(x).kind == Kind::reshape) x = w_.prim(x).in[0];
    if (w_.prim(x).kind != Kind::leaf || w_.prim(x).dtype != "f32") return nullptr;
    source_ = x;
    return &e.window;
}

std::int64_t Packing::height(std::size_t d) const {
    const Axis& a = axis_[d];
    return std::max({a.full, a.in + a.padding(), (a.out - 1) * a.stride + a.from() + (a.taps - 1) * a.spread + 1});
}

std::int64_t Packing::short_row() const {
    // Lines gain by it (L2-26 4.9 to 0.9 ms); a plain convolution of 24 x 24 places was measured to take longer.
    if (lines_ == 1 || rows() == 0 || axis_[rows() - 1].stride != 1 || (apart_ && last().stride > 1)) return 0;
    const std::int64_t wide = std::max<std::int64_t>(8, power_of_two(places()));
    return wide <= kPositions / 2 && axis_[rows() - 1].out >= 2 * kPositions / wide ? wide : 0;
}

void Packing::choose() {
    const Axis& l = last();
    lanes_ = up_to(channels_, 4);
    width_ = height(rows());
    if (apart_) width_ = up_to(width_, l.stride);
    depth_ = apart_ ? lanes_ : l.taps * lanes_;
    step_ = 32;
    double least = 1e30;
    for (const std::int64_t s : {32, 16, 8}) {
        const double cost = static_cast<double>(up_to(depth_, s)) * (s == 32 ? 1.0 : s == 16 ? 1.15 : 1.4);
        if (cost < least) {
            least = cost;
            step_ = s;
        }
    }
    // Sums of 64 registers a thread: two blocks fit a multiprocessor, and one stores while the other multiplies.
    const std::int64_t most_columns = std::max<std::int64_t>(8, 128 / together_ / 8 * 8);
    columns_ = up_to(blocks_of(results_, together_ > 1 ? blocks_of(results_, most_columns) : 1), 8);
    columns_ = std::min(columns_, most_columns);
    own_ = std::max<std::int64_t>(1, std::min<std::int64_t>(4, 128 / (up_to(columns_, 32) * together_)));
    // Lines are stored through shared memory: two stages and eight results of them have to fit half of it.
    const auto bytes = [&](std::int64_t own) {
        return 2 * (2 * own * kPositions + columns_) * step_ * 4 * static_cast<std::int64_t>(parts_) +
               2 * 8 * (own * kPositions + kStagedPad) * lines_ * 4;
    };
    while (lines_ > 1 && own_ > 1 && bytes(own_) > kHalfShared) own_ /= 2;
    // A consumer's chunks lie in one row: both consumers in the same one, or each in its own.
    const std::int64_t in_row = blocks_of(places(), kPositions), most = own_;
    double best = -1;
    fold_ = short_row();
    for (std::int64_t own = most; fold_ > 0 && own >= 1; own /= 2) {
        const std::int64_t down = 2 * own * rows_of_chunk();
        if (axis_[rows() - 1].out < down) continue;  // a block has all of its rows
        const double cost = static_cast<double>(up_to(axis_[rows() - 1].out, down)) * (own == most ? 1.0 : 2 * own == most ? 1.1 : 1.3);
        if (best >= 0 && cost >= best) continue;
        best = cost;
        own_ = own;
        across_ = 1;
        down_ = down;
    }
    if (fold_ > 0) return take_step(step_);
    for (std::int64_t own = most; own >= 1; own /= 2) {
        for (const std::int64_t down : {1, 2}) {
            const std::int64_t across = 2 * own / down;
            if (across > in_row || (rows() == 0 && down > 1)) continue;
            const std::int64_t all = up_to(in_row, across) * (rows() == 0 ? 1 : up_to(axis_[rows() - 1].out, down));
            const double cost = static_cast<double>(all) * (own == most ? 1.0 : 2 * own == most ? 1.1 : 1.3);
            if (best >= 0 && cost >= best) continue;
            best = cost;
            own_ = own;
            across_ = across;
            down_ = down;
        }
    }
    take_step(step_);
}

void Packing::take_step(std::int64_t step) {
    step_ = step;
    const std::int64_t bytes = (2 * own_ * kPositions + columns_) * step_ * 4 * static_cast<std::int64_t>(parts_);
    stages_ = std::clamp<std::int64_t>(110000 / bytes, 2, 8);
}

void Packing::stage_output() {
    // Half of a multiprocessor's shared memory, less what a block takes for itself and its barriers; all of it where the ring takes more.
    constexpr std::int64_t half = kHalfShared, whole = 230000;
    if (w_.prim(g_.root).dtype != "f32" || columns_ % 8 != 0) return;
    for (const Place& p : g_.output.places)
        if (p.atom == (position_.empty() ? axes_.n : position_.back()) && p.stride != 1) return;
    const std::int64_t stage = (2 * own_ * kPositions + columns_) * step_ * 4 * static_cast<std::int64_t>(parts_);
    const std::int64_t most = stages_ * stage <= half ? half : whole;
    const auto bytes = [&](std::int64_t results) { return 2 * results * staged_row() * lines_ * 4; };
    const std::int64_t least = own_ > 1 ? 2 : 3;  // a stage of several chunks is long enough
    // Beside the sums, 8 or 16 registers a thread; short rows are stored one by one.
    const std::int64_t wanted = (own_ * lines_ == 1 || fold_ > 0) && columns_ % 16 == 0 ? 16 : 8;
    while (stages_ > least && stages_ * stage + bytes(wanted) > most) --stages_;
    for (const std::int64_t results : {16, 8})
        if (staged_ == 0 && results <= wanted && columns_ % results == 0 && stages_ * stage + bytes(results) <= most) staged_ = results;
}

Argument Packing::high_of(const Scratch& s) {
    Argument a = argument_of(s, false);
    a.name = "H";
    return a;
}

void Packing::pack_input(std::size_t part) {
    const Axis& l = last();
    Scratch& packed = packed_[part];
    packed.name = (part == 0 ? "P_x" : "L_x") + suffix_;
    packed.dtype = "tf32";
    packed.buffer = fmt::format("%{}.x{}", g_.root, part == 0 ? "" : "_low");
    packed.dims = {batch_ * groups_};
    for (std::size_t d = 0; d < rows(); ++d) packed.dims.push_back(height(d));
    packed.dims.insert(packed.dims.end(), {width_, lanes_});
    packed.whole = packed.dims;
    packed.strides.assign(packed.dims.size(), 1);
    for (std::size_t d = packed.dims.size() - 1; d-- > 0;) packed.strides[d] = packed.strides[d + 1] * packed.dims[d + 1];
    if (!pack_) return;  // the first kernel of the group packs for all
    Helper h;
    h.name = w_.name() + (part == 0 ? "_x" : "_x_low");
    Argument x;
    x.primitive = source_ >= 0 ? source_ : g_.operands[0].base;
    x.name = "X";
    x.dtype = "f32";
    const auto& dims = g_.operands[0].dims;
    x.dims = {batch_, channels_};
    x.strides = {dims[0].stride, dims[2].stride};
    if (source_ >= 0) {
        std::int64_t all = 1;
        for (const Axis& a : axis_) all *= a.in;
        x.strides = {groups_ * channels_ * all, all};
    }
    Argument z = argument_of(packed, true);
    z.name = "Z";
    std::int64_t below = l.in;
    for (std::size_t d = rows(); d-- > 0; below *= axis_[d].in) {
        x.dims.insert(x.dims.begin() + 2, axis_[d].in);
        x.strides.insert(x.strides.begin() + 2, below);
    }
    x.dims.push_back(l.in);
    x.strides.push_back(1);
    // Rows of zeros around the image are the launcher's.
    std::string left, rows_in, rows_out;
    std::vector<GridAxis> rows_grid;
    for (std::size_t d = 0; d < rows(); ++d) {
        const Axis& a = axis_[d];
        const std::string r = fmt::format("r{}", d);
        z.zeroed = z.zeroed || height(d) != a.in;
        left += fmt::format(", {} in {}:{}", r, a.padding(), a.padding() + a.in);
        rows_in += ", " + r;
        rows_out += fmt::format(", {}{}", r, plus_text(a.padding()));
        rows_grid.insert(rows_grid.begin(), {r, a.in});
    }
    h.arguments = {x, z};
    if (part > 0) h.arguments.insert(h.arguments.begin() + 1, high_of(packed_[0]));
    const std::string from = "w" + plus_text(-l.padding());
    std::string inside;
    const auto require = [&](const std::string& c) { inside += (inside.empty() ? "" : " and ") + c; };
    if (l.padding() > 0) require(from + " >= 0");
    if (width_ - l.padding() > l.in) require(fmt::format("{} < {}", from, l.in));
    if (lanes_ > channels_) require(fmt::format("c < {}", channels_));
    std::string value = "X[b, c";
    for (std::size_t d = 0; d < rows(); ++d) value += fmt::format(", r{}{}", d, plus_text(-axis_[d].padding()));
    value += fmt::format(", {}]", from);
    if (!inside.empty()) value = fmt::format("where({}, {}, 0)", inside, value);
    std::string own = "b";
    for (std::size_t d = 0; d < rows(); ++d) own += fmt::format(", r{}", d);
    if (part > 0) value = fmt::format("{} - f32(H[{}, w, c])", value, own);
    h.computes = fmt::format("    Z[b{}, w in 0:{}, c in 0:{}] = tf32({})", left, width_, lanes_, value);
    const std::int64_t deep = std::clamp<std::int64_t>(power_of_two(lanes_), 4, 64),
                       wide = 2048 / deep < 64 ? 64 : std::min<std::int64_t>(2048 / deep, 256);
    h.body = fmt::format("    s = tw.shared(f32, ({}, {}), pad=1)\n", deep, wide);
    Writer grid(w_.p, g_, "");
    std::vector<GridAxis> blocks = {{"j", blocks_of(width_, wide)}, {"k", blocks_of(lanes_, deep)}};
    blocks.insert(blocks.end(), rows_grid.begin(), rows_grid.end());
    blocks.push_back({"b", batch_});
    grid.grid(blocks);
    h.body += grid.body();
    const std::string w = fmt::format("j * {0}{1} : j * {0}{1} + {0}", wide, plus_text(-l.padding()));
    h.body += fmt::format("    tw.store(s, tw.load(X[b, k * {0} : k * {0} + {0}{2}, {1}], fill=0.0))\n    tw.sync()\n", deep, w, rows_in);
    const std::string place = fmt::format("b{2}, j * {0} : j * {0} + {0}, k * {1} : k * {1} + {1}", wide, deep, rows_out);
    h.body += fmt::format("    x = tw.load(s.T){}\n", part == 0 ? "" : fmt::format(" - tw.load(H[{}], fill=0.0).to(f32)", place));
    h.body += rounding() + fmt::format("    tw.store(Z[{}], x.to(tf32))\n", place);
    w_.before.push_back(helper_text(h, "packing", nodes_));
}

void Packing::pack_weights(std::size_t part) {
    Scratch& weights = weights_[part];
    const std::size_t n = r_.size();
    weights.name = (part == 0 ? "P_w" : "L_w") + suffix_;
    weights.dtype = "tf32";
    weights.buffer = fmt::format("%{}.w{}{}", g_.root, phase_, part == 0 ? "" : "_low");
    Helper h;
    h.name = w_.name() + suffix_ + (part == 0 ? "_w" : "_w_low");
    Argument x;
    x.primitive = g_.operands[1].base;
    x.name = "X";
    x.dtype = "f32";
    for (const Dim& d : g_.operands[1].dims) {
        x.dims.push_back(d.size);
        x.strides.push_back(d.stride);
    }
    // (g, taps before the last, o, last taps, c); of taps that lie apart (g, taps, o, c).
    Shape shape = {groups_};
    std::string left = "g", own = "g", right, place = "g";
    std::vector<GridAxis> grid = {{"k", blocks_of(lanes_, 32)}, {"i", blocks_of(results_, 64)}, {"g", groups_}};
    const bool turned = v_.window.transposed;
    const auto tap = [&](std::size_t d) {
        const Residue& r = r_[d];
        if (r.taps == 1) return std::to_string(r.first);
        if (r.step == -1) return fmt::format("t{}", d);
        return r.step == 1 ? fmt::format("{} - t{}", r.first, d) : fmt::format("{} - t{} * {}", r.first, d, r.step);
    };
    for (std::size_t d = 0; d < n; ++d) {
        right += ", " + tap(d);
        if (r_[d].taps > 1) grid.push_back({fmt::format("t{}", d), r_[d].taps});
    }
    const auto dimension = [&](std::size_t d) {
        shape.push_back(r_[d].taps);
        left += fmt::format(", t{} in 0:{}", d, r_[d].taps);
        own += fmt::format(", t{}", d);
        place += r_[d].taps > 1 ? fmt::format(", t{}", d) : ", 0";
    };
    const std::size_t inner = last_window();
    for (std::size_t d = 0; d < n; ++d)
        if (apart_ || d != inner) dimension(d);
    shape.push_back(results_);
    left += ", o";
    own += ", o";
    place += ", i * 64 : i * 64 + 64";
    if (!apart_) dimension(inner);
    shape.push_back(lanes_);
    left += fmt::format(", c in 0:{}", lanes_);
    own += ", c";
    place += ", k * 32 : k * 32 + 32";
    weights.dims = weights.whole = shape;
    weights.strides.assign(shape.size(), 1);
    for (std::size_t d = shape.size() - 1; d-- > 0;) weights.strides[d] = weights.strides[d + 1] * shape[d + 1];
    Argument z = argument_of(weights, true);
    z.name = "Z";
    h.arguments = {x, z};
    if (part > 0) h.arguments.insert(h.arguments.begin() + 1, high_of(weights_[0]));
    std::string value = turned ? fmt::format("X[g, c, o{}]", right) : fmt::format("X[g, o, c{}]", right);
    if (lanes_ > channels_) value = fmt::format("where(c < {}, {}, 0)", channels_, value);
    if (part > 0) value = fmt::format("{} - f32(H[{}])", value, own);
    h.computes = fmt::format("    Z[{}] = tf32({})", left, value);
    Writer body(w_.p, g_, "");
    body.grid(grid);
    const std::string o = "i * 64 : i * 64 + 64", c = "k * 32 : k * 32 + 32";
    if (turned) {
        h.body = "    s = tw.shared(f32, (32, 64), pad=1)\n" + body.body();
        h.body += fmt::format("    tw.store(s, tw.load(X[g, {}, {}{}], fill=0.0))\n    tw.sync()\n    x = tw.load(s.T)\n", c, o, right);
    } else {
        h.body = body.body() + fmt::format("    x = tw.load(X[g, {}, {}{}], fill=0.0)\n", o, c, right);
    }
    if (part > 0) h.body += fmt::format("    x = x - tw.load(H[{}], fill=0.0).to(f32)\n", place);
    h.body += rounding() + fmt::format("    tw.store(Z[{}], x.to(tf32))\n", place);
    w_.before.push_back(helper_text(h, "packing", nodes_));
}

std::size_t Packing::last_window() const {
    std::size_t d = r_.size() - 1;
    while (d > 0 && axis_.size() <= d && r_[d].taps == 1) --d;
    return d;
}

void Packing::split_positions() {
    const auto split = [&](int atom, std::int64_t inner) {
        const int fresh = *std::max_element(g_.order.begin(), g_.order.end()) + 1000;
        const auto cut = [&](Read& r) {
            for (std::size_t i = 0; i < r.places.size(); ++i) {
                if (r.places[i].atom != atom) continue;
                Place p = r.places[i];
                r.places[i].stride *= inner;
                r.places[i].extent /= inner;
                p.atom = fresh;
                p.extent = inner;
                r.places.insert(r.places.begin() + static_cast<std::ptrdiff_t>(i) + 1, p);
                return;
            }
        };
        for (auto& [id, read] : g_.reads) cut(read);
        cut(g_.output);
        for (auto& [id, axes] : g_.axes)
            for (auto& a : axes)
                if (const auto at = std::find(a.begin(), a.end(), atom); at != a.end()) a.insert(at + 1, fresh);
        g_.size[fresh] = inner;
        g_.size[atom] /= inner;
        g_.order.insert(std::find(g_.order.begin(), g_.order.end(), atom) + 1, fresh);
        return fresh;
    };
    position_ = {axes_.n};
    std::int64_t inner = 1;
    for (std::size_t d = 1; d < axis_.size(); ++d) inner *= axis_[d].out;
    for (std::size_t d = 1; d < axis_.size(); ++d) {
        position_.push_back(split(position_.back(), inner));
        inner /= axis_[d].out;
    }
}

void Packing::turn_places() {
    const int last = staged_ > 0 ? position_.back() : axes_.m;
    const auto turn = [&](Read& r) {
        std::stable_sort(r.places.begin(), r.places.end(), [&](const Place& a, const Place& b) {
            const auto rank = [&](const Place& p) { return p.atom == last ? 2 : p.atom == axes_.m || p.atom == position_.back() ? 1 : 0; };
            return rank(a) < rank(b);
        });
    };
    for (auto& [id, read] : g_.reads) turn(read);
    turn(g_.output);
}
}  // namespace tw::graph
