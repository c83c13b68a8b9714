// f32 products by parts: every number becomes two f16 numbers, and three of the four products of these are added up
// (docs/performance/graph.md). A row is first scaled by a power of two so that its largest element lies between 2^14 and 2^15; 22 bits of
// every element that is not 2^28 times smaller are kept, and 2^-40 of the largest of the others. The matrix unit cuts off what it adds, so
// a sum stays in it for 32 steps and is then added in f32, to nearest.
#include <fmt/format.h>

#include <algorithm>

#include "graph/split_operand.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kDepth = 32;     // of a step, in elements
constexpr std::int64_t kColumns = 128;  // of a tile
constexpr std::int64_t kStaged = 32;    // columns of a tile that are stored at a time

class SplitProduct {
public:
    SplitProduct(Writer& w, const ProductAxes& axes) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), axes_(axes) {}

    bool write() {
        if (!suits()) return false;
        w_.family = "product";
        Splitter splitter(w_, nodes_of(w_));
        for (SplitOperand* o : {&a_, &b_}) {
            splitter.names(*o);
            if (!probabilities(*o, splitter)) splitter.split(*o);
        }
        w_.symbol = {{axes_.m, "M"}, {axes_.n, "N"}};
        w_.sizes = {{"M", a_.rows}, {"N", b_.rows}, {"K", a_.depth}};
        main_kernel();
        return true;
    }

