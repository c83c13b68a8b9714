// f32 products with a long sum for few results: parts of the sum are blocks, and add up what they have. Both operands are read once, as
// they are. A number is a tf32 number and, as tf32, what that leaves: of one operand a role of its own takes them apart into shared memory,
// of the other the roles that multiply do, in registers. Three of the four products are taken (docs/performance/graph.md).
#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kLongRows = 128;  // of either operand, a tile
constexpr std::int64_t kLongStep = 32;
constexpr std::int64_t kLongSum = 16384;
constexpr std::int64_t kMultiprocessors = 132;

struct LongOperand {
    const View* view = nullptr;
    std::size_t row = 1, k = 2;  // dimensions of the view
    int atom = -1;
    bool turned = false;  // k is not the last dimension
    std::string name, size, block;

    std::int64_t rows() const { return view->dims[row].size; }
    std::int64_t depth() const { return view->dims[k].size; }
    std::int64_t last() const { return turned ? rows() : depth(); }
    std::string shape(std::int64_t slots) const {
        return turned ? fmt::format("({}, {}, {})", slots, kLongStep, kLongRows) : fmt::format("({}, {}, {})", slots, kLongRows, kLongStep);
    }
    std::string element(const std::string& index) const {
        return turned ? fmt::format("{}[k, {}]", name, index) : fmt::format("{}[{}, k]", name, index);
    }
};

class LongProduct {
public:
    LongProduct(Writer& w, const ProductAxes& axes) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), axes_(axes) {}

    bool write() {
        if (!suits()) return false;
        for (const int id : g_.members)
            if (id != g_.anchor && w_.prim(id).kind != Kind::reshape) {
                w_.fail("a long sum for few results", g_.anchor);
                return true;
            }
        w_.symbol = {{axes_.m, "M"}, {axes_.n, "N"}};
        w_.sizes = {{"M", a_.rows()}, {"N", b_.rows()}, {"K", a_.depth()}};
        choose();
        kernel();
        return true;
    }

