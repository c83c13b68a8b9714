#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "graph/compose_node.h"

namespace tw::graph {

namespace {

constexpr std::int64_t kTapsWritten = 64;  // so many are written out one by one

std::string stepped(const std::string& i, std::int64_t by) { return by == 1 ? i : fmt::format("{} * {}", i, by); }

std::string moved(const std::string& i, std::int64_t by) {
    return by == 0 ? i : fmt::format("{} {} {}", i, by < 0 ? "-" : "+", std::abs(by));
}

}  // namespace

// A fold over the taps of a window. `term` of a tap: its value, and the condition under which it meets an element (empty: always); nothing:
// it meets none. Few taps are written one by one.
std::string NodeText::met(const Shape& window,
                          const std::function<std::optional<std::pair<std::string, std::string>>(const Indices& taps)>& term,
                          const std::string& fn, double otherwise, std::int64_t most) const {
    const auto masked = [&](const std::pair<std::string, std::string>& t) {
        return t.second.empty() ? t.first : fmt::format("where({}, {}, {})", t.second, t.first, literal(otherwise));
    };
    const std::int64_t taps = count_of(window);
    if (taps > most) {
        Indices names;
        std::vector<std::pair<std::string, std::int64_t>> over;
        for (std::size_t d = 0; d < window.size(); ++d) {
            names.push_back(window[d] == 1 ? "0" : fmt::format("t{}", d));
            over.emplace_back(fmt::format("t{}", d), window[d]);
        }
        const auto t = term(names);
        return t ? fold(fn, over, masked(*t)) : literal(otherwise);
    }
    std::string all;
    for (std::int64_t t = 0; t < taps; ++t) {
        Indices at(window.size());
        std::int64_t rest = t;
        for (std::size_t d = window.size(); d-- > 0; rest /= window[d]) at[d] = std::to_string(rest % window[d]);
        const auto one = term(at);
        if (!one) continue;
        if (all.empty()) all = masked(*one);
        else all = fn == "max" ? fmt::format("maximum({}, {})", all, masked(*one)) : all + " + " + masked(*one);
    }
    return all.empty() ? literal(otherwise) : all;
}

std::string NodeText::convolution() {
    const Shape &s = shape(0), &k = shape(1);
    const std::size_t dims = s.size() - 2;
    const Shape stride = list("stride", dims, 1), padding = list("padding", dims, 0), dilation = list("dilation", dims, 1);
    const std::int64_t groups = list("groups", 1, 1)[0], channels = s[1] / groups, outs = n.shape[1] / groups;
    const bool transposed = flag("transposed");
    const bool even = n.attributes.contains("tf32") && n.attributes["tf32"] == "even";
    const bool asked = !n.attributes.contains("tf32") || even || flag("tf32");
    const bool product = !transposed && count_of(Shape(n.shape.begin() + 2, n.shape.end())) == 1;  // of one position
    // One channel for each group is exact in the reference.
    const bool rounds = product ? precision.matmul_tf32 : asked && precision.conv_tf32 && channels > 1;
    const auto operand = [&](const std::string& x) { return rounds ? fmt::format("f32(tf32({}))", x) : x; };
    const Indices i = own();
    const std::string c = channels == 1 ? "0" : "c";
    const std::string group = groups == 1 ? "0" : outs == 1 ? i[1] : fmt::format("{} // {}", i[1], outs);
    const std::string channel = groups == 1 ? c : channels == 1 ? group : fmt::format("({}) * {} + {}", group, channels, c);
    const Shape window(k.begin() + 2, k.end());
    const auto term = [&](const Indices& taps) -> std::optional<std::pair<std::string, std::string>> {
        Indices x = {i[0], channel}, w = transposed ? Indices{channel, groups == 1 ? i[1]
                                                                       : outs == 1 ? "0"
                                                                                   : fmt::format("{} % {}", i[1], outs)}
                                                    : Indices{i[1], c};
        std::vector<std::string> conditions;
        for (std::size_t d = 0; d < dims; ++d) {
            const std::string& t = taps[d];
            const bool known = std::isdigit(static_cast<unsigned char>(t[0])) != 0;
            const std::int64_t tap = known ? std::stoll(t) * dilation[d] : 0;
            std::string position;
            if (!transposed) {
                position = known ? moved(stepped(i[d + 2], stride[d]), tap - padding[d])
                                 : moved(stepped(i[d + 2], stride[d]) + " + " + stepped(t, dilation[d]), -padding[d]);
                const std::int64_t most = (n.shape[d + 2] - 1) * stride[d] + (window[d] - 1) * dilation[d] - padding[d];
                if (known ? tap < padding[d] : padding[d] > 0) conditions.push_back(fmt::format("{} >= 0", position));
                if (known ? (n.shape[d + 2] - 1) * stride[d] + tap - padding[d] >= s[d + 2] : most >= s[d + 2])
                    conditions.push_back(fmt::format("{} < {}", position, s[d + 2]));
            } else {
                const std::string from = known ? moved(i[d + 2], padding[d] - tap)
                                               : moved(fmt::format("{} - {}", i[d + 2], stepped(t, dilation[d])), padding[d]);
                position = stride[d] == 1 ? from : fmt::format("({}) // {}", from, stride[d]);
                if (stride[d] > 1) conditions.push_back(fmt::format("({}) % {} == 0", from, stride[d]));
                conditions.push_back(fmt::format("{} >= 0", from));
                conditions.push_back(fmt::format("{} < {}", from, s[d + 2] * stride[d]));
            }
            x.push_back(position);
            w.push_back(t);
        }
        return std::pair{fmt::format("{} * {}", operand(real(0, x)), operand(real(1, w))),
                         fmt::format("{}", fmt::join(conditions, " and "))};
    };
    std::string y = fold("sum", {{"c", channels}}, met(window, term, "sum", 0, transposed || product ? 1 : kTapsWritten));
    if (has(2)) y = fmt::format("{} + {}", y, real(2, {i[1]}));
    return y;
}

std::string NodeText::pooled() {
    const bool largest = n.op == "max_pool", adaptive = n.op == "adaptive_avg_pool";
    const Shape& s = shape(0);
    const auto dims = static_cast<std::size_t>(number("dims", 2));
    const std::size_t first = s.size() - dims;
    Shape window = list("kernel", dims, 1), stride = list("stride", dims, 1);
    const Shape padding = list("padding", dims, 0), dilation = list("dilation", dims, 1);
    if (adaptive)
        for (std::size_t d = 0; d < dims; ++d) window[d] = stride[d] = s[first + d] / n.shape[first + d];
    const Indices i = own();
    const auto term = [&](const Indices& taps) -> std::optional<std::pair<std::string, std::string>> {
        Indices x(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(first)), conditions;
        for (std::size_t d = 0; d < dims; ++d) {
            const bool known = std::isdigit(static_cast<unsigned char>(taps[d][0])) != 0;
            const std::int64_t tap = known ? std::stoll(taps[d]) * dilation[d] : 0;
            const std::string from = stepped(i[first + d], stride[d]);
            x.push_back(known ? moved(from, tap - padding[d]) : moved(from + " + " + stepped(taps[d], dilation[d]), -padding[d]));
            const std::int64_t most = (n.shape[first + d] - 1) * stride[d] + (known ? tap : (window[d] - 1) * dilation[d]) - padding[d];
            if (known ? tap < padding[d] : padding[d] > 0) conditions.push_back(fmt::format("{} >= 0", x.back()));
            if (most >= s[first + d]) conditions.push_back(fmt::format("{} < {}", x.back(), s[first + d]));
        }
        return std::pair{real(0, x), fmt::format("{}", fmt::join(conditions, " and "))};
    };
    if (largest) return met(window, term, "max", -INFINITY, kTapsWritten);
    const std::string total = met(window, term, "sum", 0, kTapsWritten);
    return count_of(window) == 1 ? total : fmt::format("({}) / {}", total, literal(static_cast<double>(count_of(window))));
}

std::optional<std::string> NodeText::windows() {
    if (n.op == "conv") return convolution();
    if (n.op == "max_pool" || n.op == "avg_pool" || n.op == "adaptive_avg_pool") return pooled();
    return std::nullopt;
}

std::optional<std::string> NodeText::products() {
    if (n.op != "matmul" && n.op != "linear" && n.op != "attention") return std::nullopt;
    const auto operand = [&](const std::string& x) { return precision.matmul_tf32 ? fmt::format("f32(tf32({}))", x) : x; };
    const Indices i = own();
    const std::size_t r = i.size();
    if (n.op == "linear") {
        Indices x = i;
        const std::int64_t depth = shape(1)[1];
        x[r - 1] = depth == 1 ? "0" : "k";
        std::string y = fold("sum", {{"k", depth}}, operand(real(0, x)) + " * " + operand(real(1, {i[r - 1], x[r - 1]})));
        return has(2) ? fmt::format("{} + {}", y, real(2, broadcast(2, i))) : y;
    }
    if (n.op == "matmul") {
        const Shape &sa = shape(0), &sb = shape(1);
        const std::int64_t depth = sa.back();
        const std::string k = depth == 1 ? "0" : "k";
        const bool row = sa.size() == 1, column = sb.size() == 1;
        Indices lead(i.begin(), i.end() - static_cast<std::ptrdiff_t>((row ? 0 : 1) + (column ? 0 : 1)));
        Indices x = lead, y = lead;
        if (!row) x.push_back(i[lead.size()]);
        x.push_back(k);
        y.push_back(k);
        if (!column) y.push_back(i[r - 1]);
        const bool vectors = row || column || sb.back() == 1 || sa[sa.size() - 2] == 1;  // no work for the matrix unit: exact
        const auto of = [&](const std::string& v) { return vectors ? v : operand(v); };
        return fold("sum", {{"k", depth}}, of(real(0, broadcast(0, x))) + " * " + of(real(1, broadcast(1, y))));
    }
    // Scores are a let of their own; those after the diagonal of a causal one are not looked at.
    const Shape &q = shape(0), &kv = shape(1);
    Shape scores = n.shape;
    scores.back() = kv[kv.size() - 2];
    Indices at = i, x = i, y = i;
    at[r - 1] = scores.back() == 1 ? "0" : fmt::format("i{}", r - 1);
    x[r - 1] = y[r - 1] = q.back() == 1 ? "0" : "k";
    y[r - 2] = at[r - 1];
    const double scale = number("scale", 1 / std::sqrt(static_cast<double>(q.back())));
    std::string s = fmt::format("{} * {}", fold("sum", {{"k", q.back()}}, operand(real(0, x)) + " * " + operand(real(1, broadcast(1, y)))),
                                literal(scale));
    if (has(3) && dtype(3) == "bool") s = fmt::format("where({}, {}, -inf)", truth(3, broadcast(3, at)), s);
    else if (has(3)) s = fmt::format("{} + {}", s, real(3, broadcast(3, at)));
    const std::string name = let("s_" + id, scores, s);
    Indices v = i;
    at[r - 1] = v[r - 2] = scores.back() == 1 ? "0" : "j";
    const std::string end = flag("causal") ? fmt::format("minimum({} + 1, {})", i[r - 2], scores.back()) : std::to_string(scores.back());
    const std::string e = fmt::format("exp({}[{}])", name, fmt::join(at, ", "));
    const std::string narrow = dtype(0), total = fmt::format("sum(j in 0:{}, {})", end, e);
    const std::string rounded = narrow == "f32" ? e : fmt::format("f32({}({}))", narrow, e);  // for the matrix unit
    return fmt::format("sum(j in 0:{}, {} * {}) / {}", end, rounded, real(2, broadcast(2, v)), total);
}

}  // namespace tw::graph