private:
    bool operand(SplitOperand& o, const char* letter, const View& view, std::size_t row, std::size_t k) {
        o.letter = letter;
        o.view = &view;
        if (w_.prim(view.base).dtype != "f32") return false;
        for (const Dim& d : view.dims)
            if (!d.whole()) return false;
        if (view.dims[0].size > 1) {
            o.leads = {0};
            o.lead = {view.dims[0].size};
        }
        o.row = row;
        o.k = k;
        o.rows = view.dims[row].size;
        o.depth = view.dims[k].size;
        o.turned = view.dims[k].stride != 1;
        const Dim& last = view.dims[o.turned ? row : k];
        return last.stride == 1 && (o.lead.empty() || view.dims[0].stride != 0);
    }

    bool suits() {
        if (v_.tf32 || g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32") return false;
        if (!operand(a_, "a", g_.operands[0], 1, 2) || !operand(b_, "b", g_.operands[1], 2, 1)) return false;
        if (w_.p.large > 1 && (a_.depth < kDepth || a_.rows < 64 || b_.rows < 64)) return false;
        if (a_.batch() * b_.batch() != 1 && (a_.batch() != b_.batch() || a_.batch() > 65535)) return false;
        if (!row_major(g_.output) || !whole_in(g_, axes_.m) || !whole_in(g_, axes_.n)) return false;
        for (const auto& [id, read] : g_.reads)
            if (!row_major(read) && w_.axes_of(read) == 0) return false;
        if (a_.batch() * a_.rows * b_.rows < w_.p.large / a_.depth) return false;
        batched_ = a_.batch() > 1;
        rows_ = a_.rows > 128 ? 256 : 128;
        const std::int64_t tiles = a_.batch() * ((a_.rows + rows_ - 1) / rows_) * ((b_.rows + kColumns - 1) / kColumns);
        staged_ = stored_by_copies();
        // A long sum for few results is cut into parts elsewhere.
        return tiles >= 66 || a_.depth < 16384;
    }

    // Results leave through shared memory, whole tiles at a time: rows of whole vectors, rows and columns last.
    bool stored_by_copies() const {
        const auto& places = g_.output.places;
        if (b_.rows % 4 != 0 || g_.output.offset % 4 != 0 || places.size() < 2 || places.size() > 5) return false;
        return places[places.size() - 2].atom == axes_.m && places.back().atom == axes_.n;
    }

    // e^(x - max) over its sum, of rows: at most 1, and at least 1/n somewhere in a row of n.
    bool is_softmax(const Group& g) const {
        const auto under = [&](int id) {
            while (w_.prim(id).kind == Kind::reshape && g.has(id)) id = w_.prim(id).in[0];
            return id;
        };
        const int root = under(g.root);
        const Primitive& over = w_.prim(root);
        if (!g.has(root) || over.kind != Kind::pointwise || over.fn != "div" || over.dtype != "f32") return false;
        const int power = under(over.in[0]), sum = under(over.in[1]);
        if (w_.prim(power).fn != "exp" || w_.prim(sum).kind != Kind::reduce || w_.prim(sum).fn != "sum") return false;
        if (under(w_.prim(sum).in[0]) != power) return false;
        const int below = under(w_.prim(power).in[0]);
        if (w_.prim(below).fn != "sub") return false;
        const int top = under(w_.prim(below).in[1]);
        return w_.prim(top).kind == Kind::reduce && w_.prim(top).fn == "max" && under(w_.prim(top).in[0]) == under(w_.prim(below).in[0]);
    }

    // Nobody but this product reads it.
    bool read_here_alone(int id) const {
        if (std::find(w_.p.outputs.begin(), w_.p.outputs.end(), id) != w_.p.outputs.end()) return false;
        for (std::size_t i = 0; i < w_.p.list.size(); ++i) {
            const Primitive& v = w_.p.list[i];
            if (std::find(v.in.begin(), v.in.end(), id) == v.in.end() || static_cast<int>(i) == g_.anchor) continue;
            if (v.kind != Kind::reshape || !read_here_alone(static_cast<int>(i))) return false;
        }
        return true;
    }

    // An operand that is a softmax of rows that a block holds: the parts are made where it is computed, and the numbers themselves are
    // stored nowhere. The scale is 2^14: where n <= 8192, a row's largest element is then between 2 and 2^14.
    bool probabilities(const SplitOperand& o, Splitter& splitter) {
        if (w_.groups == nullptr || o.turned || o.depth % 8 != 0 || o.depth > 8192 || !read_here_alone(o.view->base)) return false;
        const std::size_t row = o.letter == "a" ? 1 : 2;
        if (o.view->dims[row].stride != o.depth || (!o.lead.empty() && o.view->dims[0].stride != o.rows * o.depth)) return false;
        const auto found = std::find_if(w_.groups->begin(), w_.groups->end(), [&](const Group& g) { return g.root == o.view->base; });
        if (found == w_.groups->end() || found->anchor >= 0 || !is_softmax(*found)) return false;
        Group g = *found;
        Helper h;
        Writer text(w_.p, g, "");
        const auto store = [&](const Value& v) {
            text.line(fmt::format("scaled = {} * 16384.0", v.text));
            text.line("high = scaled.to(f16)");
            text.line(fmt::format("tw.store(A_high[{}], high)", text.subscript(g.output)));
            text.line(fmt::format("tw.store(A_low[{}], (scaled - high.to(f32)).to(f16))", text.subscript(g.output)));
            Read rows = g.output;
            rows.places.pop_back();
            const std::string shape = text.tile.size() == 2 ? fmt::format("({},)", text.tile[0].extent) : "()";
            text.line(fmt::format("tw.store(A_down[{}], tw.full(f32, {}, 6.103515625e-05))", text.subscript(rows), shape));
        };
        if (!write_held_rows(text, store) || !row_major(g.output) || g.output.offset != 0 || g.output.places.size() < 2) return false;
        std::string index;
        Argument high = argument_of(o.high, true), low = argument_of(o.low, true), down = argument_of(o.down, true);
        high.dims.clear();
        high.strides.clear();
        down.dims.clear();
        down.strides.clear();
        for (const Place& p : g.output.places) {
            high.dims.push_back(p.extent);
            high.strides.push_back(p.stride);
            if (p.atom == g.order.back()) continue;
            down.dims.push_back(p.extent);
            down.strides.push_back(p.stride / o.depth);
            index += (index.empty() ? "" : ", ") + text.index_of(p.atom);
        }
        low.dims = high.dims;
        low.strides = high.strides;
        const std::string scaled = fmt::format("{} * 16384.0", text.equation_of(g.root)),
                          all = index + ", " + text.index_of(g.order.back());
        h.computes =
            fmt::format("{0}    A_down[{1}] = 6.103515625e-05\n    A_high[{2}] = f16({3})\n    A_low[{2}] = f16({3} - f32(f16({3})))",
                        text.lets(), index, all, scaled);
        h.arguments = text.arguments();
        for (Argument* a : {&down, &high, &low}) {
            a->name = "A_" + a->name.substr(2);
            h.arguments.push_back(*a);
        }
        h.body = text.body();
        h.threads = text.threads;
        splitter.add(o, "parts", h);
        return true;
    }

    // The main kernel.

    void argument(const SplitOperand& o, const Scratch& s, bool matrix) {
        Argument a = argument_of(s, false);
        const std::string row = o.letter == "a" ? "M" : "N";
        if (!o.lead.empty()) a.texts.push_back("");
        if (matrix) a.texts.insert(a.texts.end(), {o.turned ? "K" : row, o.turned ? row : "K"});
        else a.texts.push_back(row);
        w_.add_argument(a);
    }

    std::string element(const SplitOperand& o, const Scratch& s, const std::string& row) const {
        const std::string z = !o.lead.empty() ? axes_.name[0] + ", " : "";
        return o.turned ? fmt::format("f32({}[{}k, {}])", s.name, z, row) : fmt::format("f32({}[{}{}, k])", s.name, z, row);
    }

    void equation() {
        const std::string m = w_.index_of(axes_.m), n = w_.index_of(axes_.n), z = batched_ ? axes_.name[0] + ", " : "";
        const auto term = [&](const Scratch& a, const Scratch& b) { return element(a_, a, m) + " * " + element(b_, b, n); };
        w_.anchor_equation = fmt::format("({}[{}{}] * {}[{}{}] * sum(k in 0:K, {} + {} + {}))", a_.down.name, z, m, b_.down.name, z, n,
                                         term(a_.high, b_.low), term(a_.low, b_.high), term(a_.high, b_.high));
    }

    void assumptions() {
        std::set<std::string> said;
        const auto say = [&](const std::string& size, std::int64_t value) {
            for (const std::int64_t by : {8, 4, 2}) {
                if (value % by != 0) continue;
                if (said.insert(size).second) w_.line(fmt::format("tw.assume({} % {} == 0)", size, by));
                return;
            }
        };
        say("N", b_.rows);
        if (a_.turned && a_.rows % 8 == 0) say("M", a_.rows);
        if ((!a_.turned || !b_.turned) && a_.depth % 8 == 0) say("K", a_.depth);
    }

    void head() {
        assumptions();
        const auto buffer = [&](const SplitOperand& o, const char* name, std::int64_t rows) {
            w_.line(o.turned ? fmt::format("{} = tw.shared(f16, (4, {}, {}), swizzle=128)", name, kDepth, rows)
                             : fmt::format("{} = tw.shared(f16, (4, {}, {}), swizzle=64)", name, rows, kDepth));
        };
        buffer(a_, "a_high", rows_);
        buffer(a_, "a_low", rows_);
        buffer(b_, "b_high", kColumns);
        buffer(b_, "b_low", kColumns);
        if (staged_) w_.line(fmt::format("staged = tw.shared(f32, (2, {}, {}), swizzle=128)", rows_ / 2, kStaged));
        w_.line("ring = tw.pipeline(4, consumers=2)");
        if (!batched_) return;
        std::vector<GridAxis> grid;
        w_.line(fmt::format("bn, bm, block = tw.grid(tw.cdiv(N, {}), tw.cdiv(M, {}), {})", kColumns, rows_, a_.batch()));
        std::int64_t step = 1;
        for (std::size_t i = axes_.outer.size(); i-- > 0;) {
            w_.line(fmt::format("{} = block // {} % {}", axes_.outer[i].name, step, axes_.outer[i].count));
            step *= axes_.outer[i].count;
        }
    }

    void tiles() {
        if (!batched_) w_.open(fmt::format("for bm, bn in tw.tiles(M, N, {}, {}, group=8):", rows_, kColumns));
    }

    void end_tiles() {
        if (!batched_) w_.close();
    }

    void produce() {
        w_.open("with tw.warpgroups(0, regs=40, name=\"producer\"):");
        tiles();
        w_.open(fmt::format("for kt in tw.range(tw.cdiv(K, {})):", kDepth));
        w_.line("slot = ring.acquire()");
        const auto copy = [&](const char* shared, const SplitOperand& o, const Scratch& s, const char* tile, std::int64_t rows) {
            const std::string row = fmt::format("{} * {}", tile, rows), k = fmt::format("kt * {}", kDepth);
            w_.line(fmt::format("tw.tma_load({}[slot], {}[{}{}, {}], on=ring.full(slot))", shared, s.name, batched_ ? "block, " : "",
                                o.turned ? k : row, o.turned ? row : k));
        };
        copy("a_high", a_, a_.high, "bm", rows_);
        copy("b_low", b_, b_.low, "bn", kColumns);
        copy("a_low", a_, a_.low, "bm", rows_);
        copy("b_high", b_, b_.high, "bn", kColumns);
        w_.close();
        end_tiles();
        w_.close();
    }

    void three_products(std::int64_t from, std::int64_t own) {
        const auto a = [&](const char* name) {
            const std::string rows = fmt::format("w * {0} + {1} : w * {0} + {2}", own, from, from + 64);
            return a_.turned ? fmt::format("{}[slot, :, {}].T", name, rows) : fmt::format("{}[slot, {}, :]", name, rows);
        };
        const auto b = [&](const char* name) { return fmt::format("{}[slot]{}", name, b_.turned ? "" : ".T"); };
        // The small ones first.
        w_.line(fmt::format("tw.wgmma(part, {}, {}, zero=True)", a("a_high"), b("b_low")));
        w_.line(fmt::format("tw.wgmma(part, {}, {})", a("a_low"), b("b_high")));
        w_.line(fmt::format("tw.wgmma(part, {}, {})", a("a_high"), b("b_high")));
        w_.line("tw.wgmma_wait(0)");
    }

    void consume() {
        const std::int64_t own = rows_ / 2, halves = own / 64;
        w_.open("with tw.warpgroups(1, 2, regs=232, name=\"consumer\") as w:");
        if (staged_) w_.line("own = tw.named_barrier(1 + w, 128)");
        w_.line(fmt::format("part = tw.zeros(f32, (64, {}))", kColumns));
        tiles();
        for (std::int64_t h = 0; h < halves; ++h) w_.line(fmt::format("acc{} = tw.zeros(f32, (64, {}))", h, kColumns));
        w_.open(fmt::format("for kt in tw.range(tw.cdiv(K, {})):", kDepth));
        w_.line("slot = ring.wait()");
        for (std::int64_t h = 0; h < halves; ++h) {
            three_products(64 * h, own);
            if (h + 1 == halves) w_.line("ring.release()");
            w_.line(fmt::format("acc{0} = acc{0} + part", h));
        }
        w_.close();
        w_.line(fmt::format("row = bm * {} + w * {}", rows_, own));
        w_.line(fmt::format("column = bn * {}", kColumns));
        staged_ ? store_staged(own) : store_registers(halves);
        end_tiles();
        if (staged_) w_.line("tw.tma_store_wait(0)");
        w_.close();
    }

    // What follows the product, of 64 rows and the columns from `column` on: the text of its value.
    std::string finished(std::int64_t h, const std::string& acc, const std::string& column, std::int64_t columns) {
        const std::string row = h == 0 ? "row" : fmt::format("row + {}", 64 * h);
        w_.line(fmt::format("y{0} = {1} * a_scale{0}[:, None] * b_scale[None, :]", h, acc));
        w_.tile = {{axes_.m, row, 64}, {axes_.n, column, columns}};
        w_.set(g_.anchor, {fmt::format("y{}", h), 3U, false});
        return w_.value(g_.root).text;
    }

    void load_a_scale(std::int64_t h) {
        const std::string z = batched_ ? "block, " : "", row = h == 0 ? "row" : fmt::format("row + {}", 64 * h);
        w_.line(fmt::format("a_scale{} = tw.load({}[{}{} : {} + 64], fill=0.0)", h, a_.down.name, z, row, row));
    }

    void load_b_scale(const std::string& column, std::int64_t columns) {
        w_.line(
            fmt::format("b_scale = tw.load({0}[{1}{2} : {2} + {3}], fill=0.0)", b_.down.name, batched_ ? "block, " : "", column, columns));
    }

    void store_registers(std::int64_t halves) {
        load_b_scale("column", kColumns);
        for (std::int64_t h = 0; h < halves; ++h) {
            w_.begin_scope();
            load_a_scale(h);
            finished(h, fmt::format("acc{}", h), "column", kColumns);
            w_.store(w_.value(g_.root));
            w_.end_scope();
        }
    }

    // A quarter of the columns at a time: the copy of one runs while the next is computed.
    void store_staged(std::int64_t own) {
        for (std::int64_t h = 0; h < own / 64; ++h) load_a_scale(h);
        w_.open(fmt::format("for q in tw.unroll({}):", kColumns / kStaged));
        const std::string column = fmt::format("column + q * {}", kStaged);
        load_b_scale(column, kStaged);
        w_.line("tw.tma_store_wait(0, read=True)");
        w_.line("own.sync()");
        for (std::int64_t h = 0; h < own / 64; ++h) {
            w_.begin_scope();
            const std::string value = finished(h, fmt::format("acc{0}[:, q * {1} : q * {1} + {1}]", h, kStaged), column, kStaged);
            w_.line(fmt::format("tw.store(staged[w, {}:{}, :], {})", 64 * h, 64 * h + 64, value));
            w_.end_scope();
        }
        w_.line("tw.fence_async()");
        w_.line("own.sync()");
        std::string place;
        for (const Place& p : g_.output.places)
            if (p.atom != axes_.m && p.atom != axes_.n) place += (p.atom < 0 ? std::to_string(p.start) : w_.at.at(p.atom)) + ", ";
        w_.line(fmt::format("tw.tma_store(Y[{0}row : row + {1}, {2} : {2} + {3}], staged[w])", place, own, column, kStaged));
        w_.line("tw.tma_store_commit()");
        w_.close();
    }

    void main_kernel() {
        w_.threads = 384;
        for (SplitOperand* o : {&a_, &b_}) {
            argument(*o, o->high, true);
            argument(*o, o->low, true);
            argument(*o, o->down, false);
        }
        equation();
        head();
        produce();
        consume();
    }

    Writer& w_;
    Group& g_;
    const Primitive& v_;
    const ProductAxes& axes_;
    SplitOperand a_, b_;
    std::int64_t rows_ = 256;
    bool batched_ = false, staged_ = false;
};

}  // namespace

bool write_split_product(Writer& w, const ProductAxes& axes) { return SplitProduct(w, axes).write(); }

}  // namespace tw::graph