private:
    bool operand(LongOperand& o, const View& view, std::size_t row, int atom, const char* size) const {
        o.view = &view;
        o.row = row;
        o.k = 3 - row;
        o.atom = atom;
        o.size = size;
        if (w_.prim(view.base).dtype != "f32" || view.dims[0].size != 1) return false;
        for (const Dim& d : view.dims)
            if (!d.whole()) return false;
        o.turned = view.dims[o.k].stride != 1;
        // Copies of whole tiles want rows of whole vectors, side by side.
        const Dim &last = view.dims[o.turned ? row : o.k], &other = view.dims[o.turned ? o.k : row];
        return last.stride == 1 && other.stride == last.size && last.size % 4 == 0;
    }

    bool suits() {
        if (v_.tf32 || g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32" || !axes_.outer.empty()) return false;
        if (!operand(a_, g_.operands[0], 1, axes_.m, "M") || !operand(b_, g_.operands[1], 2, axes_.n, "N")) return false;
        if (!row_major(g_.output) || !whole_in(g_, axes_.m) || !whole_in(g_, axes_.n) || g_.output.places.size() != 2) return false;
        const auto tiles_of = [](std::int64_t rows) { return (rows + kLongRows - 1) / kLongRows; };
        const std::int64_t tiles = tiles_of(a_.rows()) * tiles_of(b_.rows());
        if (2 * tiles > kMultiprocessors || a_.rows() * b_.rows() < w_.p.large / a_.depth()) return false;
        if (a_.depth() < (w_.p.large > 1 ? kLongSum : kLongSum / 8)) return false;
        const std::int64_t steps = (a_.depth() + kLongStep - 1) / kLongStep, parts = kMultiprocessors / tiles;
        steps_ = std::max<std::int64_t>(8, (steps + parts - 1) / parts);
        return true;
    }

    // The matrix unit takes tf32 with k last: what shared memory has is better read so. The tile has rows of the other operand first, and
    // the result is seen in this order.
    void choose() {
        const bool turn = b_.turned && !a_.turned;
        in_shared_ = turn ? &a_ : &b_;
        in_registers_ = turn ? &b_ : &a_;
        if (turn) std::swap(g_.output.places[0], g_.output.places[1]);
        in_shared_->block = "bs";
        in_registers_->block = "br";
        for (LongOperand* o : {&a_, &b_}) {
            Argument x;
            x.primitive = o->view->base;
            x.dtype = "f32";
            x.dims = {o->turned ? o->depth() : o->rows(), o->last()};
            x.strides = {o->last(), 1};
            x.texts = {o->turned ? "K" : o->size, o->turned ? o->size : "K"};
            o->name = w_.operand(x);
        }
    }

    void assume(const std::string& size, std::int64_t value) {
        if (said_.insert(size).second) w_.line(fmt::format("tw.assume({} % {} == 0)", size, value % 8 == 0 ? 8 : 4));
    }

    void copy(const char* shared, const char* slot, const char* ring, const LongOperand& o) {
        const std::string row = fmt::format("{} * {}", o.block, kLongRows);
        w_.line(fmt::format("tw.tma_load({}[{}], {}[{}, {}], on={}.full({}))", shared, slot, o.name, o.turned ? "k" : row,
                            o.turned ? row : "k", ring, slot));
    }

    void head() {
        w_.threads = 512;
        w_.family = "product";
        w_.anchor_equation = fmt::format("sum(k in 0:K, {} * {})", a_.element(w_.index_of(axes_.m)), b_.element(w_.index_of(axes_.n)));
        for (const LongOperand* o : {&a_, &b_}) assume(o->turned ? o->size : "K", o->last());
        w_.line(fmt::format("{}, {}, part = tw.grid(tw.cdiv({}, {}), tw.cdiv({}, {}), tw.cdiv(K, {}))", in_registers_->block,
                            in_shared_->block, in_registers_->size, kLongRows, in_shared_->size, kLongRows, kLongStep * steps_));
        w_.line(fmt::format("rows = tw.shared(f32, {}, swizzle=128)", in_shared_->shape(3)));
        w_.line(fmt::format("columns = tw.shared(f32, {}, swizzle=128)", in_registers_->shape(4)));
        for (const char* name : {"high", "low"})
            w_.line(fmt::format("{} = tw.shared(tf32, (2, {}, {}), swizzle=128)", name, kLongRows, kLongStep));
        w_.line("row_ring = tw.pipeline(3, consumers=1)");
        w_.line("column_ring = tw.pipeline(4, consumers=2)");
        w_.line("part_ring = tw.pipeline(2, consumers=2)");
    }

    void kernel() {
        head();
        const std::string steps = fmt::format("for kt in tw.range({}):", steps_);
        w_.open("with tw.warpgroups(0, regs=40, name=\"producer\"):");
        w_.open(steps);
        w_.line(fmt::format("k = (part * {} + kt) * {}", steps_, kLongStep));
        w_.line("slot = row_ring.acquire()");
        copy("rows", "slot", "row_ring", *in_shared_);
        w_.line("at = column_ring.acquire()");
        copy("columns", "at", "column_ring", *in_registers_);
        w_.close();
        w_.close();
        w_.open("with tw.warpgroups(1, regs=104, name=\"splitter\"):");
        w_.line("met = tw.named_barrier(3, 128)");
        w_.open(steps);
        w_.line("slot = row_ring.wait()");
        w_.line(fmt::format("x = tw.load(rows[slot]{})", in_shared_->turned ? ".T" : ""));
        for (const char* text : {"met.sync()", "row_ring.release()", "to = part_ring.acquire()", "h = x.to(tf32)", "tw.store(high[to], h)",
                                 "tw.store(low[to], (x - h.to(f32)).to(tf32))", "part_ring.commit(to)"})
            w_.line(text);
        w_.close();
        w_.close();
        w_.open("with tw.warpgroups(2, 3, regs=184, name=\"consumer\") as w:");
        for (const char* text :
             {"readers = tw.named_barrier(1 + w, 128)", "acc = tw.zeros(f32, (64, 128))", "chunk = tw.zeros(f32, (64, 128))"})
            w_.line(text);
        w_.open(steps);
        w_.line("at = column_ring.wait()");
        w_.line(in_registers_->turned ? "x = tw.load(columns[at, :, w * 64 : w * 64 + 64].T)"
                                      : "x = tw.load(columns[at, w * 64 : w * 64 + 64, :])");
        // The small ones first; an operand in registers belongs to one product at a time.
        for (const char* text : {"readers.sync()", "column_ring.release()", "x_high = x.to(tf32)", "x_again = x.to(tf32)",
                                 "x_low = (x - x_high.to(f32)).to(tf32)", "slot = part_ring.wait()",
                                 "tw.wgmma(chunk, x_high, low[slot].T, zero=True)", "tw.wgmma(chunk, x_low, high[slot].T)",
                                 "tw.wgmma(chunk, x_again, high[slot].T)", "tw.wgmma_wait(0)", "part_ring.release()", "acc = acc + chunk"})
            w_.line(text);
        w_.close();
        w_.tile = {{in_registers_->atom, fmt::format("{} * {} + w * 64", in_registers_->block, kLongRows), 64},
                   {in_shared_->atom, fmt::format("{} * {}", in_shared_->block, kLongRows), kLongRows}};
        w_.set(g_.anchor, {"acc", 3U, false});
        w_.store(w_.value(g_.root), true);
        w_.close();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    const ProductAxes& axes_;
    LongOperand a_, b_, *in_shared_ = nullptr, *in_registers_ = nullptr;
    std::int64_t steps_ = 1;
    std::set<std::string> said_;
};

}  // namespace

bool write_long_product(Writer& w, const ProductAxes& axes) { return LongProduct(w, axes).write(); }

}  // namespace tw::graph
