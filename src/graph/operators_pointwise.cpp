#include <fmt/format.h>

#include <cmath>

#include "graph/operators.h"

namespace tw::graph {

namespace {

int softplus(Builder& b, int x) {
    // max(x, 0) + log(1 + e^-|x|): no exponential of a large number.
    // Powers of two and binary logarithms are single instructions; the power is at most 1, so its rounding is small in the sum.
    const int power = b.call("exp2", b.call("mul", b.call("neg", b.call("abs", x)), 1.4426950408889634));
    return b.call("add", b.call("max", x, 0.0), b.call("mul", b.call("log2", b.call("add", 1.0, power)), 0.6931471805599453));
}

int clamp(Builder& b, int x, double low, double high) { return b.call("at_most", b.call("at_least", x, low), high); }

// scale * (x above 0, alpha * (e^x - 1) below): without a choice, which a kernel could not make of a value that a product has rounded.
int elu_of(Builder& b, int x, double alpha, double scale) {
    const int below = b.call("mul", alpha, b.call("sub", b.call("exp", b.call("at_most", x, 0.0)), 1.0));
    const int y = b.call("add", b.call("at_least", x, 0.0), below);
    return scale == 1 ? y : b.call("mul", scale, y);
}

int gelu(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0);
    if (c.flag("tanh", false)) {
        const int cube = b.call("mul", b.call("mul", x, x), x);
        const int inner = b.call("mul", 0.7978845608028654, b.call("add", x, b.call("mul", 0.044715, cube)));
        return b.call("mul", b.call("mul", 0.5, x), b.call("add", 1.0, b.call("tanh", inner)));
    }
    return b.call("mul", b.call("mul", 0.5, x), b.call("add", 1.0, b.call("erf", b.call("mul", x, 0.7071067811865476))));
}

int elu(Call& c) { return elu_of(c.b, c.real(0), c.number("alpha", 1.0), c.number("scale", 1.0)); }

int power(Call& c) {
    Builder& b = c.b;
    const int x = c.real(0), y = c.real(1);
    if (b.at(y).kind == Kind::number) {
        const double e = b.at(y).value;
        if (e == 2) return b.call("mul", x, x);
        if (e == 3) return b.call("mul", b.call("mul", x, x), x);
        if (e == 0.5) return b.call("sqrt", x);
        if (e == 1) return x;
        if (e == -1) return b.call("div", 1.0, x);
    }
    return b.call("pow", x, y);
}

bool is_integer(const Builder& b, int id) { return b.at(id).kind != Kind::number && b.at(id).dtype[0] == 'i'; }

// Operands that are all integers, or whole numbers beside some: of the wider type. Empty: others.
std::vector<int> integers_of(Call& c, std::vector<int> in) {
    std::string type;
    for (const int id : in) {
        if (is_integer(c.b, id)) type = type == "i64" ? type : c.b.at(id).dtype;
        else if (c.b.at(id).kind != Kind::number || c.b.at(id).value != std::floor(c.b.at(id).value) || std::abs(c.b.at(id).value) > 1e15)
            return {};
    }
    if (type.empty()) return {};
    if (c.node.dtype[0] == 'i') type = c.node.dtype;
    for (int& id : in)
        if (is_integer(c.b, id)) id = c.b.cast(id, type);
    return in;
}

// Integers stay integers, in comparisons too: f32 would not hold them all.
int two_of(Call& c, const std::string& fn, bool compares) {
    if (compares || c.node.dtype[0] == 'i')
        if (const auto in = integers_of(c, {c.in(0), c.in(1)}); !in.empty()) {
            const int id = c.b.call(fn, in);
            if (!compares) c.b.out.list[static_cast<std::size_t>(id)].dtype = c.node.dtype;
            return id;
        }
    return c.b.call(fn, c.real(0), c.real(1));
}

// Rounded down, and what is left then, of integers by a positive number.
int divided(Call& c, const char* fn) {
    const auto in = integers_of(c, {c.in(0), c.in(1)});
    if (in.empty() || c.b.at(in[1]).kind != Kind::number || c.b.at(in[1]).value < 1 || c.node.dtype[0] != 'i')
        return c.fail("takes integers and a whole number above 0");
    return c.b.call_as(fn, in, c.node.dtype);
}

// Uniform numbers from 0 to 1, made of four words that are drawn anew for each call: the key, and the upper half of the counter. Below it
// are the element's number, by fours, and the stream, which is another one for each such node.
int uniform(Call& c) {
    Builder& b = c.b;
    const int words = c.in(0);
    if (c.failed || b.shape(words) != Shape{4} || b.at(words).dtype != "i32") return c.fail("takes four words of i32");
    if (count_of(c.node.shape) >= std::int64_t{1} << 31) return c.fail("has 2^31 elements or more");
    const std::size_t rank = std::max<std::size_t>(1, c.node.shape.size());
    Shape row(rank, 1), starts(rank, 0), shape = c.node.shape;
    row.back() = 4;
    if (shape.empty()) shape = {1};
    const int line = b.reshape(words, row);
    Primitive p;
    p.kind = Kind::pointwise;
    p.fn = "uniform";
    p.shape = shape;
    p.value = static_cast<double>(std::max<std::int64_t>(0, c.integer("stream", 0)));
    for (std::int64_t word = 0; word < 4; ++word) {
        starts.back() = word;
        p.in.push_back(b.slice(line, starts, Shape(rank, 1)));
    }
    const int id = b.add(std::move(p));
    return b.reshape(id, c.node.shape);
}

void add_activations(Operators& t) {
    t["relu"] = [](Call& c) {
        if (is_integer(c.b, c.in(0))) return c.b.call_as("max", {c.in(0), c.b.number(0)}, c.node.dtype);
        return c.b.call("max", c.real(0), 0.0);
    };
    t["leaky_relu"] = [](Call& c) {
        const int x = c.real(0);
        const double slope = c.number("negative_slope", 0.01);
        const int below = c.b.call("mul", x, slope);
        if (slope > 0 && slope <= 1) return c.b.call("at_least", x, below);
        if (slope > 1) return c.b.call("at_most", x, below);
        return c.b.where(c.b.call("gt", x, 0.0), x, below);
    };
    t["gelu"] = gelu;
    t["elu"] = elu;
    t["selu"] = [](Call& c) { return elu_of(c.b, c.real(0), 1.6732632423543772, 1.0507009873554805); };
    t["silu"] = [](Call& c) {
        const int x = c.real(0);
        return c.b.call("mul", x, c.b.call("sigmoid", x));
    };
    t["softplus"] = [](Call& c) {
        const double beta = c.number("beta", 1.0);
        if (beta == 1.0) return softplus(c.b, c.real(0));
        return c.b.call("div", softplus(c.b, c.b.call("mul", c.real(0), beta)), beta);
    };
    t["mish"] = [](Call& c) {
        const int x = c.real(0);
        return c.b.call("mul", x, c.b.call("tanh", softplus(c.b, x)));
    };
    t["hardtanh"] = [](Call& c) { return clamp(c.b, c.real(0), c.number("min", -1.0), c.number("max", 1.0)); };
    t["hardsigmoid"] = [](Call& c) { return c.b.call("div", clamp(c.b, c.b.call("add", c.real(0), 3.0), 0.0, 6.0), 6.0); };
    t["hardswish"] = [](Call& c) {
        const int x = c.real(0);
        return c.b.call("div", c.b.call("mul", x, clamp(c.b, c.b.call("add", x, 3.0), 0.0, 6.0)), 6.0);
    };
    t["clamp"] = [](Call& c) {
        int x = c.real(0);
        for (const char* key : {"min", "max"}) {
            if (!c.node.attributes.contains(key)) continue;
            x = c.b.call(key[1] == 'i' ? "at_least" : "at_most", x, c.number(key, 0));
        }
        return x;
    };
}

}  // namespace

