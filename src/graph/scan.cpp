// Cumulative sums and products, and the places of extremes, along any axis.
#include <fmt/format.h>

#include <algorithm>

#include "graph/writer.h"

namespace tw::graph {

namespace {

// One dimension of the anchor stands alone; the grid takes the others but the innermost, which is the tile where it is not the axis itself.
struct Line {
    int atom = -1, columns = -1;
    std::int64_t length = 1, tile = 32;
};

bool arrange(Writer& w, int axis_atom, std::int64_t length, bool kept, Line& line, std::vector<GridAxis>& grid) {
    Group& g = w.g;
    line.atom = axis_atom;
    line.length = length;
    const bool inner = g.order.empty() || g.order.back() == axis_atom;
    if (kept ? !inner : !g.order.empty()) {
        line.columns = g.order.back();
        const std::int64_t n = g.size.at(line.columns);
        line.tile = std::max<std::int64_t>(32, std::min<std::int64_t>(128, power_of_two(n)));
        grid.push_back({"j", (n + line.tile - 1) / line.tile});
    }
    for (std::size_t i = g.order.size(); i-- > 0;) {
        const int a = g.order[i];
        if (a == axis_atom || a == line.columns) continue;
        w.at[a] = fmt::format("b{}", i);
        grid.push_back({w.at[a], g.size.at(a)});
    }
    return true;
}

}  // namespace

void write_scan(Writer& w) {
    Group& g = w.g;
    const Primitive& v = w.prim(g.anchor);
    w.family = "scan";
    const auto& own = g.axes.at(g.anchor)[static_cast<std::size_t>(v.axes[0])];
    std::set<int> ends;
    if (own.size() == 1) ends.insert({own[0], atom_before(g, own[0])});
    join_atoms(g, ends);
    if (own.size() != 1) return w.fail("what follows a scan cuts its axis", g.root == g.anchor ? -1 : g.anchor);
    Line l;
    std::vector<GridAxis> grid;
    arrange(w, own[0], g.size.at(own[0]), true, l, grid);
    const bool product = v.fn == "prod";
    const char* one = product ? "1.0" : "0.0";
    const char* op = product ? "*" : "+";
    const std::int64_t n = l.length;
    if (l.columns >= 0 && (product || v.reverse)) {
        // Whole chunks, and what came before them: a product of single rows, or rows that go backwards, are not seen to be what `computes`
        // states.
        const std::int64_t high = 32, chunks = (n + high - 1) / high;
        w.threads = 128;
        w.grid(grid);
        w.line(fmt::format("carry = tw.full(f32, ({},), {})", l.tile, one));
        w.open(fmt::format("for r in tw.range({}):", chunks));
        w.line(v.reverse ? fmt::format("c = ({} - r) * {}", chunks - 1, high) : fmt::format("c = r * {}", high));
        w.tile = {{l.atom, "c", high}, {l.columns, fmt::format("j * {}", l.tile), l.tile}};
        const Value in = w.value(v.in[0]);
        const std::string mask = w.mask(0);
        w.line(fmt::format("x = {}", mask.empty() ? w.as_tile(in) : fmt::format("tw.where({}, {}, {})", mask, w.as_tile(in), one)));
        w.line(fmt::format("y = tw.{}(x, axis=0{}) {} carry[None, :]{}", product ? "cumprod" : "cumsum", v.reverse ? ", reverse=True" : "",
                           op, v.exclusive ? " - x" : ""));
        w.line(fmt::format("carry = carry {} tw.{}(x, axis=0)", op, product ? "prod" : "sum"));
        w.set(g.anchor, {"y", 3U, false});
        w.store(w.value(g.root));
        w.close();
    } else if (l.columns >= 0) {
        w.threads = static_cast<int>(l.tile);
        w.grid(grid);
        w.tile = {{l.columns, fmt::format("j * {}", l.tile), l.tile}};
        w.line(fmt::format("carry = tw.full(f32, ({},), {})", l.tile, one));
        w.open(fmt::format("for r in tw.range({}):", n));
        w.at[l.atom] = v.reverse ? fmt::format("{} - r", n - 1) : "r";
        const Value x = w.value(v.in[0]);
        if (v.exclusive) {
            w.line("y = carry");
            w.line(fmt::format("carry = carry {} {}", op, x.text));
        } else {
            w.line(fmt::format("carry = carry {} {}", op, x.text));
            w.line("y = carry");
        }
        w.set(g.anchor, {"y", 1U, false});
        w.store(w.value(g.root));
        w.close();
    } else {
        const std::int64_t wide = std::max<std::int64_t>(32, std::min<std::int64_t>(1024, power_of_two(n)));
        const std::int64_t chunks = (n + wide - 1) / wide;
        w.threads = static_cast<int>(std::min<std::int64_t>(128, wide));
        w.grid(grid);
        w.line(fmt::format("carry = tw.full(f32, (), {})", one));
        w.open(fmt::format("for r in tw.range({}):", chunks));
        w.line(v.reverse ? fmt::format("c = ({} - r) * {}", chunks - 1, wide) : fmt::format("c = r * {}", wide));
        w.tile = {{l.atom, "c", wide}};
        const Value in = w.value(v.in[0]);
        const std::string mask = w.mask(0);
        w.line(fmt::format("x = {}", mask.empty() ? w.as_tile(in) : fmt::format("tw.where({}, {}, {})", mask, w.as_tile(in), one)));
        w.line(fmt::format("y = tw.{}(x, axis=0{}) {} carry{}", product ? "cumprod" : "cumsum", v.reverse ? ", reverse=True" : "", op,
                           v.exclusive ? " - x" : ""));
        w.line(fmt::format("carry = carry {} tw.{}(x, axis=0)", op, product ? "prod" : "sum"));
        w.set(g.anchor, {"y", 1U, false});
        w.store(w.value(g.root));
        w.close();
    }
    const std::string i = w.index_of(l.atom);
    w.rename[l.atom] = "k";
    const std::string term = w.equation_of(v.in[0]);
    w.rename.clear();
    w.forget_equations();
    const std::string range = v.reverse ? (v.exclusive ? fmt::format("{} + 1:{}", i, n) : fmt::format("{}:{}", i, n))
                                        : (v.exclusive ? fmt::format("0:{}", i) : fmt::format("0:{} + 1", i));
    w.anchor_equation = fmt::format("{}(k in {}, {})", product ? "prod" : "sum", range, term);
}

void write_arg(Writer& w) {
    Group& g = w.g;
    const Primitive& v = w.prim(g.anchor);
    w.family = "argmax";
    const auto axes = g.axes.at(g.anchor);
    const View& view = g.operands[0];
    const auto axis = static_cast<std::size_t>(v.axes[0]);
    std::set<int> ends;
    for (const auto& a : axes)
        if (!a.empty()) ends.insert(a.back());
    join_atoms(g, ends);
    Line l;
    std::vector<GridAxis> grid;
    const bool row = axis + 1 == axes.size() ||
                     std::all_of(axes.begin() + static_cast<std::ptrdiff_t>(axis) + 1, axes.end(), [](const auto& a) { return a.empty(); });
    Argument x;
    x.primitive = view.base;
    x.dtype = w.prim(view.base).dtype;
    const std::int64_t n = view.dims[axis].size;
    std::vector<std::string> index, name;
    for (std::size_t d = 0; d < axes.size(); ++d) {
        if (d != axis && axes[d].empty() && view.dims[d].size == 1) continue;
        if (axes[d].size() > 1 || !view.dims[d].whole())
            return w.fail("what follows cuts a dimension of the search", g.root == g.anchor ? -1 : g.anchor);
        x.dims.push_back(view.dims[d].size);
        x.strides.push_back(view.dims[d].stride);
        index.push_back(d == axis ? "@" : std::to_string(axes[d][0]));
        name.push_back(d == axis ? "k" : w.index_of(axes[d][0]));
    }
    const std::string from = w.operand(x);
    const bool largest = v.fn == "max";
    const std::string worst = largest ? "float(\"-inf\")" : "float(\"inf\")";
    const char* better = largest ? "tw.maximum" : "tw.minimum";
    const std::string cast = x.dtype == "f32" ? "" : ".to(f32)";
    std::string equation;
    for (const std::string& s : name) equation += (equation.empty() ? "" : ", ") + s;
    w.anchor_equation = fmt::format("arg{}(k in 0:{}, {})", v.fn, n,
                                    cast.empty() ? fmt::format("{}[{}]", from, equation) : fmt::format("f32({}[{}])", from, equation));
    if (row) {
        for (std::size_t i = g.order.size(); i-- > 0;) {
            w.at[g.order[i]] = fmt::format("b{}", i);
            grid.push_back({w.at[g.order[i]], g.size.at(g.order[i])});
        }
    } else {
        arrange(w, -2, n, false, l, grid);
    }
    const auto subscript = [&](const std::string& at) {
        std::string out;
        for (const std::string& s : index) {
            std::string one = s == "@" ? at : "";
            if (one.empty()) {
                const int atom = std::stoi(s);
                one = atom == l.columns ? fmt::format("j * {0} : j * {0} + {0}", l.tile) : w.at.at(atom);
            }
            out += (out.empty() ? "" : ", ") + one;
        }
        return out;
    };
    const std::int64_t wide = row ? std::max<std::int64_t>(32, std::min<std::int64_t>(2048, power_of_two(n))) : l.tile;
    w.threads = static_cast<int>(std::min<std::int64_t>(row ? 256 : 128, wide));
    w.grid(grid);
    const std::int64_t rounds = row ? (n + wide - 1) / wide : n;
    const std::string load =
        row ? fmt::format("tw.load({}[{}], fill={}){}", from, subscript(fmt::format("r * {0} : r * {0} + {0}", wide)), worst, cast)
            : fmt::format("tw.load({}[{}], fill={}){}", from, subscript("r"), worst, cast);
    w.line(fmt::format("best = tw.full(f32, ({},), {})", wide, worst));
    if (!row) {
        // One pass: the place of the better one, and of the first of equal ones. Lanes beyond the last column look at that one: nothing is
        // masked in the loop.
        const std::int64_t columns = w.g.size.at(l.columns);
        std::string column = fmt::format("j * {0} : j * {0} + {0}", l.tile), one = load;
        if (columns % l.tile != 0) {
            w.line(fmt::format("at = tw.minimum(tw.arange({0}) + j * {0}, {1})", l.tile, columns - 1));
            one.replace(one.find(column), column.size(), "at");
        }
        w.line(fmt::format("place = tw.full(f32, ({},), float(\"inf\"))", wide));
        w.open(fmt::format("for r in tw.range({}{}):", rounds, rounds % 4 == 0 ? ", unroll=4" : ""));
        w.line("x = " + one);
        w.line(fmt::format("top = {}(best, x)", better));
        w.line("place = tw.minimum(tw.where(best == top, place, float(\"inf\")), tw.where(x == top, tw.f32(r), float(\"inf\")))");
        w.line("best = top");
        w.close();
        w.tile = {{l.columns, fmt::format("j * {}", l.tile), l.tile}};
        w.set(g.anchor, {"place", 1U, false});
        return w.store(w.value(g.root));
    }
    w.open(fmt::format("for r in tw.range({}):", rounds));
    w.line(fmt::format("best = {}(best, {})", better, load));
    w.close();
    w.line(fmt::format("best = tw.{}(best, axis=0)", v.fn));
    w.line(fmt::format("place = tw.full(f32, ({},), float(\"inf\"))", wide));
    w.open(fmt::format("for r in tw.range({}):", rounds));
    w.line("x = " + load);
    const std::string here = fmt::format("tw.where(x == best, (tw.coord(x, 0) + r * {}).to(f32), float(\"inf\"))", wide);
    w.line(fmt::format("place = tw.minimum(place, {})",
                       n % wide == 0 ? here : fmt::format("tw.where(tw.coord(x, 0) < {} - r * {}, {}, float(\"inf\"))", n, wide, here)));
    w.close();
    w.line("place = tw.min(place, axis=0)");
    w.set(g.anchor, {"place", 0U, false});
    w.store(w.value(g.root));
}

}  // namespace tw::graph
