#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/operators.h"
#include "graph/window.h"

namespace tw::graph {

namespace {

Shape but_last(const Shape& s, std::size_t n) { return Shape(s.begin(), s.end() - static_cast<std::ptrdiff_t>(n)); }

// Two operands of the same narrow type go to the matrix unit as they are; others are f32.
std::pair<int, int> pair_of(Call& c, int a, int b) {
    const std::string& x = c.b.at(a).dtype;
    if (x[0] == 'i' || c.b.at(b).dtype[0] == 'i') c.fail("a product of integers", "`cast` them to f32 where they are below 2^24");
    if ((x == "f16" || x == "bf16") && x == c.b.at(b).dtype) return {a, b};
    return {c.b.cast(a, "f32"), c.b.cast(b, "f32")};
}

// One of the two is a vector: products and a sum, in f32.
int vector_product(Call& c, int a, int b) {
    Builder& w = c.b;
    a = w.cast(a, "f32");
    b = w.cast(b, "f32");
    const bool column = w.shape(b).back() == 1;
    const auto swap = [&](int x) {
        Shape s = w.shape(x);
        std::swap(s[s.size() - 1], s[s.size() - 2]);  // one of them is 1: the same elements in the same order
        return w.reshape(x, s);
    };
    const auto rank = static_cast<std::int64_t>(std::max(w.shape(a).size(), w.shape(b).size()));
    return column ? w.reduce("sum", w.call("mul", a, swap(b)), {rank - 1}) : w.reduce("sum", w.call("mul", swap(a), b), {rank - 2});
}

// (..., m, k) times (..., k, n); leading dimensions broadcast. Rows of a matrix times a common one are one long matrix.
int product(Call& c, int a, int b) {
    Builder& w = c.b;
    const Shape sa = w.shape(a), sb = w.shape(b);
    if (sa.size() < 2 || sb.size() < 2 || sa.back() != sb[sb.size() - 2])
        return c.fail(fmt::format("cannot multiply {} and {}", text_of(sa), text_of(sb)));
    std::tie(a, b) = pair_of(c, a, b);
    const std::int64_t k = sa.back(), n = sb.back();
    if (n == 1 || sa[sa.size() - 2] == 1) return vector_product(c, a, b);
    Shape la = but_last(sa, 2), lb = but_last(sb, 2);
    Primitive p;
    p.kind = Kind::matmul;
    p.tf32 = c.precision.matmul_tf32;
    Shape result;
    if (count_of(lb) == 1) {
        const std::int64_t m = count_of(sa) / k;
        p.in = {w.reshape(a, {1, m, k}), w.reshape(b, {1, k, n})};
        p.shape = {1, m, n};
        result = la.size() >= lb.size() ? la : lb;
    } else {
        if (la != lb) {
            if (count_of(la) != 1)
                return c.fail(fmt::format("the leading dimensions of {} and {} differ", text_of(sa), text_of(sb)),
                              "make them equal with `expand`, or leave one out");
            la = lb;
            Shape wide = lb;
            wide.insert(wide.end(), {sa[sa.size() - 2], k});
            a = w.broadcast(a, wide);
        }
        const std::int64_t batch = count_of(lb), m = sa[sa.size() - 2];
        p.in = {w.reshape(a, {batch, m, k}), w.reshape(b, {batch, k, n})};
        p.shape = {batch, m, n};
        result = lb;
    }
    result.insert(result.end(), {sa[sa.size() - 2], n});
    return w.reshape(w.add(std::move(p)), result);
}

int swap_last(Builder& b, int x) {
    Shape order;
    for (std::size_t d = 0; d < b.shape(x).size(); ++d) order.push_back(static_cast<std::int64_t>(d));
    if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
    return b.permute(x, order);
}

int matmul(Call& c) {
    Builder& b = c.b;
    int x = c.in(0), y = c.in(1);
    const bool row = b.shape(x).size() == 1, column = b.shape(y).size() == 1;
    if (row) x = b.reshape(x, {1, b.shape(x)[0]});
    if (column) y = b.reshape(y, {b.shape(y)[0], 1});
    int z = product(c, x, y);
    if (c.failed) return z;
    const auto rank = static_cast<std::int64_t>(b.shape(z).size());
    if (column) z = b.drop(z, {rank - 1});
    if (row) z = b.drop(z, {column ? rank - 2 : rank - 2});
    return z;
}

int linear(Call& c) {
    Builder& b = c.b;
    const int x = c.in(0), w = c.in(1);
    if (b.shape(w).size() != 2) return c.fail("the weight has two dimensions, (out, in)");
    int z = product(c, b.shape(x).size() == 1 ? b.reshape(x, {1, b.shape(x)[0]}) : x, b.permute(w, {1, 0}));
    if (c.failed) return z;
    if (c.has(2)) z = b.call("add", z, c.real(2));
    return b.shape(x).size() == 1 ? b.drop(z, {0}) : z;
}

// Dimensions of one position and one tap are none.
void drop_single(Window& w) {
    for (std::size_t d = w.in.size(); d-- > 0 && w.in.size() > 1;) {
        if (w.in[d] != 1 || w.out[d] != 1 || w.kernel[d] != 1) continue;
        for (Shape* s : {&w.in, &w.out, &w.kernel, &w.stride, &w.padding, &w.dilation})
            s->erase(s->begin() + static_cast<std::ptrdiff_t>(d));
    }
}

// Reads stride, padding, dilation and works out the positions; false: noted.
bool read_window(Call& c, Window& w, std::size_t dims, bool pooling) {
    w.stride = c.integers("stride", dims, 1);
    w.padding = c.integers("padding", dims, 0);
    w.dilation = c.integers("dilation", dims, 1);
    const Shape extra = c.integers("output_padding", dims, 0);
    const bool ceil = pooling && c.flag("ceil_mode", false);
    if (w.taps() > 4096) {
        c.fail("a window of more than 4096 taps");
        return false;
    }
    for (std::size_t d = 0; d < dims; ++d) {
        if (w.stride[d] < 1 || w.dilation[d] < 1 || w.padding[d] < 0 || w.kernel[d] < 1 || w.stride[d] > 65536 || w.dilation[d] > 65536 ||
            w.padding[d] > 65536 || extra[d] < 0 || extra[d] > 65536) {
            c.fail("stride, dilation and kernel are at least 1, padding at least 0");
            return false;
        }
        const std::int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1;
        std::int64_t out = w.transposed ? (w.in[d] - 1) * w.stride[d] - 2 * w.padding[d] + reach + extra[d]
                                        : (w.in[d] + 2 * w.padding[d] - reach + (ceil ? w.stride[d] - 1 : 0)) / w.stride[d] + 1;
        if (!w.transposed && w.in[d] + 2 * w.padding[d] < reach) out = 0;
        if (ceil && out > 0 && (out - 1) * w.stride[d] >= w.in[d] + w.padding[d]) --out;
        if (out < 1) {
            c.fail("the window is larger than the padded input");
            return false;
        }
        w.out.push_back(out);
    }
    return true;
}

// A dimension without a window lies inside the one before it, whose taps are then as far apart as it is long.
void join_plain(Window& w) {
    for (std::size_t d = w.in.size(); d-- > 1;) {
        if (w.kernel[d] != 1 || w.stride[d] != 1 || w.padding[d] != 0 || w.stride[d - 1] != 1) continue;
        for (Shape* s : {&w.in, &w.out, &w.padding, &w.dilation}) (*s)[d - 1] *= w.in[d];
        for (Shape* s : {&w.in, &w.out, &w.kernel, &w.stride, &w.padding, &w.dilation})
            s->erase(s->begin() + static_cast<std::ptrdiff_t>(d));
    }
}

// Zeros (of a maximum: -inf) around a window's input (outer, positions), as many as its taps reach: then each of them meets an element.
int with_edges(Builder& b, int x, Window& w, const std::string& fn = "sum") {
    Window edge;
    edge.in = w.in;
    bool any = false;
    for (std::size_t d = 0; d < w.in.size(); ++d) {
        std::int64_t before = 0, after = 0;
        for (const Residue& r : residues(w, d)) {
            if (r.taps == 0) continue;
            before = std::max(before, -r.shift);
            after = std::max(after, (r.extent - 1) * r.stride + r.shift + (r.taps - 1) * r.spread - (w.in[d] - 1));
        }
        any = any || before > 0 || after > 0;
        edge.padding.push_back(before);
        edge.out.push_back(before + w.in[d] + after);
        w.padding[d] += w.transposed ? before * w.stride[d] : -before;
    }
    w.in = edge.out;
    w.padded = true;
    if (!any) return x;
    edge.kernel = edge.stride = edge.dilation = Shape(edge.in.size(), 1);
    drop_single(edge);
    Primitive p;
    p.kind = Kind::window;
    p.fn = fn;
    p.in = {x};
    p.shape = {b.shape(x)[0], count_of(edge.out)};
    p.window = edge;
    return b.add(std::move(p));
}

// A convolution with a single position: a product of the elements that it meets, in f32 as other products.
int conv_once(Call& c, int x, int k, std::int64_t groups, const Window& w) {
    Builder& b = c.b;
    const Shape sx = b.shape(x), sk = b.shape(k);
    for (std::size_t d = 0; d < w.in.size(); ++d) {
        const std::size_t at = d + 2;
        Shape taps;
        for (std::int64_t t = 0; t < w.kernel[d]; ++t)
            if (const std::int64_t i = t * w.dilation[d] - w.padding[d]; i >= 0 && i < w.in[d]) taps.push_back(t);
        if (taps.empty()) return c.fail("a window that meets nothing");
        const auto part = [&](int of, std::int64_t from, std::int64_t count) {
            Shape starts(b.shape(of).size(), 0), extents = b.shape(of);
            starts[at] = from;
            extents[at] = count;
            return b.slice(of, starts, extents);
        };
        const auto n = static_cast<std::int64_t>(taps.size());
        const std::int64_t first = taps[0] * w.dilation[d] - w.padding[d];
        k = part(k, taps[0], n);
        if (w.dilation[d] == 1 || n == 1) {
            x = part(x, first, n);
            continue;
        }
        Primitive apart;
        apart.kind = Kind::cat;
        apart.axes = {static_cast<std::int64_t>(at)};
        for (std::int64_t t = 0; t < n; ++t) apart.in.push_back(part(x, first + t * w.dilation[d], 1));
        apart.shape = b.shape(apart.in[0]);
        apart.shape[at] = n;
        x = b.add(std::move(apart));
    }
    const std::int64_t outs = sk[0] / groups, depth = count_of(b.shape(x)) / (sx[0] * groups);
    const int rows = b.permute(b.reshape(x, {sx[0], groups, depth}), {1, 0, 2});
    const int columns = b.permute(b.reshape(k, {groups, outs, depth}), {0, 2, 1});
    const int y = groups == 1 ? product(c, b.reshape(rows, {sx[0], depth}), b.reshape(columns, {depth, outs})) : product(c, rows, columns);
    Shape result(sx.size(), 1);
    result[0] = sx[0];
    result[1] = groups * outs;
    return b.reshape(groups == 1 ? y : b.permute(y, {1, 0, 2}), result);
}

// The bias of each channel, where there is one.
int with_bias(Call& c, int y) {
    if (!c.has(2)) return y;
    Shape channel(c.b.shape(y).size(), 1);
    channel[1] = c.b.shape(y)[1];
    return c.b.call("add", y, c.b.reshape(c.real(2), channel));
}

int conv(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0), k = c.real(1);
    const Shape sx = b.shape(x), sk = b.shape(k);
    const std::int64_t groups = c.integer("groups", 1);
    if (sx.size() < 3 || sx.size() > 5 || sk.size() != sx.size())
        return c.fail("takes (n, channels, 1 to 3 dimensions) and a kernel of as many dimensions");
    Primitive p;
    Window& w = p.window;
    w.transposed = c.flag("transposed", false);
    w.in.assign(sx.begin() + 2, sx.end());
    w.kernel.assign(sk.begin() + 2, sk.end());
    if (groups < 1 || sx[1] % groups != 0) return c.fail("the channels are not a multiple of the groups");
    const std::int64_t channels = sx[1] / groups;
    const std::int64_t outs = w.transposed ? sk[1] : sk[0] / groups;
    if ((w.transposed ? sk[0] != sx[1] : sk[1] != channels || sk[0] % groups != 0))
        return c.fail(fmt::format("a kernel {} does not fit {} with {} groups", text_of(sk), text_of(sx), groups));
    if (!read_window(c, w, sx.size() - 2, false)) return 0;
    const Shape places = w.out;
    if (!w.transposed && count_of(places) == 1) return with_bias(c, conv_once(c, x, k, groups, w));
    if (!w.transposed) join_plain(w);
    int positions = b.reshape(x, {count_of(sx) / count_of(w.in), count_of(w.in)});
    // Few results for each input element: no work for the matrix unit. One channel for each group is exact in the reference too.
    const bool direct = channels == 1 || outs < 8;
    const bool rows = c.precision.rows.contains(c.node.name);
    if (w.transposed || rows || (!direct && w.in.size() == 3)) positions = with_edges(b, positions, w);
    const std::int64_t in = count_of(w.in), out = count_of(w.out);
    p.shape = {sx[0], groups, outs, out};
    Shape kernel = {groups, w.transposed ? channels : outs, w.transposed ? outs : channels};
    kernel.insert(kernel.end(), w.kernel.begin(), w.kernel.end());
    p.kind = direct ? Kind::window : Kind::conv;
    if (direct) p.fn = "dot";
    const auto& asked = c.node.attributes;
    p.even = asked.contains("tf32") && asked["tf32"] == "even";
    p.tf32 = (p.even || c.flag("tf32", true)) && c.precision.conv_tf32 && channels > 1;
    p.in = {b.reshape(positions, {sx[0], groups, channels, in}), b.reshape(k, kernel)};
    Shape result = {sx[0], groups * outs};
    result.insert(result.end(), places.begin(), places.end());
    return with_bias(c, b.reshape(b.add(std::move(p)), result));
}

// A dilated window with a single position: its elements one by one.
int pool_apart(Call& c, int x, const Window& w, const std::string& fn) {
    Builder& b = c.b;
    const Shape s = b.shape(x);
    if (w.taps() > 64) return c.fail("a dilated window of more than 64 taps with a single position");
    int y = -1;
    for (std::int64_t t = 0; t < w.taps(); ++t) {
        Shape starts(s.size(), 0), extents = s;
        std::int64_t rest = t;
        bool inside = true;
        for (std::size_t d = w.in.size(); d-- > 0; rest /= w.kernel[d]) {
            const std::size_t at = s.size() - w.in.size() + d;
            starts[at] = rest % w.kernel[d] * w.dilation[d] - w.padding[d];
            extents[at] = 1;
            inside = inside && starts[at] >= 0 && starts[at] < w.in[d];
        }
        if (!inside) continue;
        const int one = b.slice(x, starts, extents);
        y = y < 0 ? one : b.call(fn == "max" ? "max" : "add", y, one);
    }
    if (y < 0) return c.fail("a window that meets nothing");
    return fn == "sum" ? b.call("div", y, static_cast<double>(w.taps())) : y;
}

// A window with a single position: a reduction of the elements that it meets.
int pool_once(Call& c, int x, const Window& w, const std::string& fn) {
    Builder& b = c.b;
    const Shape s = b.shape(x);
    Shape starts(s.size(), 0), extents = s, axes, result = s;
    for (std::size_t d = 0; d < w.in.size(); ++d) {
        const std::size_t at = s.size() - w.in.size() + d;
        if (w.dilation[d] != 1 && w.kernel[d] > 1) return pool_apart(c, x, w, fn);
        extents[at] = std::min(w.in[d], w.kernel[d] - w.padding[d]);
        axes.push_back(static_cast<std::int64_t>(at));
    }
    const int y = b.reduce(fn, b.slice(x, starts, extents), axes);
    return fn == "sum" ? b.call("div", y, static_cast<double>(w.taps())) : y;
}

int pool(Call& c, const char* fn) {
    Builder& b = c.b;
    const int x = c.real(0);
    const Shape s = b.shape(x);
    const auto dims = static_cast<std::size_t>(c.integer("dims", 2));
    if (dims < 1 || dims > 3 || s.size() <= dims) return c.fail("`dims` is 1 to 3, and fewer than the tensor has");
    Primitive p;
    p.kind = Kind::window;
    p.fn = fn;
    Window& w = p.window;
    w.in.assign(s.end() - static_cast<std::ptrdiff_t>(dims), s.end());
    w.kernel = c.integers("kernel", dims, 1);
    for (const std::int64_t k : w.kernel)
        if (k < 1 || k > 4096) return c.fail("a kernel has 1 to 4096 taps in each dimension");
    if (!read_window(c, w, dims, true)) return 0;
    const bool average = p.fn == "sum";
    const bool padded = std::any_of(w.padding.begin(), w.padding.end(), [](std::int64_t v) { return v != 0; });
    if (average && padded && !c.flag("count_include_pad", true))
        return c.fail("averages that leave padding out of the count are not supported", "multiply by the taps over those that count");
    const std::int64_t outer = count_of(but_last(s, dims)), taps = w.taps();
    const Shape positions = w.out;
    if (count_of(positions) == 1) return pool_once(c, x, w, p.fn);
    drop_single(w);
    p.in = {b.reshape(x, {outer, count_of(w.in)})};
    if (c.precision.rows.contains(c.node.name)) p.in = {with_edges(b, p.in[0], w, p.fn)};
    p.shape = {outer, count_of(w.out)};
    Shape result = but_last(s, dims);
    result.insert(result.end(), positions.begin(), positions.end());
    int y = b.add(std::move(p));
    if (average) y = b.call("div", y, static_cast<double>(taps));
    return b.reshape(y, result);
}

int adaptive(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0);
    const Shape s = b.shape(x);
    const auto dims = static_cast<std::size_t>(c.integer("dims", 2));
    if (dims < 1 || dims > 3 || s.size() <= dims) return c.fail("`dims` is 1 to 3, and fewer than the tensor has");
    const Shape to = c.integers("size", dims, 1);
    // Equal windows that do not meet: the dimension is cut in two, and the second half averaged.
    Shape cut = but_last(s, dims), axes, result = cut;
    double n = 1;
    for (std::size_t d = 0; d < dims; ++d) {
        const std::int64_t extent = s[s.size() - dims + d];
        if (to[d] < 1 || extent % to[d] != 0) return c.fail("the output's extents divide the input's");
        cut.push_back(to[d]);
        axes.push_back(static_cast<std::int64_t>(cut.size()));
        cut.push_back(extent / to[d]);
        result.push_back(to[d]);
        n *= static_cast<double>(extent / to[d]);
    }
    if (cut.size() > 8) return c.fail("too many dimensions");
    const int total = b.reduce("sum", b.reshape(x, cut), axes);
    return b.reshape(n == 1 ? total : b.call("div", total, n), result);
}

