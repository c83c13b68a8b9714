// Products of 16-bit operands on Hopper's matrix unit: whole tiles come by copies into a ring, two groups of warps multiply, and results
// leave through shared memory.
#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kNarrowDepth = 64;  // of a step, in elements

struct NarrowOperand {
    const View* view = nullptr;
    std::size_t row = 1, k = 2;  // dimensions of the view
    bool turned = false;         // k is not the last dimension
    bool batched = false;
    std::string name;

    std::int64_t rows() const { return view->dims[row].size; }
    std::int64_t depth() const { return view->dims[k].size; }
    std::string place(const std::string& batch, const std::string& at_row, const std::string& at_k) const {
        return fmt::format("{}[{}{}, {}]", name, batched ? batch + ", " : "", turned ? at_k : at_row, turned ? at_row : at_k);
    }
    std::string shape(std::int64_t slots, std::int64_t tile) const {
        return turned ? fmt::format("({}, {}, {})", slots, kNarrowDepth, tile) : fmt::format("({}, {}, {})", slots, tile, kNarrowDepth);
    }
};

class NarrowProduct {
public:
    NarrowProduct(Writer& w, const ProductAxes& axes) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), axes_(axes) {}

    bool write() {
        if (!suits()) return false;
        w_.otherwise = "plain:" + v_.from;
        w_.threads = 384;
        for (NarrowOperand* o : {&a_, &b_}) o->name = w_.operand(argument(*o));
        const std::string batch = axes_.name.empty() ? "0" : axes_.name[0];
        w_.anchor_equation = fmt::format("sum(k in 0:{}, f32({}) * f32({}))", a_.depth(), a_.place(batch, w_.index_of(axes_.m), "k"),
                                         b_.place(batch, w_.index_of(axes_.n), "k"));
        head();
        produce();
        consume();
        return true;
    }