void add_pointwise(Operators& t) {
    for (const char* fn : {"exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "abs", "neg", "floor", "ceil", "sin", "cos"})
        t[fn] = [fn](Call& c) { return c.b.call(fn, c.real(0)); };
    const std::pair<const char*, const char*> two[] = {{"add", "add"},     {"sub", "sub"},     {"mul", "mul"}, {"div", "div"},
                                                       {"minimum", "min"}, {"maximum", "max"}, {"lt", "lt"},   {"le", "le"},
                                                       {"gt", "gt"},       {"ge", "ge"},       {"eq", "eq"},   {"ne", "ne"}};
    for (const auto& [op, fn] : two) {
        const std::string name = op;
        if (name == "div") t[op] = [](Call& c) { return c.b.call("div", c.real(0), c.real(1)); };
        else t[op] = [fn = std::string(fn), compares = name.size() == 2](Call& c) { return two_of(c, fn, compares); };
    }
    t["floor_divide"] = [](Call& c) { return divided(c, "floor_div"); };
    t["remainder"] = [](Call& c) { return divided(c, "mod"); };
    t["pow"] = power;
    t["reciprocal"] = [](Call& c) { return c.b.call("div", 1.0, c.real(0)); };
    t["square"] = [](Call& c) {
        const int x = c.real(0);
        return c.b.call("mul", x, x);
    };
    t["log1p"] = [](Call& c) { return c.b.call("log", c.b.call("add", 1.0, c.real(0))); };
    t["logical_and"] = [](Call& c) { return c.b.call("and", c.b.cast(c.in(0), "bool"), c.b.cast(c.in(1), "bool")); };
    t["logical_or"] = [](Call& c) { return c.b.call("or", c.b.cast(c.in(0), "bool"), c.b.cast(c.in(1), "bool")); };
    t["logical_not"] = [](Call& c) { return c.b.call("not", c.b.cast(c.in(0), "bool")); };
    t["where"] = [](Call& c) {
        if (c.node.dtype[0] == 'i')
            if (const auto in = integers_of(c, {c.in(1), c.in(2)}); !in.empty())
                return c.b.call_as("where", {c.b.cast(c.in(0), "bool"), in[0], in[1]}, c.node.dtype);
        return c.b.where(c.b.cast(c.in(0), "bool"), c.real(1), c.real(2));
    };
    t["copy"] = [](Call& c) { return c.in(0); };
    t["cast"] = [](Call& c) { return c.b.cast(c.in(0), c.node.dtype); };
    t["full"] = [](Call& c) { return c.b.broadcast(c.b.number(c.number("value", 0)), c.node.shape); };
    for (const char* fn : {"triu", "tril"}) {
        t[fn] = [fn](Call& c) {
            const int x = c.real(0);
            if (c.b.shape(x).size() < 2) return c.fail("a triangle is of two dimensions or more");
            const int id = c.b.call(fn, x);
            c.b.out.list[static_cast<std::size_t>(id)].value = static_cast<double>(c.integer("diagonal", 0));
            return id;
        };
    }
    t["uniform"] = uniform;
    add_activations(t);
}

}  // namespace tw::graph