int attention(Call& c) {
    Builder& b = c.b;
    const int q = c.in(0), k = c.in(1), v = c.in(2);
    if (b.shape(q).size() < 2 || b.shape(q).size() != b.shape(k).size()) return c.fail("takes queries, keys and values of one rank");
    const double scale = c.number("scale", 1.0 / std::sqrt(static_cast<double>(b.shape(q).back())));
    const std::string narrow = b.at(q).dtype;
    int s = product(c, q, swap_last(b, k));
    if (c.failed) return s;
    s = b.call("mul", s, scale);
    const Shape shape = b.shape(s);
    const Shape axes = {static_cast<std::int64_t>(shape.size()) - 1};
    if (c.has(3)) {
        const int mask = c.in(3);
        s = b.at(mask).dtype == "bool" ? b.where(mask, s, b.number(-INFINITY)) : b.call("add", s, c.real(3));
    }
    if (c.flag("causal", false)) {
        const int id = b.call("causal", s);
        s = id;
    }
    const int e = b.call("exp", b.call("sub", s, b.reduce("max", s, axes)));
    int p = b.call("div", e, b.reduce("sum", e, axes));
    if (narrow != "f32") p = b.cast(p, narrow);
    return product(c, p, v);
}

}  // namespace

void add_products(Operators& t) {
    t["matmul"] = matmul;
    t["linear"] = linear;
    t["conv"] = conv;
    t["max_pool"] = [](Call& c) { return pool(c, "max"); };
    t["avg_pool"] = [](Call& c) { return pool(c, "sum"); };
    t["adaptive_avg_pool"] = adaptive;
    t["attention"] = attention;
}

