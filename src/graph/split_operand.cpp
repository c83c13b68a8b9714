#include "graph/split_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "graph/packing.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kHeldRows = 16384, kHeldColumns = 2048;  // elements of a row, of a column, that a block holds in registers

std::string lead_name(const SplitOperand& o, std::size_t i) { return o.lead.size() == 1 ? "z" : "z" + std::to_string(i); }

// Rows whose elements do not lie in whole vectors: two neighbours a lane, so that a warp's access is one piece of memory.
const char* lanes(const SplitOperand& o) { return o.last() % 4 != 0 ? ", layout=tw.blocked(vector=2)" : ""; }

void store_parts(Helper& h, const std::string& place, const std::string& indent) {
    h.body += fmt::format("{0}high = scaled.to(f16)\n{0}tw.store(A_high[{1}], high)\n", indent, place);
    h.body += fmt::format("{}tw.store(A_low[{}], (scaled - high.to(f32)).to(f16))\n", indent, place);
}

}  // namespace

std::vector<std::string> nodes_of(const Writer& w) {
    std::vector<std::string> nodes;
    for (const int m : w.g.members) {
        const std::string& from = w.prim(m).from;
        if (std::find(nodes.begin(), nodes.end(), from) == nodes.end()) nodes.push_back(from);
    }
    return nodes;
}

std::string Splitter::index(const SplitOperand& o) {
    std::string out;
    for (std::size_t i = 0; i < o.lead.size(); ++i) out += lead_name(o, i) + ", ";
    return out;
}

std::string Splitter::ranges(const SplitOperand& o) {
    std::string out;
    for (std::size_t i = 0; i < o.lead.size(); ++i) out += fmt::format("{} in 0:{}, ", lead_name(o, i), o.lead[i]);
    return out;
}

void Splitter::names(SplitOperand& o) const {
    o.high = scratch(o, "high", "f16", true);
    o.low = scratch(o, "low", "f16", true);
    o.down = scratch(o, "down", "f32", false);
}

Scratch Splitter::scratch(const SplitOperand& o, const char* what, const char* dtype, bool matrix) const {
    Scratch s;
    s.name = std::string(1, static_cast<char>(std::toupper(o.letter[0]))) + "_" + what;
    s.dtype = dtype;
    s.buffer = fmt::format("%{}.{}_{}", w_.g.root, o.letter, what);
    s.dims = o.lead;
    if (matrix) s.dims.push_back(o.first());
    s.dims.push_back(matrix ? o.last() : o.rows);
    s.whole = s.dims;
    if (matrix) s.whole.back() = (o.last() + 7) / 8 * 8;  // the copies of whole tiles want rows of whole vectors
    s.strides.assign(s.dims.size(), 1);
    for (std::size_t d = s.dims.size() - 1; d-- > 0;) s.strides[d] = s.strides[d + 1] * s.whole[d + 1];
    return s;
}

Argument Splitter::source(const SplitOperand& o) {
    Argument x;
    x.primitive = o.view->base;
    x.name = "X";
    x.dtype = "f32";
    x.offset = o.view->offset;
    std::vector<std::size_t> order = o.leads;
    order.insert(order.end(), {o.turned ? o.k : o.row, o.turned ? o.row : o.k});
    for (const std::size_t d : order) {
        x.dims.push_back(o.view->dims[d].size);
        x.strides.push_back(o.view->dims[d].stride);
    }
    return x;
}

void Splitter::add(const SplitOperand& o, const char* what, Helper h) {
    h.name = fmt::format("{}_{}_{}", w_.name(), o.letter, what);
    w_.before.push_back(helper_text(h, "split", nodes_));
}

// Rows that fit the registers of a block, and columns that do, are read once: scale and both parts come from one launch. Longer rows
// are read again by the same block, longer columns by a launch of its own.
void Splitter::split(SplitOperand& o) {
    names(o);
    if (o.turned ? o.depth <= kHeldColumns : o.depth <= kHeldRows) return held(o);
    if (!o.turned) return twice(o);
    o.up = scratch(o, "up", "f32", false);
    scales(o);
    parts(o);
}

// The tile of a kernel that scales: rows and elements of them that a block has at a time.
struct Splitter::RowTile {
    std::int64_t rows = 1, deep = 1;
    int threads = 256;
};

