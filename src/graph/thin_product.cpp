// f32 products with few rows on one side (linear layers of a small batch): the long operand is read once, as it is, and taken apart in
// registers. A number is a tf32 number and, as tf32, what that leaves; the short operand is taken apart by kernels of its own, which cost
// nothing. Splitting the long one there (split_product.cpp) would move it four times over. See docs/performance/graph.md.
#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kThinRows = 128;  // of the long operand, a tile; of the short one at most, where this is worth it
constexpr std::int64_t kThinStep = 32;

class ThinProduct {
public:
    ThinProduct(Writer& w, const ProductAxes& axes) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), axes_(axes) {}

    bool write() {
        if (!suits()) return false;
        w_.family = "product";
        for (const int m : g_.members) {
            const std::string& from = w_.prim(m).from;
            if (std::find(nodes_.begin(), nodes_.end(), from) == nodes_.end()) nodes_.push_back(from);
        }
        high_ = part("high");
        low_ = part("low");
        split(high_, "");
        split(low_, " - f32(H[m, k])");
        w_.symbol = {{axes_.m, "M"}, {axes_.n, "N"}};
        w_.sizes = {{"M", rows_}, {"N", columns_}, {"K", depth_}};
        turn();
        kernel();
        return true;
    }

private:
    bool suits() {
        if (v_.tf32 || g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32" || !axes_.outer.empty()) return false;
        const View &a = g_.operands[0], &b = g_.operands[1];
        for (const View* view : {&a, &b}) {
            if (w_.prim(view->base).dtype != "f32" || view->dims[0].size != 1) return false;
            for (const Dim& d : view->dims)
                if (!d.whole()) return false;
        }
        rows_ = a.dims[1].size;
        depth_ = a.dims[2].size;
        columns_ = b.dims[2].size;
        // Copies of whole tiles want rows of whole vectors.
        if (a.dims[2].stride != 1 || a.dims[1].stride != depth_ || depth_ % 4 != 0) return false;
        if (b.dims[1].stride != 1 || b.dims[2].stride != depth_) return false;
        if (!row_major(g_.output) || !whole_in(g_, axes_.m) || !whole_in(g_, axes_.n)) return false;
        for (const auto& [id, read] : g_.reads)
            if (!row_major(read) || read.offset != 0) return false;
        if (rows_ > kThinRows || columns_ < 8 * rows_ || depth_ < kThinStep || rows_ * columns_ < w_.p.large / depth_) return false;
        return w_.p.large == 1 || (rows_ >= 32 && columns_ >= 66 * kThinRows);
    }

    Scratch part(const char* what) const {
        Scratch s;
        s.name = std::string("A_") + what;
        s.dtype = "tf32";
        s.buffer = fmt::format("%{}.a_{}", g_.root, what);
        s.dims = s.whole = {rows_, depth_};
        s.strides = {depth_, 1};
        return s;
    }

    // The tf32 nearest to a number, or to what the first one leaves of it. The second reads the first back: as in split_product.cpp.
    void split(const Scratch& to, const std::string& less) {
        Helper h;
        h.name = fmt::format("{}_{}", w_.name(), to.name.substr(2));
        Argument x;
        x.primitive = g_.operands[0].base;
        x.name = "X";
        x.dtype = "f32";
        x.dims = {rows_, depth_};
        x.strides = {depth_, 1};
        Argument z = argument_of(to, true);
        z.name = "Z";
        h.arguments = {x};
        if (!less.empty()) {
            h.arguments.push_back(argument_of(high_, false));
            h.arguments.back().name = "H";
        }
        h.arguments.push_back(z);
        h.computes = fmt::format("    Z[m, k] = tf32(X[m, k]{})", less);
        const std::int64_t wide = std::clamp<std::int64_t>(power_of_two(depth_), 32, 1024);
        Writer grid(w_.p, g_, "");
        grid.grid({{"j", (depth_ + wide - 1) / wide}, {"m", rows_}});
        const std::string place = fmt::format("m, j * {0} : j * {0} + {0}", wide);
        h.body = grid.body() + fmt::format("    x = tw.load(X[{}], fill=0.0)\n", place);
        if (!less.empty()) h.body += fmt::format("    x = x - tw.load(H[{}], fill=0.0).to(f32)\n", place);
        h.body += fmt::format("    tw.store(Z[{}], x.to(tf32))\n", place);
        w_.before.push_back(helper_text(h, "split", nodes_));
    }

    // The tile has columns of the result, then its rows: tensors are seen in this order too.
    void turn() {
        const auto one = [&](Read& read) {
            std::stable_sort(read.places.begin(), read.places.end(), [&](const Place& a, const Place& b) {
                const auto rank = [&](const Place& p) { return p.atom == axes_.m ? 2 : p.atom == axes_.n ? 1 : 0; };
                return rank(a) < rank(b);
            });
        };
        for (auto& [id, read] : g_.reads) one(read);
        one(g_.output);
    }

    void kernel() {
        w_.threads = 384;
        Argument b;
        b.primitive = g_.operands[1].base;
        b.dtype = "f32";
        b.dims = {columns_, depth_};
        b.strides = {depth_, 1};
        b.texts = {"N", "K"};
        const std::string name = w_.operand(b);
        for (const Scratch* s : {&high_, &low_}) {
            Argument a = argument_of(*s, false);
            a.texts = {"M", "K"};
            w_.add_argument(a);
        }
        const std::string m = w_.index_of(axes_.m), n = w_.index_of(axes_.n);
        w_.anchor_equation =
            fmt::format("sum(k in 0:K, f32(tf32({0}[{1}, k])) * f32(A_low[{2}, k]) + {0}[{1}, k] * f32(A_high[{2}, k]))", name, n, m);
        w_.line(fmt::format("tw.assume(K % {} == 0)", depth_ % 8 == 0 ? 8 : 4));
        w_.line(fmt::format("long = tw.shared(f32, (4, {}, {}), swizzle=128)", kThinRows, kThinStep));
        w_.line(fmt::format("high = tw.shared(tf32, (4, {}, {}), swizzle=128)", kThinRows, kThinStep));
        w_.line(fmt::format("low = tw.shared(tf32, (4, {}, {}), swizzle=128)", kThinRows, kThinStep));
        w_.line("ring = tw.pipeline(4, consumers=2)");
        const std::string tiles = fmt::format("for bn, bm in tw.tiles(N, M, {0}, {0}, group=8):", kThinRows);
        const std::string steps = fmt::format("for kt in tw.range(tw.cdiv(K, {})):", kThinStep);
        w_.open("with tw.warpgroups(0, regs=40, name=\"producer\"):");
        w_.open(tiles);
        w_.open(steps);
        w_.line("slot = ring.acquire()");
        w_.line(fmt::format("tw.tma_load(long[slot], {}[bn * {}, kt * {}], on=ring.full(slot), hint=\"evict_first\")", name, kThinRows,
                            kThinStep));
        w_.line(fmt::format("tw.tma_load(low[slot], A_low[bm * {}, kt * {}], on=ring.full(slot))", kThinRows, kThinStep));
        w_.line(fmt::format("tw.tma_load(high[slot], A_high[bm * {}, kt * {}], on=ring.full(slot))", kThinRows, kThinStep));
        w_.close();
        w_.close();
        w_.close();
        w_.open("with tw.warpgroups(1, 2, regs=232, name=\"consumer\") as w:");
        w_.line("readers = tw.named_barrier(1 + w, 128)");
        w_.line(fmt::format("part = tw.zeros(f32, (64, {}))", kThinRows));
        w_.open(tiles);
        w_.line(fmt::format("acc = tw.zeros(f32, (64, {}))", kThinRows));
        w_.open(steps);
        w_.line("slot = ring.wait()");
        w_.line("x = tw.load(long[slot, w * 64 : w * 64 + 64, :])");
        w_.line("x_high = x.to(tf32)");
        w_.line("x_again = x.to(tf32)");
        w_.line("x_low = (x - x_high.to(f32)).to(tf32)");
        // The small ones first; an operand in registers belongs to one product at a time.
        w_.line("tw.wgmma(part, x_high, low[slot].T, zero=True)");
        w_.line("tw.wgmma(part, x_low, high[slot].T)");
        w_.line("tw.wgmma(part, x_again, high[slot].T)");
        w_.line("tw.wgmma_wait(0)");
        w_.line("readers.sync()");
        w_.line("ring.release()");
        w_.line("acc = acc + part");
        w_.close();
        w_.line(fmt::format("column = bn * {} + w * 64", kThinRows));
        w_.tile = {{axes_.n, "column", 64}, {axes_.m, fmt::format("bm * {}", kThinRows), kThinRows}};
        w_.set(g_.anchor, {"acc", 3U, false});
        w_.store(w_.value(g_.root));
        w_.close();
        w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    const ProductAxes& axes_;
    std::vector<std::string> nodes_;
    Scratch high_, low_;
    std::int64_t rows_ = 1, columns_ = 1, depth_ = 1;
};

}  // namespace

bool write_thin_product(Writer& w, const ProductAxes& axes) { return ThinProduct(w, axes).write(); }

}  // namespace tw::graph
