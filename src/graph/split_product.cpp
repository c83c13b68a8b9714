// f32 products by parts: every number becomes two f16 numbers, and three of the four products of these are added up
// (docs/performance/graph.md). A row is first scaled by a power of two so that its largest element lies between 2^14 and 2^15; 22 bits of
// every element that is not 2^28 times smaller are kept, and 2^-40 of the largest of the others. The matrix unit cuts off what it adds, so
// a sum stays in it for 32 steps and is then added in f32, to nearest.
#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kDepth = 32;                             // of a step, in elements
constexpr std::int64_t kColumns = 128;                          // of a tile
constexpr std::int64_t kStaged = 32;                            // columns of a tile that are stored at a time
constexpr std::int64_t kHeldRows = 16384, kHeldColumns = 2048;  // elements of a row, of a column, that a block holds in registers

// An operand and its parts.
struct SplitOperand {
    std::string letter;  // a, b
    const View* view = nullptr;
    bool turned = false;  // k is not the last dimension
    std::int64_t batch = 1, rows = 1, depth = 1;
    Scratch high, low, up, down;  // up: the scale of a row; down: what undoes it

    std::int64_t first() const { return turned ? depth : rows; }
    std::int64_t last() const { return turned ? rows : depth; }
};

class SplitProduct {
public:
    SplitProduct(Writer& w, const ProductAxes& axes) : w_(w), g_(w.g), v_(w.prim(w.g.anchor)), axes_(axes) {}

    bool write() {
        if (!suits()) return false;
        w_.family = "product";
        for (const int m : g_.members) {
            const std::string& from = w_.prim(m).from;
            if (std::find(nodes_.begin(), nodes_.end(), from) == nodes_.end()) nodes_.push_back(from);
        }
        for (SplitOperand* o : {&a_, &b_}) split(*o);
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
        o.batch = view.dims[0].size;
        o.rows = view.dims[row].size;
        o.depth = view.dims[k].size;
        o.turned = view.dims[k].stride != 1;
        const Dim& last = view.dims[o.turned ? row : k];
        return last.stride == 1 && (o.batch == 1 || view.dims[0].stride != 0);
    }