void add_views(Operators& t) {
    t["reshape"] = [](Call& c) { return c.b.reshape(c.in(0), c.node.shape); };
    t["permute"] = [](Call& c) {
        const int x = c.in(0);
        const std::size_t rank = c.b.shape(x).size();
        Shape order = c.integers("order", rank, 0);
        for (std::int64_t& a : order) a += a < 0 ? static_cast<std::int64_t>(rank) : 0;
        Shape sorted = order;
        std::sort(sorted.begin(), sorted.end());
        for (std::size_t d = 0; d < rank; ++d)
            if (sorted[d] != static_cast<std::int64_t>(d)) return c.fail("`order` names each dimension once");
        return c.b.permute(x, order);
    };
    t["expand"] = [](Call& c) {
        const int x = c.in(0);
        const Shape& s = c.b.shape(x);
        bool fits = s.size() <= c.node.shape.size();
        for (std::size_t d = 0; fits && d < s.size(); ++d) fits = s[d] == 1 || s[d] == c.node.shape[c.node.shape.size() - s.size() + d];
        return fits ? c.b.broadcast(x, c.node.shape) : c.fail("does not broadcast to its shape");
    };
    t["slice"] = [](Call& c) {
        const int x = c.in(0);
        const Shape starts = c.integers("starts", c.b.shape(x).size(), 0);
        bool fits = c.node.shape.size() == starts.size();
        for (std::size_t d = 0; fits && d < starts.size(); ++d) fits = starts[d] >= 0 && starts[d] + c.node.shape[d] <= c.b.shape(x)[d];
        return fits ? c.b.slice(x, starts, c.node.shape) : c.fail("the slice is not inside its input");
    };
}

}  // namespace tw::graph
