#include <fmt/format.h>

#include <algorithm>

#include "graph/product.h"

namespace tw::graph {

void name_outer(Writer& w, ProductAxes& out, std::size_t count) {
    const Group& g = w.g;
    const auto& axes = g.axes.at(g.anchor);
    for (std::size_t d = 0; d < count; ++d) {
        std::string index = "0", name = "0";
        for (const int a : axes[d]) {
            const std::string own = fmt::format("b{}", out.outer.size());
            out.outer.push_back({own, g.size.at(a)});
            w.at[a] = own;
            index = index == "0" ? own : fmt::format("({} * {} + {})", index, g.size.at(a), own);
            name = name == "0" ? w.index_of(a) : fmt::format("({} * {} + {})", name, g.size.at(a), w.index_of(a));
        }
        out.index.push_back(index);
        out.name.push_back(name);
    }
}

bool arrange_product(Writer& w, ProductAxes& out) {
    Group& g = w.g;
    const auto& axes = g.axes.at(g.anchor);
    std::set<int> ends;
    for (const auto& axis : axes)
        if (!axis.empty()) ends.insert({axis.back(), atom_before(g, axis.front())});
    join_atoms(g, ends);
    const std::size_t n = axes.size();
    if (axes[n - 1].size() != 1 || axes[n - 2].size() != 1) {
        w.fail("what follows a product cuts its rows or columns", g.root == g.anchor ? -1 : g.anchor);
        return false;
    }
    out.m = axes[n - 2][0];
    out.n = axes[n - 1][0];
    name_outer(w, out, n - 2);
    return true;
}

bool whole_in(const Group& g, int atom) {
    const auto whole = [&](const Read& read) {
        return std::all_of(read.places.begin(), read.places.end(),
                           [&](const Place& p) { return p.atom != atom || (p.start == 0 && p.extent == g.size.at(atom)); });
    };
    return whole(g.output) && std::all_of(g.reads.begin(), g.reads.end(), [&](const auto& r) { return whole(r.second); });
}

bool row_major(const Read& read) {
    std::int64_t next = 1;
    for (std::size_t d = read.places.size(); d-- > 0; next *= read.places[d].extent)
        if (read.places[d].extent != 1 && read.places[d].stride != next) return false;
    return true;
}

Argument argument_of(const Scratch& s, bool output) {
    Argument a;
    a.name = s.name;
    a.dtype = s.dtype;
    a.dims = s.dims;
    a.strides = s.strides;
    a.scratch = s.buffer;
    a.whole = s.whole;
    a.output = output;
    return a;
}

KernelText helper_text(const Helper& h, const std::string& family, const std::vector<std::string>& nodes) {
    KernelText k;
    k.name = h.name;
    k.family = family;
    k.arguments = h.arguments;
    k.nodes = nodes;
    const std::string resident = h.blocks_per_sm > 0 ? fmt::format(", blocks_per_sm={}", h.blocks_per_sm) : "";
    k.text = fmt::format("@tw.kernel(target=\"sm_90a\", threads={}{}, computes=\"\"\"\n{}\"\"\")\ndef {}({}):\n{}", h.threads, resident,
                         h.computes, h.name, parameter_list(h.arguments), h.body);
    return k;
}

}  // namespace tw::graph