private:
    bool operand(NarrowOperand& o, const View& view, std::size_t row, const std::string& type) const {
        o.view = &view;
        o.row = row;
        o.k = 3 - row;
        if (w_.prim(view.base).dtype != type) return false;
        for (const Dim& d : view.dims)
            if (!d.whole()) return false;
        o.turned = view.dims[o.k].stride != 1;
        o.batched = view.dims[0].size > 1;
        const Dim &last = view.dims[o.turned ? row : o.k], &other = view.dims[o.turned ? o.k : row];
        // Copies of whole tiles want rows of whole vectors.
        return last.stride == 1 && other.stride % 8 == 0 && other.stride != 0 &&
               (!o.batched || (view.dims[0].stride % 8 == 0 && view.dims[0].stride != 0));
    }

    bool suits() {
        const std::string& type = w_.prim(g_.operands[0].base).dtype;
        if ((type != "f16" && type != "bf16") || g_.operands.size() != 2 || w_.p.rows.contains("plain:" + v_.from)) return false;
        if (!operand(a_, g_.operands[0], 1, type) || !operand(b_, g_.operands[1], 2, type)) return false;
        const std::int64_t batch = std::max(g_.operands[0].dims[0].size, g_.operands[1].dims[0].size);
        if (a_.batched != b_.batched) return false;
        const bool small = a_.rows() < 64 || b_.rows() < 64 || a_.depth() < 64;
        if (w_.p.large > 1 && (small || batch * a_.rows() * b_.rows() < (std::int64_t{1} << 24) / a_.depth())) return false;
        if (!whole_in(g_, axes_.m) || !whole_in(g_, axes_.n)) return false;
        type_ = type;
        const auto tiles = [&](std::int64_t columns) { return batch * ((a_.rows() + 127) / 128) * ((b_.rows() + columns - 1) / columns); };
        columns_ = tiles(256) >= 132 ? 256 : 128;
        // A long sum for few results is cut into parts elsewhere.
        if (tiles(128) < 66 && a_.depth() >= 16384 && w_.p.large > 1) return false;
        staged_ = stored_by_copies();
        return true;
    }

    bool stored_by_copies() const {
        const auto& places = g_.output.places;
        const std::string& type = w_.prim(g_.root).dtype;
        if (type != "f32" && type != "f16" && type != "bf16") return false;
        const std::int64_t vector = type == "f32" ? 4 : 8;
        if (places.size() < 2 || places.size() > 5 || g_.output.offset % vector != 0) return false;
        if (places[places.size() - 2].atom != axes_.m || places.back().atom != axes_.n || places.back().stride != 1) return false;
        for (std::size_t i = 0; i + 1 < places.size(); ++i)
            if (places[i].stride % vector != 0) return false;
        return true;
    }

    Argument argument(const NarrowOperand& o) const {
        Argument x;
        x.primitive = o.view->base;
        x.dtype = type_;
        x.offset = o.view->offset;
        std::vector<std::size_t> order = {o.turned ? o.k : o.row, o.turned ? o.row : o.k};
        if (o.batched) order.insert(order.begin(), 0);
        for (const std::size_t d : order) {
            x.dims.push_back(o.view->dims[d].size);
            x.strides.push_back(o.view->dims[d].stride);
        }
        return x;
    }

    std::int64_t staged_columns() const { return w_.prim(g_.root).dtype == "f32" ? 32 : 64; }

    void head() {
        w_.line(fmt::format("a_tile = tw.shared({}, {}, swizzle=128)", type_, a_.shape(4, 128)));
        w_.line(fmt::format("b_tile = tw.shared({}, {}, swizzle=128)", type_, b_.shape(4, columns_)));
        if (staged_) w_.line(fmt::format("staged = tw.shared({}, (2, 64, {}), swizzle=128)", w_.prim(g_.root).dtype, staged_columns()));
        w_.line("ring = tw.pipeline(4, consumers=2)");
        std::vector<GridAxis> grid = {{"bm", (a_.rows() + 127) / 128}, {"bn", (b_.rows() + columns_ - 1) / columns_}};
        grid.insert(grid.end(), axes_.outer.begin(), axes_.outer.end());
        w_.grid(grid);
    }

    std::string batch() const { return axes_.index.empty() ? "0" : axes_.index[0]; }
    std::int64_t steps() const { return (a_.depth() + kNarrowDepth - 1) / kNarrowDepth; }

    void produce() {
        w_.open("with tw.warpgroups(0, regs=40, name=\"producer\"):");
        w_.open(fmt::format("for kt in tw.range({}):", steps()));
        w_.line("slot = ring.acquire()");
        const std::string k = fmt::format("kt * {}", kNarrowDepth);
        w_.line(fmt::format("tw.tma_load(a_tile[slot], {}, on=ring.full(slot))", a_.place(batch(), "bm * 128", k)));
        w_.line(fmt::format("tw.tma_load(b_tile[slot], {}, on=ring.full(slot))", b_.place(batch(), fmt::format("bn * {}", columns_), k)));
        w_.close();
        w_.close();
    }

    void consume() {
        w_.open("with tw.warpgroups(1, 2, regs=232, name=\"consumer\") as w:");
        if (staged_) w_.line("own = tw.named_barrier(1 + w, 128)");
        w_.line(fmt::format("acc = tw.zeros(f32, (64, {}))", columns_));
        w_.open(fmt::format("for kt in tw.range({}):", steps()));
        w_.line("slot = ring.wait()");
        w_.line(fmt::format("tw.wgmma(acc, {}, b_tile[slot]{})",
                            a_.turned ? "a_tile[slot, :, w * 64 : w * 64 + 64].T" : "a_tile[slot, w * 64 : w * 64 + 64, :]",
                            b_.turned ? "" : ".T"));
        w_.line("tw.wgmma_wait(0)");
        w_.line("ring.release()");
        w_.close();
        w_.line("row = bm * 128 + w * 64");
        staged_ ? store_staged() : store_registers();
        w_.close();
    }

    void set_tile(const std::string& acc, const std::string& column, std::int64_t columns) {
        w_.tile = {{axes_.m, "row", 64, a_.rows() % 128 != 0}, {axes_.n, column, columns, b_.rows() % columns_ != 0}};
        w_.set(g_.anchor, {acc, 3U, false, false, false, ""});
    }

    void store_registers() {
        w_.begin_scope();
        set_tile("acc", fmt::format("bn * {}", columns_), columns_);
        w_.store(w_.value(g_.root));
        w_.end_scope();
    }

    void store_staged() {
        const std::int64_t each = staged_columns();
        const std::string& type = w_.prim(g_.root).dtype;
        w_.open(fmt::format("for c in tw.unroll({}):", columns_ / each));
        w_.line("tw.tma_store_wait(0, read=True)");
        w_.line("own.sync()");
        w_.begin_scope();
        w_.line(fmt::format("column = bn * {} + c * {}", columns_, each));
        w_.line(fmt::format("y = acc[:, c * {0} : c * {0} + {0}]", each));
        set_tile("y", "column", each);
        const std::string value = w_.as_tile(w_.value(g_.root));
        w_.line(fmt::format("tw.store(staged[w], ({}){})", value, type == "f32" ? "" : fmt::format(".to({})", type)));
        w_.end_scope();
        w_.line("tw.fence_async()");
        w_.line("own.sync()");
        std::string place;
        for (const Place& p : g_.output.places)
            if (p.atom != axes_.m && p.atom != axes_.n) place += (p.atom < 0 ? std::to_string(p.start) : w_.at.at(p.atom)) + ", ";
        w_.line(fmt::format("tw.tma_store(Y[{0}row : row + 64, column : column + {1}], staged[w])", place, each));
        w_.line("tw.tma_store_commit()");
        w_.close();
        w_.line("tw.tma_store_wait(0)");
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    const ProductAxes& axes_;
    NarrowOperand a_, b_;
    std::string type_;
    std::int64_t columns_ = 128;
    bool staged_ = false;
};

}  // namespace

bool write_narrow_product(Writer& w, const ProductAxes& axes) { return NarrowProduct(w, axes).write(); }

}  // namespace tw::graph
