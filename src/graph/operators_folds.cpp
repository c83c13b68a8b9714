#include <algorithm>
#include <numeric>

#include "graph/operators.h"

namespace tw::graph {

namespace {

double extent(const Builder& b, int x, const Shape& axes) {
    double n = 1;
    for (const std::int64_t a : axes) n *= static_cast<double>(b.shape(x)[static_cast<std::size_t>(a)]);
    return n;
}

// A fold of a stored tensor over a dimension before others. Where these are no whole vectors of 16 bytes, f of them that follow one another
// are: every f-th row is folded first, then the f results. All but these are read in vectors, and each sector once.
int fold(Builder& b, const std::string& fn, int x, const Shape& axes) {
    constexpr std::int64_t vector = 4, large = std::int64_t{1} << 24, fewest = 64, narrowest = 256;
    const Shape s = b.shape(x);
    if (axes.size() != 1 || b.at(x).kind != Kind::leaf || b.at(x).dtype != "f32" || count_of(s) < std::min(large, b.out.large))
        return b.reduce(fn, x, axes);
    const auto d = static_cast<std::size_t>(axes[0]);
    std::int64_t inner = 1;
    for (std::size_t i = d + 1; i < s.size(); ++i) inner *= s[i];
    const std::int64_t f = vector / std::gcd(inner, vector);
    if (f == 1 || inner < narrowest || s[d] % f != 0 || s[d] / f < fewest) return b.reduce(fn, x, axes);
    Shape rows = s, kept = s;
    rows[d] /= f;
    rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(d) + 1, f);
    kept[d] = 1;
    return b.reshape(b.reduce(fn, b.reduce(fn, b.reshape(x, rows), {axes[0]}), {axes[0] + 1}), kept);
}

int finish(Call& c, int id, const Shape& axes) { return c.flag("keepdim", false) ? id : c.b.drop(id, axes); }

int logsumexp(Builder& b, int x, const Shape& axes) {
    const int top = b.reduce("max", x, axes);
    if (top != x) b.out.list[static_cast<std::size_t>(top)].finite = true;
    return b.call("add", top, b.call("log", b.reduce("sum", b.call("exp", b.call("sub", x, top)), axes)));
}

int mean(Builder& b, int x, const Shape& axes) {
    const double n = extent(b, x, axes);
    const int total = b.reduce("sum", x, axes);
    return n == 1 ? total : b.call("div", total, n);
}

// (x - mean) / sqrt(variance + eps), both over `axes`.
int standardise(Builder& b, int x, const Shape& axes, double eps) {
    const int centred = b.call("sub", x, mean(b, x, axes));
    const int variance = mean(b, b.call("mul", centred, centred), axes);
    return b.call("mul", centred, b.call("rsqrt", b.call("add", variance, eps)));
}

Shape last_axes(std::size_t rank, std::size_t count) {
    Shape out;
    for (std::size_t d = rank - count; d < rank; ++d) out.push_back(static_cast<std::int64_t>(d));
    return out;
}

std::int64_t from_third(const Shape& s) {
    std::int64_t n = 1;
    for (std::size_t d = 2; d < s.size(); ++d) n *= s[d];
    return n;
}

// Weight and bias of each channel, (1, g, c, 1), to x of (n, g, c, s).
int affine(Call& c, int x, std::int64_t groups, std::int64_t channels) {
    for (const std::size_t i : {1, 2}) {
        if (!c.has(i)) continue;
        if (count_of(c.b.shape(c.in(i))) != groups * channels) return c.fail("weight and bias have one number for each channel");
        const int w = c.b.reshape(c.real(i), {1, groups, channels, 1});
        x = c.b.call(i == 1 ? "mul" : "add", x, w);
    }
    return x;
}

int group_norm(Call& c, std::int64_t groups) {
    Builder& b = c.b;
    const int x = c.real(0);
    const Shape s = b.shape(x);
    if (s.size() < 2 || groups < 1 || s[1] % groups != 0) return c.fail("the channels, dimension 1, are not a multiple of the groups");
    const int flat = b.reshape(x, {s[0], groups, s[1] / groups, from_third(s)});
    return b.reshape(affine(c, standardise(b, flat, {2, 3}, c.number("eps", 1e-5)), groups, s[1] / groups), s);
}

int batch_norm(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0);
    const Shape s = b.shape(x);
    if (s.size() < 2) return c.fail("takes a tensor of two dimensions or more");
    const int flat = b.reshape(x, {s[0], s[1], 1, from_third(s)});
    return b.reshape(affine(c, standardise(b, flat, {0, 3}, c.number("eps", 1e-5)), s[1], 1), s);
}