Splitter::RowTile Splitter::held_shape(const SplitOperand& o) {
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
std::string Splitter::scaled_parts(const SplitOperand& o) {
    const std::string z = index(o), element = o.turned ? "X[" + z + "k, r]" : "X[" + z + "r, k]",
                      place = o.turned ? z + "k, r" : z + "r, k";
    const std::string scaled = fmt::format("{} * exp2(14 - top[{}r])", element, z);
    return fmt::format(
        "    let top[{0}r in 0:{1}] = floor(log2(maximum(max(k in 0:{2}, abs({3})), 1.0e-30)))\n"
        "    A_down[{4}r] = exp2(top[{4}r] - 14)\n    A_high[{5}] = f16({6})\n    A_low[{5}] = f16({6} - f32(f16({6})))",
        ranges(o), o.rows, o.depth, element, z, place, scaled);
}

// The operand, and what is written.
std::vector<Argument> Splitter::split_arguments(const SplitOperand& o, const std::vector<std::pair<Scratch, const char*>>& outputs) {
    std::vector<Argument> list = {source(o)};
    for (const auto& [s, name] : outputs) {
        list.push_back(argument_of(s, true));
        list.back().name = name;
    }
    return list;
}

void Splitter::held(const SplitOperand& o) {
    Helper h;
    const std::string z = index(o);
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
        sizes = fmt::format("tw.where((tw.arange({}) < {}){}, {}, float(\"-inf\"))", t.deep, o.depth, o.turned ? "[:, None]" : "[None, :]",
                            sizes);
    h.body += fmt::format("    exponent = tw.floor(tw.log2(tw.maximum(tw.max({}, axis={}), 1.0e-30)))\n", sizes, o.turned ? 0 : 1);
    h.body += fmt::format("    tw.store(A_down[{}{}], tw.exp2(exponent - 14.0))\n", z, row);
    h.body += fmt::format("    scaled = x * tw.exp2(14.0 - exponent){}\n", o.turned ? "[None, :]" : "[:, None]");
    store_parts(h, place, "    ");
    add(o, "parts", h);
}

// A loop that finds the largest magnitude of each row, and the exponent of the scale. Two steps at least: the loop is then recognised
// as one maximum, whether or not the last step is cut off.
void Splitter::exponent(Helper& h, const SplitOperand& o, const RowTile& t) const {
    const std::string z = index(o);
    const std::string row = fmt::format("r * {0} : r * {0} + {0}", t.rows), k = fmt::format("c * {0} : c * {0} + {0}", t.deep);
    h.body += o.turned ? fmt::format("    top = tw.zeros(f32, ({}, {}))\n", t.deep, t.rows)
                       : fmt::format("    top = tw.zeros(f32, ({}, {}))\n", t.rows, t.deep);
    h.body += fmt::format("    for c in tw.range({}):\n", (o.depth + t.deep - 1) / t.deep);
    h.body +=
        fmt::format("        top = tw.maximum(top, tw.abs(tw.load(X[{}{}, {}], fill=0.0)))\n", z, o.turned ? k : row, o.turned ? row : k);
    h.body += fmt::format("    exponent = tw.floor(tw.log2(tw.maximum(tw.max(top, axis={}), 1.0e-30)))\n", o.turned ? 0 : 1);
}

// A row that no block holds, a block for each: what it reads the second time is in L2 where few rows are under way.
void Splitter::twice(const SplitOperand& o) {
    Helper h;
    const std::string z = index(o);
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
void Splitter::scales(const SplitOperand& o) {
    Helper h;
    const std::string z = index(o);
    const std::string top = fmt::format("floor(log2(maximum(max(k in 0:{}, abs(X[{}k, r])), 1.0e-30)))", o.depth, z);
    h.computes = fmt::format("    A_up[{0}r] = exp2(14 - {1})\n    A_down[{0}r] = exp2({1} - 14)", z, top);
    h.arguments = split_arguments(o, {{o.up, "A_up"}, {o.down, "A_down"}});
    const RowTile t = {32, 128, 512};
    h.threads = t.threads;
    grid(h, o, {{"r", (o.rows + t.rows - 1) / t.rows}});
    exponent(h, o, t);
    const std::string row = fmt::format("r * {0} : r * {0} + {0}", t.rows);
    h.body += fmt::format("    tw.store(A_up[{0}{1}], tw.exp2(14.0 - exponent))\n    tw.store(A_down[{0}{1}], tw.exp2(exponent - 14.0))\n",
                          z, row);
    add(o, "scales", h);
}

void Splitter::grid(Helper& h, const SplitOperand& o, std::vector<GridAxis> axes) const {
    for (std::size_t i = o.lead.size(); i-- > 0;) axes.push_back({lead_name(o, i), o.lead[i]});
    Writer text(w_.p, w_.g, "");
    text.grid(std::move(axes));
    h.body += text.body();
}

// Of columns: the f16 nearest to a scaled number, and the f16 nearest to what that leaves of it.
void Splitter::parts(const SplitOperand& o) {
    Helper h;
    const std::string z = index(o), scaled = fmt::format("X[{0}p, q] * A_up[{0}q]", z);
    h.arguments = {source(o), argument_of(o.up, false), argument_of(o.high, true), argument_of(o.low, true)};
    h.arguments[1].name = "A_up";
    h.arguments[2].name = "A_high";
    h.arguments[3].name = "A_low";
    h.computes = fmt::format("    A_high[{0}p, q] = f16({1})\n    A_low[{0}p, q] = f16({1} - f32(f16({1})))", z, scaled);
    const std::int64_t wide = std::clamp<std::int64_t>(power_of_two(o.last()), 32, 2048), rows = std::max<std::int64_t>(1, 2048 / wide);
    grid(h, o, {{"p", (o.first() + rows - 1) / rows}, {"q", (o.last() + wide - 1) / wide}});
    const std::string row = fmt::format("p * {0} : p * {0} + {0}", rows), column = fmt::format("q * {0} : q * {0} + {0}", wide);
    const std::string place = fmt::format("{}{}, {}", z, row, column);
    h.body += fmt::format("    scaled = tw.load(X[{}], fill=0.0{}) * tw.load(A_up[{}{}], fill=0.0)[None, :]\n", place, lanes(o), z, column);
    store_parts(h, place, "    ");
    add(o, "parts", h);
}

}  // namespace tw::graph
