#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/compose_node.h"

namespace tw::graph {

std::optional<std::string> NodeText::activation(const std::string& x) {
    const std::string &op = n.op, zero = "0.0";
    const auto elu = [&](double alpha, double scale) {
        return fmt::format("{} * (maximum({}, 0.0) + {} * (exp(minimum({}, 0.0)) - 1))", literal(scale), x, literal(alpha), x);
    };
    const auto bounded = [&](const std::string& y, double low, double high) {
        return fmt::format("minimum(maximum({}, {}), {})", y, literal(low), literal(high));
    };
    const auto softplus = [](const std::string& y) { return fmt::format("(maximum({0}, 0.0) + log(1 + exp(-abs({0}))))", y); };
    if (op == "relu") return fmt::format("maximum({}, {})", x, n.dtype[0] == 'i' ? "0" : "0.0");
    if (op == "silu") return fmt::format("{0} * sigmoid({0})", x);
    if (op == "mish") return fmt::format("{} * tanh({})", x, softplus(x));
    if (op == "selu") return elu(1.6732632423543772, 1.0507009873554805);
    if (op == "elu") return elu(number("alpha", 1), number("scale", 1));
    if (op == "gelu") return fmt::format("{}({})", flag("tanh") ? "gelu_tanh" : "gelu", x);
    if (op == "hardsigmoid") return bounded(fmt::format("({} + 3.0)", x), 0, 6) + " / 6.0";
    if (op == "hardswish") return fmt::format("{} * {} / 6.0", x, bounded(fmt::format("({} + 3.0)", x), 0, 6));
    if (op == "hardtanh") return bounded(x, number("min", -1), number("max", 1));
    if (op == "softplus") {
        const double beta = number("beta", 1);
        return beta == 1 ? softplus(x) : fmt::format("{} / {}", softplus(fmt::format("({} * {})", x, literal(beta))), literal(beta));
    }
    if (op == "leaky_relu") {  // above 0 the larger one is x, below it the smaller
        const double slope = number("negative_slope", 0.01);
        if (slope > 0 && slope <= 1) return fmt::format("maximum({0}, {0} * {1})", x, literal(slope));
        if (slope > 1) return fmt::format("minimum({0}, {0} * {1})", x, literal(slope));
        return fmt::format("where({0} > 0, {0}, {0} * {1})", x, literal(slope));
    }
    if (op == "clamp") {
        std::string y = x;
        if (n.attributes.contains("min")) y = fmt::format("maximum({}, {})", y, literal(number("min", 0)));
        if (n.attributes.contains("max")) y = fmt::format("minimum({}, {})", y, literal(number("max", 0)));
        return y;
    }
    return std::nullopt;
}

// Operations on integers that are not computed in f32.
bool NodeText::in_whole_numbers() const {
    static const std::set<std::string> compares = {"lt", "le", "gt", "ge", "eq", "ne"};
    static const std::set<std::string> known = {"add", "sub", "mul", "minimum", "maximum", "where", "relu", "floor_divide", "remainder"};
    if (!compares.contains(n.op) && (!known.contains(n.op) || n.dtype[0] != 'i')) return false;
    bool any = false;
    for (std::size_t k = n.op == "where" ? 1 : 0; k < n.in.size(); ++k) {
        if (n.in[k].node >= 0 ? dtype(k)[0] != 'i' : n.in[k].number != std::floor(n.in[k].number) || std::abs(n.in[k].number) > 1e15)
            return false;
        any = any || n.in[k].node >= 0;
    }
    return any;
}

std::optional<std::string> NodeText::pointwise() {
    static const std::map<std::string, std::string> two = {{"add", "({} + {})"},
                                                           {"sub", "({} - {})"},
                                                           {"mul", "({} * {})"},
                                                           {"div", "({} / {})"},
                                                           {"minimum", "minimum({}, {})"},
                                                           {"maximum", "maximum({}, {})"},
                                                           {"lt", "({} < {})"},
                                                           {"le", "({} <= {})"},
                                                           {"gt", "({} > {})"},
                                                           {"ge", "({} >= {})"},
                                                           {"eq", "({} == {})"},
                                                           {"ne", "({} != {})"},
                                                           {"floor_divide", "({} // {})"},
                                                           {"remainder", "({} % {})"}};
    static const std::map<std::string, std::string> one = {
        {"exp", "exp({0})"},   {"log", "log({0})"},         {"sqrt", "sqrt({0})"},         {"rsqrt", "rsqrt({0})"},
        {"tanh", "tanh({0})"}, {"sigmoid", "sigmoid({0})"}, {"erf", "erf({0})"},           {"abs", "abs({0})"},
        {"neg", "(-{0})"},     {"floor", "floor({0})"},     {"ceil", "ceil({0})"},         {"sin", "sin({0})"},
        {"cos", "cos({0})"},   {"log1p", "log(1 + {0})"},   {"reciprocal", "(1.0 / {0})"}, {"square", "({0} * {0})"}};
    const Indices i = own();
    if (n.op == "full") return literal(number("value", 0));
    if (n.in.empty()) return std::nullopt;
    if (n.op == "uniform") {
        std::string number = "0";
        std::int64_t step = count_of(n.shape);
        for (std::size_t d = 0; d < i.size(); ++d) {
            step /= n.shape[d];
            if (n.shape[d] > 1) number += fmt::format(" + {} * {}", i[d], step);
        }
        const auto word = [&](int k) { return raw(0, {std::to_string(k)}); };
        return fmt::format("uniform(philox({}, {}, ({number}) // 4, {}, {}, {}, ({number}) % 4))", word(0), word(1),
                           integer_in(n.attributes, "stream", 0, 0, (std::int64_t{1} << 31) - 1), word(2), word(3),
                           fmt::arg("number", number));
    }
    if (n.op == "copy") return raw(0, broadcast(0, i));
    const bool whole = in_whole_numbers();
    const auto x = [&](std::size_t k) {
        if (!whole || dtype(k) == "bool") return real(k, broadcast(k, i));
        return n.in[k].node < 0 ? fmt::format("({})", static_cast<std::int64_t>(n.in[k].number)) : raw(k, broadcast(k, i));
    };
    if (n.op == "cast") {
        if (n.dtype == "bool") return truth(0, broadcast(0, i));
        return n.dtype == dtype(0)                     ? raw(0, broadcast(0, i))
               : n.dtype == "f32" || n.dtype[0] != 'i' ? x(0)
               : dtype(0)[0] == 'i'                    ? fmt::format("{}({})", n.dtype, raw(0, broadcast(0, i)))
                                                       : fmt::format("{}({})", n.dtype, x(0));
    }
    if (const auto f = one.find(n.op); f != one.end()) return fmt::format(fmt::runtime(f->second), x(0));
    if (auto y = activation(x(0))) return y;
    if (const auto f = two.find(n.op); f != two.end())  // integers keep the bits of their type
        return (whole && (n.op == "add" || n.op == "sub" || n.op == "mul") ? n.dtype : "") +
               fmt::format(fmt::runtime(f->second), x(0), x(1));
    if (n.op == "logical_not") return fmt::format("(not {})", truth(0, broadcast(0, i)));
    if (n.op == "logical_and" || n.op == "logical_or")
        return fmt::format("({} {} {})", truth(0, broadcast(0, i)), n.op.substr(8), truth(1, broadcast(1, i)));
    if (n.op == "where") return fmt::format("where({}, {}, {})", truth(0, broadcast(0, i)), x(1), x(2));
    if (n.op == "pow") {
        const double e = n.in[1].node < 0 ? n.in[1].number : 0;
        if (e == 2) return fmt::format("({0} * {0})", x(0));
        if (e == 3) return fmt::format("({0} * {0} * {0})", x(0));
        if (e == 0.5) return fmt::format("sqrt({})", x(0));
        if (e == 1) return x(0);
        if (e == -1) return fmt::format("(1.0 / {})", x(0));
        return fmt::format("pow({}, {})", x(0), x(1));
    }
    if (n.op == "triu" || n.op == "tril") {
        const auto k = static_cast<std::int64_t>(number("diagonal", 0));
        const std::size_t r = i.size();
        if (r < 2) return std::nullopt;
        return fmt::format("where({} - {} {} {}, {}, 0.0)", i[r - 1], i[r - 2], n.op == "triu" ? ">=" : "<=", k, x(0));
    }
    return std::nullopt;
}

std::optional<std::string> NodeText::views() {
    const Indices i = own();
    if (n.op == "reshape") return raw(0, reshaped(shape(0), n.shape, i));
    if (n.op == "expand") return raw(0, broadcast(0, i));
    if (n.op == "cat" || n.op == "index_select" || n.op == "gather") return places();
    if (n.op != "permute" && n.op != "slice") return std::nullopt;
    const std::size_t rank = n.shape.size();
    const Shape how = list(n.op == "slice" ? "starts" : "order", rank, 0);
    Indices from(rank);
    for (std::size_t d = 0; d < rank; ++d) {
        if (n.op == "slice") from[d] = fmt::format("{} + {}", i[d], how[d]);
        else from[static_cast<std::size_t>(how[d] < 0 ? how[d] + static_cast<std::int64_t>(rank) : how[d])] = i[d];
    }
    return raw(0, from);
}

std::optional<std::string> NodeText::places() {
    const Indices i = own();
    const auto rank = static_cast<std::int64_t>(shape(0).size());
    const std::int64_t dim = integer_in(n.attributes, "dim", 0, -8, 8);
    const std::size_t a = zu(dim < 0 ? dim + rank : dim);
    if (n.op == "cat") {
        std::string text, end;
        std::int64_t start = 0;
        for (std::size_t k = 0; k < n.in.size(); ++k) {
            Indices from = i;
            if (start > 0) from[a] = fmt::format("{} - {}", i[a], start);
            if (shape(k)[a] == 1) from[a] = "0";
            start += shape(k)[a];
            const std::string x = dtype(k) == n.dtype && n.dtype != "bool" ? raw(k, from)
                                  : n.dtype == "bool"                      ? truth(k, from)
                                                                           : real(k, from);
            if (k + 1 == n.in.size()) {
                text += x;
            } else {
                text += fmt::format("where({} < {}, {}, ", i[a], start, x);
                end += ")";
            }
        }
        return text + end;
    }
    const std::size_t many = n.op == "gather" ? 1 : shape(1).size();
    const auto begin = i.begin() + static_cast<std::ptrdiff_t>(a), past = begin + static_cast<std::ptrdiff_t>(many);
    Indices from(i.begin(), begin);
    Indices which = n.op == "gather" ? i : Indices(begin, past);
    from.push_back(raw(1, which));
    from.insert(from.end(), past, i.end());
    if (n.in[1].node >= 0) {
        const std::int64_t extent = shape(0)[a];
        const auto known = out.range.find(n.in[1].node);
        out.range[n.in[1].node] = known == out.range.end() ? extent : std::min(known->second, extent);
    }
    return raw(0, from);
}

}  // namespace tw::graph