    bool suits() {
        if (v_.tf32 || g_.operands.size() != 2 || w_.prim(g_.root).dtype != "f32") return false;
        if (!operand(a_, "a", g_.operands[0], 1, 2) || !operand(b_, "b", g_.operands[1], 2, 1)) return false;
        if (w_.p.large > 1 && (a_.depth < kDepth || a_.rows < 64 || b_.rows < 64)) return false;
        if (a_.batch * b_.batch != 1 && (a_.batch != b_.batch || a_.batch > 65535)) return false;
        if (!row_major(g_.output) || !whole_in(g_, axes_.m) || !whole_in(g_, axes_.n)) return false;
        for (const auto& [id, read] : g_.reads)
            if (!row_major(read) && w_.axes_of(read) == 0) return false;
        if (a_.batch * a_.rows * b_.rows < w_.p.large / a_.depth) return false;
        batched_ = a_.batch > 1;
        rows_ = a_.rows > 128 ? 256 : 128;
        const std::int64_t tiles = a_.batch * ((a_.rows + rows_ - 1) / rows_) * ((b_.rows + kColumns - 1) / kColumns);
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

    Scratch scratch(const SplitOperand& o, const char* what, const char* dtype, bool matrix) const {
        Scratch s;
        s.name = (o.letter == "a" ? "A_" : "B_") + std::string(what);
        s.dtype = dtype;
        s.buffer = fmt::format("%{}.{}_{}", g_.root, o.letter, what);
        if (o.batch > 1) s.dims.push_back(o.batch);
        if (matrix) s.dims.push_back(o.first());
        s.dims.push_back(matrix ? o.last() : o.rows);
        s.whole = s.dims;
        if (matrix) s.whole.back() = (o.last() + 7) / 8 * 8;  // the copies of whole tiles want rows of whole vectors
        s.strides.assign(s.dims.size(), 1);
        for (std::size_t d = s.dims.size() - 1; d-- > 0;) s.strides[d] = s.strides[d + 1] * s.whole[d + 1];
        return s;
    }

    Argument source(const SplitOperand& o) const {
        Argument x;
        x.primitive = o.view->base;
        x.name = "X";
        x.dtype = "f32";
        const std::size_t row = o.letter == "a" ? 1 : 2, k = 3 - row;
        std::vector<std::size_t> order = {o.turned ? k : row, o.turned ? row : k};
        if (o.batch > 1) order.insert(order.begin(), 0);
        for (const std::size_t d : order) {
            x.dims.push_back(o.view->dims[d].size);
            x.strides.push_back(o.view->dims[d].stride);
        }
        return x;
    }

    void add(const SplitOperand& o, const char* what, Helper h) {
        h.name = fmt::format("{}_{}_{}", w_.name(), o.letter, what);
        w_.before.push_back(helper_text(h, "split", nodes_));
    }

    // Rows that fit the registers of a block, and columns that do, are read once: scale and both parts come from one launch. Longer rows
    // are read again by the same block, longer columns by a launch of its own.
    void split(SplitOperand& o) {
        o.high = scratch(o, "high", "f16", true);
        o.low = scratch(o, "low", "f16", true);
        o.down = scratch(o, "down", "f32", false);
        if (probabilities(o)) return;
        if (o.turned ? o.depth <= kHeldColumns : o.depth <= kHeldRows) return held(o);
        if (!o.turned) return twice(o);
        o.up = scratch(o, "up", "f32", false);
        scales(o);
        parts(o);
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
    bool probabilities(const SplitOperand& o) {
        if (w_.groups == nullptr || o.turned || o.depth % 8 != 0 || o.depth > 8192 || !read_here_alone(o.view->base)) return false;
        const std::size_t row = o.letter == "a" ? 1 : 2;
        if (o.view->dims[row].stride != o.depth || (o.batch > 1 && o.view->dims[0].stride != o.rows * o.depth)) return false;
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
        add(o, "parts", h);
        return true;
    }

    // The tile of a kernel that scales: rows and elements of them that a block has at a time.
    struct RowTile {
        std::int64_t rows = 1, deep = 1;
        int threads = 256;
    };

    static std::int64_t up_to(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

    RowTile held_shape(const SplitOperand& o) const {
        if (o.turned) {  // 32 elements a thread, eight of them side by side
            const std::int64_t columns = o.depth <= 512 ? 32 : 16, deep = up_to(std::max<std::int64_t>(o.depth, 128), 4096 / columns);
            return {columns, deep, static_cast<int>(deep * columns / 32)};
        }
        if (o.depth > 2048) {
            const std::int64_t threads = up_to((o.depth + 15) / 16, 128);
            return {1, 16 * threads, static_cast<int>(threads)};
        }
        const std::int64_t deep = std::max<std::int64_t>(32, power_of_two(o.depth));
        return {4096 / deep, deep, 256};
    }

    // `computes` of a kernel that finds the scale and takes the numbers apart.
    std::string scaled_parts(const SplitOperand& o) const {
        const std::string z = o.batch > 1 ? "z, " : "", element = o.turned ? "X[" + z + "k, r]" : "X[" + z + "r, k]",
                          place = o.turned ? z + "k, r" : z + "r, k";
        const std::string scaled = fmt::format("{} * exp2(14 - top[{}r])", element, z);
        return fmt::format(
            "    let top[{0}r in 0:{1}] = floor(log2(maximum(max(k in 0:{2}, abs({3})), 1.0e-30)))\n"
            "    A_down[{4}r] = exp2(top[{4}r] - 14)\n    A_high[{5}] = f16({6})\n    A_low[{5}] = f16({6} - f32(f16({6})))",
            o.batch > 1 ? fmt::format("z in 0:{}, ", o.batch) : "", o.rows, o.depth, element, z, place, scaled);
    }

    // The operand, and what is written.
    std::vector<Argument> split_arguments(const SplitOperand& o, const std::vector<std::pair<Scratch, const char*>>& outputs) const {
        std::vector<Argument> list = {source(o)};
        for (const auto& [s, name] : outputs) {
            list.push_back(argument_of(s, true));
            list.back().name = name;
        }
        return list;
    }

    void held(const SplitOperand& o) {
        Helper h;
        const std::string z = o.batch > 1 ? "z, " : "";
        h.computes = scaled_parts(o);
        h.arguments = split_arguments(o, {{o.down, "A_down"}, {o.high, "A_high"}, {o.low, "A_low"}});
        const RowTile t = held_shape(o);
        h.threads = t.threads;
        if (o.turned) h.blocks_per_sm = std::max(1, 1024 / t.threads);  // 64 registers a thread: one block loads while another stores
        grid(h, o, {{"r", (o.rows + t.rows - 1) / t.rows}});
        const std::string row = fmt::format("r * {0} : r * {0} + {0}", t.rows), k = fmt::format("0:{}", t.deep);
        const std::string place = z + (o.turned ? k + ", " + row : row + ", " + k);
        h.body += fmt::format("    x = tw.load(X[{}], fill=0.0{})\n", place, lanes(o));
        std::string sizes = "tw.abs(x)";
        if (t.deep != o.depth)
            sizes = fmt::format("tw.where((tw.arange({}) < {}){}, {}, float(\"-inf\"))", t.deep, o.depth,
                                o.turned ? "[:, None]" : "[None, :]", sizes);
        h.body += fmt::format("    exponent = tw.floor(tw.log2(tw.maximum(tw.max({}, axis={}), 1.0e-30)))\n", sizes, o.turned ? 0 : 1);
        h.body += fmt::format("    tw.store(A_down[{}{}], tw.exp2(exponent - 14.0))\n", z, row);
        h.body += fmt::format("    scaled = x * tw.exp2(14.0 - exponent){}\n", o.turned ? "[None, :]" : "[:, None]");
        store_parts(h, place, "    ");
        add(o, "parts", h);
    }

    // Rows whose elements do not lie in whole vectors: two neighbours a lane, so that a warp's access is one piece of memory.
    static const char* lanes(const SplitOperand& o) { return o.last() % 4 != 0 ? ", layout=tw.blocked(vector=2)" : ""; }

    static void store_parts(Helper& h, const std::string& place, const std::string& indent) {
        h.body += fmt::format("{0}high = scaled.to(f16)\n{0}tw.store(A_high[{1}], high)\n", indent, place);
        h.body += fmt::format("{}tw.store(A_low[{}], (scaled - high.to(f32)).to(f16))\n", indent, place);
    }

    // A loop that finds the largest magnitude of each row, and the exponent of the scale. Two steps at least: the loop is then recognised
    // as one maximum, whether or not the last step is cut off.
    void exponent(Helper& h, const SplitOperand& o, const RowTile& t) const {
        const std::string z = o.batch > 1 ? "z, " : "";
        const std::string row = fmt::format("r * {0} : r * {0} + {0}", t.rows), k = fmt::format("c * {0} : c * {0} + {0}", t.deep);
        h.body += o.turned ? fmt::format("    top = tw.zeros(f32, ({}, {}))\n", t.deep, t.rows)
                           : fmt::format("    top = tw.zeros(f32, ({}, {}))\n", t.rows, t.deep);
        h.body += fmt::format("    for c in tw.range({}):\n", (o.depth + t.deep - 1) / t.deep);
        h.body += fmt::format("        top = tw.maximum(top, tw.abs(tw.load(X[{}{}, {}], fill=0.0)))\n", z, o.turned ? k : row,
                              o.turned ? row : k);
        h.body += fmt::format("    exponent = tw.floor(tw.log2(tw.maximum(tw.max(top, axis={}), 1.0e-30)))\n", o.turned ? 0 : 1);
    }

    // A row that no block holds, a block for each: what it reads the second time is in L2 where few rows are under way.
    void twice(const SplitOperand& o) {
        Helper h;
        const std::string z = o.batch > 1 ? "z, " : "";
        h.computes = scaled_parts(o);
        h.arguments = split_arguments(o, {{o.down, "A_down"}, {o.high, "A_high"}, {o.low, "A_low"}});
        const RowTile t = {1, 8192, 1024};
        h.threads = t.threads;
        grid(h, o, {{"r", o.rows}});
        exponent(h, o, t);
        h.body += fmt::format("    tw.store(A_down[{}r : r + 1], tw.exp2(exponent - 14.0))\n    scale = tw.exp2(14.0 - exponent)\n", z);
        h.body += fmt::format("    for c in tw.range({}):\n", (o.depth + t.deep - 1) / t.deep);
        const std::string place = fmt::format("{0}r : r + 1, c * {1} : c * {1} + {1}", z, t.deep);
        h.body += fmt::format("        scaled = tw.load(X[{}], fill=0.0{}) * scale[:, None]\n", place, lanes(o));
        store_parts(h, place, "        ");
        add(o, "parts", h);
    }

    // The power of two that takes a column's largest element to between 2^14 and 2^15, and what undoes it.
    void scales(const SplitOperand& o) {
        Helper h;
        const std::string z = o.batch > 1 ? "z, " : "";
        const std::string top = fmt::format("floor(log2(maximum(max(k in 0:{}, abs(X[{}k, r])), 1.0e-30)))", o.depth, z);
        h.computes = fmt::format("    A_up[{0}r] = exp2(14 - {1})\n    A_down[{0}r] = exp2({1} - 14)", z, top);
        h.arguments = split_arguments(o, {{o.up, "A_up"}, {o.down, "A_down"}});
        const RowTile t = {32, 128, 512};
        h.threads = t.threads;
        grid(h, o, {{"r", (o.rows + t.rows - 1) / t.rows}});
        exponent(h, o, t);
        const std::string row = fmt::format("r * {0} : r * {0} + {0}", t.rows);
        h.body += fmt::format(
            "    tw.store(A_up[{0}{1}], tw.exp2(14.0 - exponent))\n    tw.store(A_down[{0}{1}], tw.exp2(exponent - 14.0))\n", z, row);
        add(o, "scales", h);
    }

    void grid(Helper& h, const SplitOperand& o, std::vector<GridAxis> axes) const {
        axes.push_back({"z", o.batch});
        Writer text(w_.p, g_, "");
        text.grid(std::move(axes));
        h.body += text.body();
    }

    // Of columns: the f16 nearest to a scaled number, and the f16 nearest to what that leaves of it.
    void parts(const SplitOperand& o) {
        Helper h;
        const std::string z = o.batch > 1 ? "z, " : "", scaled = fmt::format("X[{0}p, q] * A_up[{0}q]", z);
        h.arguments = {source(o), argument_of(o.up, false), argument_of(o.high, true), argument_of(o.low, true)};
        h.arguments[1].name = "A_up";
        h.arguments[2].name = "A_high";
        h.arguments[3].name = "A_low";
        h.computes = fmt::format("    A_high[{0}p, q] = f16({1})\n    A_low[{0}p, q] = f16({1} - f32(f16({1})))", z, scaled);
        const std::int64_t wide = std::clamp<std::int64_t>(power_of_two(o.last()), 32, 2048), rows = std::max<std::int64_t>(1, 2048 / wide);
        grid(h, o, {{"p", (o.first() + rows - 1) / rows}, {"q", (o.last() + wide - 1) / wide}});
        const std::string row = fmt::format("p * {0} : p * {0} + {0}", rows), column = fmt::format("q * {0} : q * {0} + {0}", wide);
        const std::string place = fmt::format("{}{}, {}", z, row, column);
        h.body +=
            fmt::format("    scaled = tw.load(X[{}], fill=0.0{}) * tw.load(A_up[{}{}], fill=0.0)[None, :]\n", place, lanes(o), z, column);
        store_parts(h, place, "    ");
        add(o, "parts", h);
    }

    // The main kernel.

    void argument(const SplitOperand& o, const Scratch& s, bool matrix) {
        Argument a = argument_of(s, false);
        const std::string row = o.letter == "a" ? "M" : "N";
        if (o.batch > 1) a.texts.push_back("");
        if (matrix) a.texts.insert(a.texts.end(), {o.turned ? "K" : row, o.turned ? row : "K"});
        else a.texts.push_back(row);
        w_.add_argument(a);
    }

    std::string element(const SplitOperand& o, const Scratch& s, const std::string& row) const {
        const std::string z = o.batch > 1 ? axes_.name[0] + ", " : "";
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
        w_.line(fmt::format("bn, bm, block = tw.grid(tw.cdiv(N, {}), tw.cdiv(M, {}), {})", kColumns, rows_, a_.batch));
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
    std::vector<std::string> nodes_;
    std::int64_t rows_ = 256;
    bool batched_ = false, staged_ = false;
};

}  // namespace

bool write_split_product(Writer& w, const ProductAxes& axes) { return SplitProduct(w, axes).write(); }

}  // namespace tw::graph