int layer_norm(Call& c, bool centred) {
    Builder& b = c.b;
    const int x = c.real(0);
    const auto count = static_cast<std::size_t>(c.integer("dims", 1));
    const Shape s = b.shape(x);
    if (count < 1 || count > s.size()) return c.fail("`dims` is the number of last dimensions that are normalised");
    const Shape axes = last_axes(s.size(), count);
    const double eps = c.number("eps", 1e-5);
    int y =
        centred ? standardise(b, x, axes, eps) : b.call("mul", x, b.call("rsqrt", b.call("add", mean(b, b.call("mul", x, x), axes), eps)));
    if (c.has(1)) y = b.call("mul", y, c.real(1));
    if (c.has(2)) y = b.call("add", y, c.real(2));
    return y;
}

int norm(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0);
    const Shape axes = c.axes("dims", b.shape(x).size());
    const double p = c.number("p", 2);
    if (p == 1) return finish(c, b.reduce("sum", b.call("abs", x), axes), axes);
    if (p == 2) return finish(c, b.call("sqrt", b.reduce("sum", b.call("mul", x, x), axes)), axes);
    return c.fail("`p` is 1 or 2");
}

int scan(Call& c, const char* fn) {
    const int x = c.real(0);
    Primitive p;
    p.kind = Kind::scan;
    p.fn = fn;
    p.in = {x};
    p.shape = c.b.shape(x);
    p.axes = {c.axis("dim", p.shape.size(), -1)};
    if (c.failed) return x;
    p.reverse = c.flag("reverse", false);
    p.exclusive = c.flag("exclusive", false);
    if (!p.exclusive && p.shape[static_cast<std::size_t>(p.axes[0])] == 1) return x;
    if (p.exclusive && p.shape[static_cast<std::size_t>(p.axes[0])] == 1) return c.b.broadcast(c.b.number(0), p.shape);
    if (p.exclusive && p.fn == "prod") return c.fail("an exclusive product is not supported");
    return c.b.add(std::move(p));
}

int arg(Call& c, const char* fn) {
    int x = c.real(0);
    const bool all = !c.node.attributes.contains("dim");
    if (all) x = c.b.reshape(x, {count_of(c.b.shape(x))});
    Primitive p;
    p.kind = Kind::arg;
    p.fn = fn;
    p.in = {x};
    p.shape = c.b.shape(x);
    const std::int64_t a = c.axis("dim", p.shape.size(), 0);
    if (c.failed) return x;
    p.axes = {a};
    if (p.shape[static_cast<std::size_t>(a)] > (1 << 24)) return c.fail("more than 2^24 places", "places are folded in f32");
    p.shape[static_cast<std::size_t>(a)] = 1;
    p.dtype = "i64";
    return finish(c, c.b.add(std::move(p)), {a});
}

int averaged(Call& c, int each) {
    const std::string how = c.node.attributes.contains("reduction") && c.node.attributes["reduction"].is_string()
                                ? c.node.attributes["reduction"].get<std::string>()
                                : "mean";
    const Shape axes = last_axes(c.b.shape(each).size(), c.b.shape(each).size());
    if (how == "none") return each;
    if (how == "sum") return c.b.drop(c.b.reduce("sum", each, axes), axes);
    if (how == "batchmean") return c.b.drop(c.b.call("div", c.b.reduce("sum", each, axes), static_cast<double>(c.b.shape(each)[0])), axes);
    if (how != "mean") return c.fail("`reduction` is mean, sum, batchmean or none");
    return c.b.drop(mean(c.b, each, axes), axes);
}

int cross_entropy(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0), y = c.in(1);
    if (b.shape(x).size() != 2 || b.shape(y) != Shape{b.shape(x)[0]})
        return c.fail("takes logits (rows, classes) and one class for each row");
    if (b.at(y).dtype != "i64" && b.at(y).dtype != "i32") return c.fail("classes are i32 or i64");
    Primitive p;
    p.kind = Kind::pick;
    p.in = {x, b.reshape(y, {b.shape(x)[0], 1})};
    p.shape = {b.shape(x)[0], 1};
    const int chosen = b.add(std::move(p));
    const int given = c.flag("log_probabilities", false) ? b.call("neg", chosen) : b.call("sub", logsumexp(b, x, {1}), chosen);
    return averaged(c, b.drop(given, {1}));
}

