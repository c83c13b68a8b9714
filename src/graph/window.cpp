#include "graph/window.h"

#include <fmt/format.h>

namespace tw::graph {

namespace {

// One tap that meets every position: nothing to ask. Elsewhere both ends are always asked for, also where the shapes answer: the loop over
// the taps is then recognised as the fold over the taps that `computes` states, where an unconditional one could be read as a run of
// neighbouring elements.
bool single(const Window& w, std::size_t d) { return w.taps() == 1 && w.padding[d] == 0 && (w.out[d] - 1) * w.stride[d] < w.in[d]; }

std::string shifted(const std::string& a, std::int64_t by) {
    return by == 0 ? a : by > 0 ? fmt::format("{} + {}", a, by) : fmt::format("{} - {}", a, -by);
}
std::string times(const std::string& a, std::int64_t by) { return by == 1 ? a : fmt::format("{} * {}", a, by); }

}  // namespace

std::vector<std::string> coordinates(const std::string& s, const Shape& extents) {
    std::vector<std::string> out;
    std::int64_t inner = count_of(extents);
    for (std::size_t d = 0; d < extents.size(); ++d) {
        inner /= extents[d];
        std::string text = inner == 1 ? s : fmt::format("{} // {}", s, inner);
        if (d > 0) text += fmt::format(" % {}", extents[d]);
        out.push_back(text);
    }
    return out;
}

Met meets(const Window& w, const std::string& s, const std::vector<std::string>& taps) {
    const auto o = coordinates(s, w.out);
    Met met;
    for (std::size_t d = 0; d < w.in.size(); ++d) {
        std::vector<std::string> conditions;
        std::string h;
        h = fmt::format("({} + {})", times(o[d], w.stride[d]), shifted(times(taps[d], w.dilation[d]), -w.padding[d]));
        if (!single(w, d)) conditions.push_back(h + " >= 0");
        if (!single(w, d)) conditions.push_back(fmt::format("{} < {}", h, w.in[d]));
        for (const std::string& c : conditions) met.inside += (met.inside.empty() ? "" : " and ") + c;
        met.position = d == 0 ? h : fmt::format("({} * {} + {})", met.position, w.in[d], h);
    }
    return met;
}

std::string over_taps(const Window& w, const std::string& fold, const std::function<std::string(const std::vector<std::string>&)>& term) {
    std::vector<std::string> names;
    for (std::size_t d = 0; d < w.kernel.size(); ++d) names.push_back(w.kernel[d] == 1 ? "0" : fmt::format("p{}", d));
    std::string text = term(names);
    for (std::size_t d = names.size(); d-- > 0;)
        if (w.kernel[d] > 1) text = fmt::format("{}({} in 0:{}, {})", fold, names[d], w.kernel[d], text);
    return text;
}

Taps::Taps(Writer& writer, const Window& window, std::string shape, std::string identity, std::string combine)
    : w_(writer), window_(window), shape_(std::move(shape)), identity_(std::move(identity)), combine_(std::move(combine)) {}

std::vector<std::string> Taps::tap_names() const {
    std::vector<std::string> out;
    for (std::size_t d = 0; d < window_.kernel.size(); ++d) out.push_back(window_.kernel[d] == 1 ? "0" : fmt::format("p{}", d));
    return out;
}

void Taps::positions(const std::string& tile) {
    w_.line("s = " + tile);
    const auto o = coordinates("s", window_.out);
    for (std::size_t d = 0; d < o.size(); ++d) w_.line(fmt::format("o{} = {}", d, o[d]));
    names_ = {"acc"};
    w_.line(fmt::format("acc = {}", identity_));
}

void Taps::open() {
    const auto taps = tap_names();
    for (std::size_t d = 0; d < window_.kernel.size(); ++d) {
        if (window_.kernel[d] == 1) continue;
        w_.open(fmt::format("for p{} in tw.range({}):", d, window_.kernel[d]));
        names_.push_back(fmt::format("acc{}", d));
        w_.line(fmt::format("{} = {}", names_.back(), identity_));
        ++loops_;
    }
    std::string inside, at;
    for (std::size_t d = 0; d < window_.kernel.size(); ++d) {
        const std::string h = fmt::format("h{}", d);
        std::vector<std::string> conditions;
        w_.line(fmt::format("{} = {} + ({} - {})", h, times(fmt::format("o{}", d), window_.stride[d]), times(taps[d], window_.dilation[d]),
                            window_.padding[d]));
        if (!single(window_, d)) conditions.push_back(fmt::format("({} >= 0)", h));
        if (!single(window_, d)) conditions.push_back(fmt::format("({} < {})", h, window_.in[d]));
        for (const std::string& c : conditions) inside += (inside.empty() ? "" : " & ") + c;
        at = d == 0 ? h : fmt::format("({}) * {} + {}", at, window_.in[d], h);
    }
    w_.line("at = " + at);
    masked_ = !inside.empty();
    if (masked_) w_.line("inside = " + inside);
}

void Taps::close() {
    for (; loops_ > 0; --loops_) {
        const std::string inner = names_.back();
        names_.pop_back();
        w_.line(fmt::vformat(fmt::string_view("{0} = "), fmt::make_format_args(names_.back())) +
                fmt::vformat(combine_, fmt::make_format_args(names_.back(), inner)));
        w_.close();
    }
}

void write_window(Writer& w) {
    Group& g = w.g;
    const Primitive& v = w.prim(g.anchor);
    const bool dot = v.fn == "dot";
    w.family = dot ? "direct convolution" : v.window.taps() == 1 ? "padding" : "pooling";
    const auto& axes = g.axes.at(g.anchor);
    std::set<int> ends;
    for (const auto& axis : axes)
        if (!axis.empty()) ends.insert({axis.back(), atom_before(g, axis.front())});
    join_atoms(g, ends);
    for (std::size_t d = 0; d < axes.size(); ++d)
        if (axes[d].size() > 1 || (d + 1 == axes.size() && axes[d].empty()))
            return w.fail("what follows a window cuts its positions", g.root == g.anchor ? -1 : g.anchor);
    const int atom = axes.back()[0];
    const std::int64_t n = g.size.at(atom), wide = std::min<std::int64_t>(power_of_two(n), 256);
    const std::int64_t tile = std::max<std::int64_t>(wide, 32);
    w.threads = static_cast<int>(std::min<std::int64_t>(tile, 256));
    std::vector<GridAxis> grid = {{"j", (n + tile - 1) / tile}};
    std::vector<std::string> index, name;  // of the outer dimensions: in the kernel, in `computes`
    for (std::size_t d = 0; d + 1 < axes.size(); ++d) {
        if (!axes[d].empty()) {
            w.at[axes[d][0]] = fmt::format("b{}", d);
            grid.push_back({fmt::format("b{}", d), g.size.at(axes[d][0])});
        }
        index.push_back(axes[d].empty() ? "0" : fmt::format("b{}", d));
        name.push_back(axes[d].empty() ? "0" : w.index_of(axes[d][0]));
    }
    w.grid(grid);
    w.tile = {{atom, fmt::format("j * {}", tile), tile}};
    // operands
    std::vector<Argument> arguments;
    for (const View& view : g.operands) {
        Argument a;
        a.primitive = view.base;
        a.dtype = w.prim(view.base).dtype;
        for (const Dim& d : view.dims) {
            if (!d.whole()) return w.fail("a window over a slice", w.sliced_operand());
            a.dims.push_back(d.size);
            a.strides.push_back(d.stride);
        }
        arguments.push_back(a);
    }
    const std::string x = w.operand(arguments[0]);
    const std::string to_f32 = arguments[0].dtype == "f32" ? "" : ".to(f32)";
    const bool largest = v.fn == "max";
    const std::string start = largest ? "float(\"-inf\")" : "0.0";
    Taps taps(w, v.window, "", fmt::format("tw.full(f32, ({},), {})", tile, start), largest ? "tw.maximum({0}, {1})" : "{0} + {1}");
    taps.positions(fmt::format("tw.arange({}) + j * {}", tile, tile));
    const auto names = taps.tap_names();
    taps.open();
    const std::string before = dot ? fmt::format("{}, {}, ", index[0], index[1]) : index[0] + ", ";
    const std::string left = dot ? fmt::format("{}, {}, ", name[0], name[1]) : name[0] + ", ";
    const std::int64_t channels = dot ? w.prim(v.in[0]).shape[2] : 1;
    const std::string part = dot && channels > 1 ? "part" : taps.accumulator();
    if (dot && channels > 1) {
        w.line(fmt::format("part = tw.full(f32, ({},), 0.0)", tile));
        w.open(fmt::format("for c in tw.range({}):", channels));
    }
    const std::string channel = channels > 1 ? "c" : "0";
    w.line(fmt::format("x = tw.load({}[{}{}at], fill=0.0){}", x, before, dot ? channel + ", " : "", to_f32));
    if (taps.masked()) w.line(fmt::format("x = tw.where(inside, x, {})", start));
    const std::string kernel = dot ? w.operand(arguments[1]) : "";
    const auto subscript_of = [&](const std::vector<std::string>& outer, const std::vector<std::string>& t) {
        std::string tap;
        for (const std::string& one : t) tap += ", " + one;
        return fmt::format("{}, {}, {}{}", outer[1], outer[2], channel, tap);
    };
    if (dot) {
        const char* round = v.tf32 ? ".to(tf32).to(f32)" : "";
        w.line(fmt::format("{0} = {0} + x{2} * tw.load({1}[{3}]){2}", part, kernel, round, subscript_of(index, names)));
        if (channels > 1) {
            w.close();
            w.line(fmt::format("{0} = {0} + part", taps.accumulator()));
        }
    } else {
        w.line(fmt::format("{0} = {1}", part, largest ? fmt::format("tw.maximum({}, x)", part) : fmt::format("{} + x", part)));
    }
    taps.close();
    w.anchor_equation = over_taps(v.window, largest ? "max" : "sum", [&](const std::vector<std::string>& t) {
        const Met met = meets(v.window, w.index_of(atom), t);
        std::string value = fmt::format("{}[{}{}{}]", x, left, dot ? channel + ", " : "", met.position);
        if (!to_f32.empty()) value = fmt::format("f32({})", value);
        if (!met.inside.empty()) value = fmt::format("where({}, {}, {})", met.inside, value, largest ? "(-inf)" : "0");
        if (!dot) return value;
        const std::string k = fmt::format("{}[{}]", kernel, subscript_of(name, t));
        value = v.tf32 ? fmt::format("f32(tf32({})) * f32(tf32({}))", value, k) : fmt::format("{} * {}", value, k);
        return channels > 1 ? fmt::format("sum(c in 0:{}, {})", channels, value) : value;
    });
    w.set(g.anchor, {"acc", 1U, false});
    w.store(w.value(g.root));
}

}  // namespace tw::graph