void add_losses(Operators& t) {
    t["mse_loss"] = [](Call& c) {
        const int d = c.b.call("sub", c.real(0), c.real(1));
        return averaged(c, c.b.call("mul", d, d));
    };
    t["l1_loss"] = [](Call& c) { return averaged(c, c.b.call("abs", c.b.call("sub", c.real(0), c.real(1)))); };
    t["smooth_l1_loss"] = [](Call& c) {
        Builder& b = c.b;
        const double beta = c.number("beta", 1);
        if (!(beta > 0)) return c.fail("`beta` is above 0");
        const int d = b.call("abs", b.call("sub", c.real(0), c.real(1)));
        return averaged(
            c, b.where(b.call("lt", d, beta), b.call("div", b.call("mul", 0.5, b.call("mul", d, d)), beta), b.call("sub", d, 0.5 * beta)));
    };
    t["huber_loss"] = [](Call& c) {
        Builder& b = c.b;
        const double delta = c.number("delta", 1);
        const int d = b.call("abs", b.call("sub", c.real(0), c.real(1)));
        return averaged(c, b.where(b.call("le", d, delta), b.call("mul", 0.5, b.call("mul", d, d)),
                                   b.call("mul", delta, b.call("sub", d, 0.5 * delta))));
    };
    t["kl_div"] = [](Call& c) {
        Builder& b = c.b;
        const int x = c.real(0), y = c.real(1);
        // 0 log 0 is 0.
        const int own =
            b.where(b.call("gt", y, 0.0), b.call("mul", y, b.call("log", b.where(b.call("gt", y, 0.0), y, b.number(1)))), b.number(0));
        return averaged(c, b.call("sub", own, b.call("mul", y, x)));
    };
    t["cross_entropy"] = cross_entropy;
}

}  // namespace

void add_folds(Operators& t) {
    const std::pair<const char*, const char*> plain[] = {{"sum", "sum"}, {"amax", "max"}, {"amin", "min"}, {"prod", "prod"}};
    for (const auto& [op, fn] : plain) {
        t[op] = [fn = std::string(fn)](Call& c) {
            if (c.b.at(c.in(0)).dtype[0] == 'i')
                return c.fail("a fold of integers, which f32 does not hold", "`cast` them to f32 where they are below 2^24");
            const int x = c.real(0);
            const Shape axes = c.axes("dims", c.b.shape(x).size());
            return finish(c, fold(c.b, fn, x, axes), axes);
        };
    }
    t["mean"] = [](Call& c) {
        const int x = c.real(0);
        const Shape axes = c.axes("dims", c.b.shape(x).size());
        return finish(c, c.b.call("div", fold(c.b, "sum", x, axes), extent(c.b, x, axes)), axes);
    };
    t["var"] = [](Call& c) {
        Builder& b = c.b;
        const int x = c.real(0);
        const Shape axes = c.axes("dims", b.shape(x).size());
        const int d = b.call("sub", x, mean(b, x, axes));
        const double n = extent(b, x, axes) - c.number("correction", 1);
        if (!(n > 0)) return c.fail("a variance of too few elements");
        return finish(c, b.call("div", b.reduce("sum", b.call("mul", d, d), axes), n), axes);
    };
    t["logsumexp"] = [](Call& c) {
        const int x = c.real(0);
        const Shape axes = c.axes("dims", c.b.shape(x).size());
        return finish(c, logsumexp(c.b, x, axes), axes);
    };
    t["softmax"] = [](Call& c) {
        Builder& b = c.b;
        const int x = c.real(0);
        const Shape axes = {c.axis("dim", b.shape(x).size(), -1)};
        if (c.failed) return x;
        const int e = b.call("exp", b.call("sub", x, b.reduce("max", x, axes)));
        return b.call("div", e, b.reduce("sum", e, axes));
    };
    t["log_softmax"] = [](Call& c) {
        const int x = c.real(0);
        const Shape axes = {c.axis("dim", c.b.shape(x).size(), -1)};
        return c.failed ? x : c.b.call("sub", x, logsumexp(c.b, x, axes));
    };
    t["norm"] = norm;
    t["batch_norm"] = batch_norm;
    t["group_norm"] = [](Call& c) { return group_norm(c, c.integer("groups", 1)); };
    t["instance_norm"] = [](Call& c) {
        const Shape& s = c.b.shape(c.in(0));
        return s.size() < 2 ? c.fail("takes a tensor of two dimensions or more") : group_norm(c, s[1]);
    };
    t["layer_norm"] = [](Call& c) { return layer_norm(c, true); };
    t["rms_norm"] = [](Call& c) { return layer_norm(c, false); };
    t["cumsum"] = [](Call& c) { return scan(c, "sum"); };
    t["cumprod"] = [](Call& c) { return scan(c, "prod"); };
    t["argmax"] = [](Call& c) { return arg(c, "max"); };
    t["argmin"] = [](Call& c) { return arg(c, "min"); };
    add_losses(t);
}

}  // namespace tw::graph
