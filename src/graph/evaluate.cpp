#include "graph/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/input.h"
#include "ir/element_math.h"

namespace tw::graph {

namespace {

using Data = std::vector<double>;

struct Array {
    Shape shape;
    Data data;
};

// Calls `f` with every index of a shape, in memory order.
void each_index(const Shape& shape, const std::function<void(const Shape&)>& f) {
    Shape index(shape.size(), 0);
    const std::int64_t n = count_of(shape);
    for (std::int64_t i = 0; i < n; ++i) {
        f(index);
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++index[d] < shape[d]) break;
            index[d] = 0;
        }
    }
}

std::size_t flat(const Shape& shape, const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return static_cast<std::size_t>(at);
}

// The element that broadcasting shows at `index` of a longer shape.
double seen(const Array& a, const Shape& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < a.shape.size(); ++d) {
        const std::int64_t i = index[index.size() - a.shape.size() + d];
        at = at * a.shape[d] + (a.shape[d] == 1 ? 0 : i);
    }
    return a.data[static_cast<std::size_t>(at)];
}

class Evaluator {
public:
    Evaluator(const Graph& graph, const Node& node, std::vector<Array> in) : graph_(graph), n_(node), in_(std::move(in)) {
        out_.shape = node.shape;
    }

    bool run() {
        out_.data.assign(static_cast<std::size_t>(count_of(n_.shape)), 0.0);
        return pointwise() || views() || folds() || windows() || products() || losses();
    }
    Array take() { return std::move(out_); }

private:
    double number(const char* key, double otherwise) const { return real_in(n_.attributes, key, otherwise); }
    bool flag(const char* key) const { return flag_in(n_.attributes, key); }
    Shape list(const char* key, std::size_t count, std::int64_t otherwise) const {
        if (!n_.attributes.contains(key)) return Shape(count, otherwise);
        const auto& v = n_.attributes.at(key);
        Shape out = v.is_array() ? v.get<Shape>() : Shape{v.get<std::int64_t>()};
        if (out.size() == 1) out.resize(count, out[0]);
        return out;
    }
    std::int64_t axis() const {
        const auto rank = static_cast<std::int64_t>(in_[0].shape.size());
        const std::int64_t a = integer_in(n_.attributes, "dim", -1, -8, 8);
        return a < 0 ? a + rank : a;
    }

    using One = std::function<double(double)>;
    using Two = std::function<double(double, double)>;

    bool pointwise() {
        static const std::map<std::string, One> one = {
            {"exp", [](double x) { return std::exp(x); }},
            {"log", [](double x) { return std::log(x); }},
            {"sqrt", [](double x) { return std::sqrt(x); }},
            {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
            {"tanh", [](double x) { return std::tanh(x); }},
            {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
            {"erf", [](double x) { return std::erf(x); }},
            {"abs", [](double x) { return std::fabs(x); }},
            {"neg", [](double x) { return -x; }},
            {"floor", [](double x) { return std::floor(x); }},
            {"ceil", [](double x) { return std::ceil(x); }},
            {"sin", [](double x) { return std::sin(x); }},
            {"cos", [](double x) { return std::cos(x); }},
            {"relu", [](double x) { return x > 0 ? x : 0; }},
            {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
            {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
            {"hardsigmoid", [](double x) { return std::clamp((x + 3) / 6, 0.0, 1.0); }},
            {"hardswish", [](double x) { return x * std::clamp((x + 3) / 6, 0.0, 1.0); }},
            {"reciprocal", [](double x) { return 1 / x; }},
            {"square", [](double x) { return x * x; }},
            {"log1p", [](double x) { return std::log1p(x); }},
            {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
            {"copy", [](double x) { return x; }},
            {"cast", [](double x) { return x; }},
            {"selu", [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }}};
        static const std::map<std::string, Two> two = {{"add", [](double x, double y) { return x + y; }},
                                                       {"sub", [](double x, double y) { return x - y; }},
                                                       {"mul", [](double x, double y) { return x * y; }},
                                                       {"div", [](double x, double y) { return x / y; }},
                                                       {"minimum", [](double x, double y) { return std::min(x, y); }},
                                                       {"maximum", [](double x, double y) { return std::max(x, y); }},
                                                       {"pow", [](double x, double y) { return std::pow(x, y); }},
                                                       {"floor_divide", [](double x, double y) { return std::floor(x / y); }},
                                                       {"remainder", [](double x, double y) { return x - std::floor(x / y) * y; }},
                                                       {"lt", [](double x, double y) { return x < y; }},
                                                       {"le", [](double x, double y) { return x <= y; }},
                                                       {"gt", [](double x, double y) { return x > y; }},
                                                       {"ge", [](double x, double y) { return x >= y; }},
                                                       {"eq", [](double x, double y) { return x == y; }},
                                                       {"ne", [](double x, double y) { return x != y; }},
                                                       {"logical_and", [](double x, double y) { return x != 0 && y != 0; }},
                                                       {"logical_or", [](double x, double y) { return x != 0 || y != 0; }}};
        One f;
        if (const auto found = one.find(n_.op); found != one.end()) f = found->second;
        if (n_.op == "leaky_relu") f = [s = number("negative_slope", 0.01)](double x) { return x > 0 ? x : s * x; };
        if (n_.op == "elu") f = [a = number("alpha", 1), s = number("scale", 1)](double x) { return s * (x > 0 ? x : a * std::expm1(x)); };
        if (n_.op == "softplus") f = [b = number("beta", 1)](double x) { return std::log1p(std::exp(b * x)) / b; };
        if (n_.op == "hardtanh") f = [l = number("min", -1), h = number("max", 1)](double x) { return std::clamp(x, l, h); };
        if (n_.op == "gelu" && flag("tanh"))
            f = [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); };
        if (n_.op == "gelu" && !flag("tanh")) f = [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); };
        if (n_.op == "clamp")
            f = [l = number("min", -std::numeric_limits<double>::infinity()),
                 h = number("max", std::numeric_limits<double>::infinity())](double x) { return std::min(std::max(x, l), h); };
        std::size_t i = 0;
        if (f) {
            for (double& y : out_.data) y = f(in_[0].data[i++]);
            return true;
        }
        if (const auto found = two.find(n_.op); found != two.end()) {
            each_index(n_.shape, [&](const Shape& at) { out_.data[i++] = found->second(seen(in_[0], at), seen(in_[1], at)); });
            return true;
        }
        if (n_.op == "where")
            each_index(n_.shape, [&](const Shape& at) { out_.data[i++] = seen(in_[0], at) != 0 ? seen(in_[1], at) : seen(in_[2], at); });
        else if (n_.op == "full") std::fill(out_.data.begin(), out_.data.end(), number("value", 0));
        else if (n_.op == "uniform") {
            const auto word = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<std::int64_t>(in_[0].data[k])); };
            const auto stream = static_cast<std::uint32_t>(integer_in(n_.attributes, "stream", 0, 0, (std::int64_t{1} << 31) - 1));
            for (std::uint32_t at = 0; at < out_.data.size(); ++at)
                out_.data[at] = std::ldexp(ir::philox({word(0), word(1)}, {at / 4, stream, word(2), word(3)}, at % 4) >> 8, -24);
        } else if (n_.op == "triu" || n_.op == "tril") {
            const auto k = static_cast<std::int64_t>(number("diagonal", 0));
            each_index(n_.shape, [&](const Shape& at) {
                const std::int64_t d = at[at.size() - 1] - at[at.size() - 2];
                out_.data[i] = (n_.op == "triu" ? d >= k : d <= k) ? in_[0].data[i] : 0;
                ++i;
            });
        } else return false;
        return true;
    }

    bool views() {
        std::size_t i = 0;
        if (n_.op == "reshape") out_.data = in_[0].data;
        else if (n_.op == "expand") each_index(n_.shape, [&](const Shape& at) { out_.data[i++] = seen(in_[0], at); });
        else if (n_.op == "permute" || n_.op == "slice") {
            const std::size_t rank = n_.shape.size();
            const Shape how = list(n_.op == "slice" ? "starts" : "order", rank, 0);
            each_index(n_.shape, [&](const Shape& at) {
                Shape from(rank);
                for (std::size_t d = 0; d < rank; ++d) {
                    if (n_.op == "slice") from[d] = at[d] + how[d];
                    else from[static_cast<std::size_t>(how[d] < 0 ? how[d] + static_cast<std::int64_t>(rank) : how[d])] = at[d];
                }
                out_.data[i++] = in_[0].data[flat(in_[0].shape, from)];
            });
        } else return places();
        return true;
    }

    bool places() {
        std::size_t i = 0;
        if (n_.op == "cat") {
            const auto rank = static_cast<std::int64_t>(n_.shape.size());
            const std::int64_t dim = integer_in(n_.attributes, "dim", 0, -8, 8);
            const auto a = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
            each_index(n_.shape, [&](const Shape& at) {
                Shape from = at;
                std::size_t part = 0;
                while (from[a] >= in_[part].shape[a]) from[a] -= in_[part++].shape[a];
                out_.data[i++] = in_[part].data[flat(in_[part].shape, from)];
            });
            return true;
        }
        if (n_.op != "index_select" && n_.op != "gather") return false;
        const auto rank = static_cast<std::int64_t>(in_[0].shape.size());
        const std::int64_t dim = integer_in(n_.attributes, "dim", 0, -8, 8);
        const auto a = static_cast<std::ptrdiff_t>(dim < 0 ? dim + rank : dim), many = static_cast<std::ptrdiff_t>(in_[1].shape.size());
        each_index(n_.shape, [&](const Shape& at) {
            Shape from = at;
            if (n_.op == "gather") {
                from[static_cast<std::size_t>(a)] = static_cast<std::int64_t>(in_[1].data[flat(in_[1].shape, at)]);
            } else {
                const Shape which(at.begin() + a, at.begin() + a + many);
                from.erase(from.begin() + a, from.begin() + a + many);
                from.insert(from.begin() + a, static_cast<std::int64_t>(in_[1].data[flat(in_[1].shape, which)]));
            }
            out_.data[i++] = in_[0].data[flat(in_[0].shape, from)];
        });
        return true;
    }

    // Lines of the elements that are folded into one place, by the place's number.
    std::vector<Data> lines(const std::vector<bool>& folded, std::vector<std::size_t>& place) const {
        Shape kept = in_[0].shape;
        for (std::size_t d = 0; d < kept.size(); ++d)
            if (folded[d]) kept[d] = 1;
        std::vector<Data> out(static_cast<std::size_t>(count_of(kept)));
        std::size_t i = 0;
        each_index(in_[0].shape, [&](const Shape& at) {
            Shape to = at;
            for (std::size_t d = 0; d < to.size(); ++d)
                if (folded[d]) to[d] = 0;
            const std::size_t p = flat(kept, to);
            place.push_back(p);
            out[p].push_back(in_[0].data[i++]);
        });
        return out;
    }

    static double folded(const std::string& op, const Data& line, const Evaluator& e) {
        double sum = 0, product = 1, top = -INFINITY, low = INFINITY, squares = 0, sizes = 0;
        for (const double x : line) {
            sum += x;
            product *= x;
            top = std::max(top, x);
            low = std::min(low, x);
            squares += x * x;
            sizes += std::fabs(x);
        }
        const auto n = static_cast<double>(line.size());
        if (op == "sum") return sum;
        if (op == "mean") return sum / n;
        if (op == "prod") return product;
        if (op == "amax") return top;
        if (op == "amin") return low;
        if (op == "norm") return e.number("p", 2) == 1 ? sizes : std::sqrt(squares);
        double exps = 0, spread = 0;
        for (const double x : line) {
            exps += std::exp(x - top);
            spread += (x - sum / n) * (x - sum / n);
        }
        return op == "logsumexp" ? top + std::log(exps) : spread / (n - e.number("correction", 1));
    }

    // Every line made anew by `f`, in place.
    void by_lines(const std::vector<bool>& axes, const std::function<void(Data&)>& f) {
        std::vector<std::size_t> place;
        std::vector<Data> all = lines(axes, place);
        for (Data& line : all) f(line);
        std::vector<std::size_t> next(all.size(), 0);
        for (std::size_t i = 0; i < place.size(); ++i) out_.data[i] = all[place[i]][next[place[i]]++];
    }

    static void standard(Data& line, double eps, bool centred) {
        double mean = 0, variance = 0;
        for (const double x : line) mean += centred ? x / static_cast<double>(line.size()) : 0;
        for (const double x : line) variance += (x - mean) * (x - mean) / static_cast<double>(line.size());
        for (double& x : line) x = (x - mean) / std::sqrt(variance + eps);
    }

    bool norms() {
        const double eps = number("eps", 1e-5);
        const std::size_t rank = in_[0].shape.size();
        std::vector<bool> axes(rank, true);
        if (n_.op == "layer_norm" || n_.op == "rms_norm") {
            const auto dims = static_cast<std::size_t>(number("dims", 1));
            for (std::size_t d = 0; d < rank; ++d) axes[d] = d + dims >= rank;
            by_lines(axes, [&](Data& l) { standard(l, eps, n_.op == "layer_norm"); });
            std::size_t i = 0;
            each_index(n_.shape, [&](const Shape& at) {
                if (in_.size() > 1) out_.data[i] *= seen(in_[1], at);
                if (in_.size() > 2) out_.data[i] += seen(in_[2], at);
                ++i;
            });
            return true;
        }
        if (n_.op == "batch_norm") {
            axes[1] = false;
            by_lines(axes, [&](Data& l) { standard(l, eps, true); });
        } else if (n_.op == "group_norm" || n_.op == "instance_norm") {
            const std::int64_t c = in_[0].shape[1], groups = n_.op == "instance_norm" ? c : static_cast<std::int64_t>(number("groups", 1));
            in_[0].shape = {in_[0].shape[0] * groups, count_of(in_[0].shape) / (in_[0].shape[0] * groups)};
            by_lines({false, true}, [&](Data& l) { standard(l, eps, true); });
        } else return false;
        std::size_t i = 0;
        each_index(n_.shape, [&](const Shape& at) {
            const auto c = static_cast<std::size_t>(at[1]);
            if (in_.size() > 1) out_.data[i] *= in_[1].data[c];
            if (in_.size() > 2) out_.data[i] += in_[2].data[c];
            ++i;
        });
        return true;
    }

    bool folds() {
        if (in_.empty()) return false;
        const std::size_t rank = in_[0].shape.size();
        std::vector<bool> axes(rank, true);
        for (const char* op : {"sum", "mean", "prod", "amax", "amin", "norm", "logsumexp", "var"}) {
            if (n_.op != op) continue;
            if (n_.attributes.contains("dims") && !n_.attributes["dims"].empty()) {
                axes.assign(rank, false);
                for (const std::int64_t d : list("dims", n_.attributes["dims"].is_array() ? n_.attributes["dims"].size() : 1, 0))
                    axes[static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(rank) : d)] = true;
            }
            std::vector<std::size_t> place;
            std::size_t i = 0;
            for (const Data& line : lines(axes, place)) out_.data[i++] = folded(n_.op, line, *this);
            return true;
        }
        if (norms()) return true;
        if (n_.op == "argmax" || n_.op == "argmin") {
            if (n_.attributes.contains("dim")) {
                axes.assign(rank, false);
                axes[static_cast<std::size_t>(axis())] = true;
            }
            std::vector<std::size_t> place;
            std::size_t i = 0;
            for (const Data& line : lines(axes, place)) {
                const auto best =
                    n_.op == "argmax" ? std::max_element(line.begin(), line.end()) : std::min_element(line.begin(), line.end());
                out_.data[i++] = static_cast<double>(best - line.begin());
            }
            return true;
        }
        if (n_.op != "softmax" && n_.op != "log_softmax" && n_.op != "cumsum" && n_.op != "cumprod") return false;
        axes.assign(rank, false);
        axes[static_cast<std::size_t>(axis())] = true;
        by_lines(axes, [&](Data& line) {
            if (n_.op == "softmax" || n_.op == "log_softmax") {
                const double l = folded("logsumexp", line, *this);
                for (double& x : line) x = n_.op == "softmax" ? std::exp(x - l) : x - l;
                return;
            }
            if (flag("reverse")) std::reverse(line.begin(), line.end());
            double carry = n_.op == "cumprod" ? 1 : 0;
            for (double& x : line) {
                const double before = carry;
                carry = n_.op == "cumprod" ? carry * x : carry + x;
                x = flag("exclusive") ? before : carry;
            }
            if (flag("reverse")) std::reverse(line.begin(), line.end());
        });
        return true;
    }

    bool windows();
    bool products();
    bool losses();
    void convolve(const Array& x, const Array& w);

    const Graph& graph_;
    const Node& n_;
    std::vector<Array> in_;
    Array out_;
};

// Scatter for transposed, gather for others: both straight from the definition, over positions of all dimensions.
void Evaluator::convolve(const Array& x, const Array& w) {
    const std::size_t dims = x.shape.size() - 2;
    const Shape stride = list("stride", dims, 1), padding = list("padding", dims, 0), dilation = list("dilation", dims, 1);
    const std::int64_t groups = list("groups", 1, 1)[0];
    const bool transposed = flag("transposed");
    const std::int64_t in_channels = x.shape[1] / groups, out_channels = n_.shape[1] / groups;
    const Shape taps(w.shape.begin() + 2, w.shape.end());
    const Shape small(transposed ? x.shape.begin() + 2 : n_.shape.begin() + 2, transposed ? x.shape.end() : n_.shape.end());
    each_index(small, [&](const Shape& s) {
        each_index(taps, [&](const Shape& t) {
            Shape large(dims);
            for (std::size_t d = 0; d < dims; ++d) {
                large[d] = s[d] * stride[d] + t[d] * dilation[d] - padding[d];
                if (large[d] < 0 || large[d] >= (transposed ? n_.shape[d + 2] : x.shape[d + 2])) return;
            }
            for (std::int64_t b = 0; b < x.shape[0]; ++b)
                for (std::int64_t g = 0; g < groups; ++g)
                    for (std::int64_t o = 0; o < out_channels; ++o)
                        for (std::int64_t c = 0; c < in_channels; ++c) {
                            Shape xi = {b, g * in_channels + c},
                                  wi = transposed ? Shape{g * in_channels + c, o} : Shape{g * out_channels + o, c},
                                  yi = {b, g * out_channels + o};
                            const Shape& of_x = transposed ? s : large;
                            const Shape& of_y = transposed ? large : s;
                            xi.insert(xi.end(), of_x.begin(), of_x.end());
                            yi.insert(yi.end(), of_y.begin(), of_y.end());
                            wi.insert(wi.end(), t.begin(), t.end());
                            out_.data[flat(n_.shape, yi)] += x.data[flat(x.shape, xi)] * w.data[flat(w.shape, wi)];
                        }
        });
    });
}

bool Evaluator::windows() {
    if (n_.op == "conv") {
        convolve(in_[0], in_[1]);
        std::size_t i = 0;
        if (in_.size() > 2) each_index(n_.shape, [&](const Shape& at) { out_.data[i++] += in_[2].data[static_cast<std::size_t>(at[1])]; });
        return true;
    }
    const bool largest = n_.op == "max_pool", adaptive = n_.op == "adaptive_avg_pool";
    if (!largest && !adaptive && n_.op != "avg_pool") return false;
    const auto dims = static_cast<std::size_t>(number("dims", 2));
    const std::size_t rank = n_.shape.size(), first = rank - dims;
    Shape kernel = list("kernel", dims, 1), stride = list("stride", dims, 1);
    const Shape padding = list("padding", dims, 0), dilation = list("dilation", dims, 1);
    if (adaptive)
        for (std::size_t d = 0; d < dims; ++d) kernel[d] = stride[d] = in_[0].shape[first + d] / n_.shape[first + d];
    std::size_t i = 0;
    each_index(n_.shape, [&](const Shape& at) {
        double value = largest ? -INFINITY : 0;
        each_index(kernel, [&](const Shape& t) {
            Shape from = at;
            for (std::size_t d = 0; d < dims; ++d) {
                from[first + d] = at[first + d] * stride[d] + t[d] * dilation[d] - padding[d];
                if (from[first + d] < 0 || from[first + d] >= in_[0].shape[first + d]) return;
            }
            const double x = in_[0].data[flat(in_[0].shape, from)];
            value = largest ? std::max(value, x) : value + x / static_cast<double>(count_of(kernel));
        });
        out_.data[i++] = value;
    });
    return true;
}

bool Evaluator::products() {
    const auto multiply = [](const Array& a, const Array& b, const Shape& shape) {
        Array y{shape, {}};
        const std::int64_t depth = a.shape.back();
        each_index(shape, [&](const Shape& at) {
            Shape ia = at, ib = at;
            double sum = 0;
            for (std::int64_t k = 0; k < depth; ++k) {
                ia[at.size() - 1] = k;
                ib[at.size() - 2] = k;
                sum += seen(a, ia) * seen(b, ib);
            }
            y.data.push_back(sum);
        });
        return y;
    };
    const auto turned = [](const Array& a) {
        Array y{a.shape, {}};
        std::swap(y.shape[y.shape.size() - 1], y.shape[y.shape.size() - 2]);
        each_index(y.shape, [&](const Shape& at) {
            Shape from = at;
            std::swap(from[from.size() - 1], from[from.size() - 2]);
            y.data.push_back(a.data[flat(a.shape, from)]);
        });
        return y;
    };
    if (n_.op == "matmul" || n_.op == "linear") {
        Array a = in_[0], b = n_.op == "linear" ? turned(in_[1]) : in_[1];
        Shape shape = n_.shape;
        if (b.shape.size() == 1) {
            b.shape.push_back(1);
            shape.push_back(1);
        }
        if (a.shape.size() == 1) {
            a.shape.insert(a.shape.begin(), 1);
            shape.insert(shape.end() - 1, 1);
        }
        out_.data = multiply(a, b, shape).data;
        std::size_t i = 0;
        if (n_.op == "linear" && in_.size() > 2) each_index(n_.shape, [&](const Shape& at) { out_.data[i++] += seen(in_[2], at); });
        return true;
    }
    if (n_.op != "attention") return false;
    Shape scores = n_.shape;
    scores.back() = in_[1].shape[in_[1].shape.size() - 2];
    Array s = multiply(in_[0], turned(in_[1]), scores);
    const double scale = number("scale", 1 / std::sqrt(static_cast<double>(in_[0].shape.back())));
    const bool chooses = n_.in.size() > 3 && n_.in[3].node >= 0 && graph_.nodes[static_cast<std::size_t>(n_.in[3].node)].dtype == "bool";
    std::size_t i = 0;
    each_index(scores, [&](const Shape& at) {
        s.data[i] *= scale;
        if (in_.size() > 3) s.data[i] += !chooses ? seen(in_[3], at) : seen(in_[3], at) != 0 ? 0 : -INFINITY;
        if (flag("causal") && at.back() > at[at.size() - 2]) s.data[i] = -INFINITY;
        ++i;
    });
    const auto n = static_cast<std::size_t>(scores.back());
    for (std::size_t row = 0; row < s.data.size(); row += n) {
        double top = -INFINITY, sum = 0;
        for (std::size_t k = 0; k < n; ++k) top = std::max(top, s.data[row + k]);
        for (std::size_t k = 0; k < n; ++k) sum += s.data[row + k] = std::exp(s.data[row + k] - top);
        for (std::size_t k = 0; k < n; ++k) s.data[row + k] /= sum;
    }
    out_.data = multiply(s, in_[2], n_.shape).data;
    return true;
}

bool Evaluator::losses() {
    Data each;
    const auto pairs = [&](const Two& f) {
        Shape shape = in_[0].shape.size() >= in_[1].shape.size() ? in_[0].shape : in_[1].shape;
        each_index(shape, [&](const Shape& at) { each.push_back(f(seen(in_[0], at), seen(in_[1], at))); });
    };
    const double beta = number("beta", 1), delta = number("delta", 1);
    if (n_.op == "mse_loss") pairs([](double x, double y) { return (x - y) * (x - y); });
    else if (n_.op == "l1_loss") pairs([](double x, double y) { return std::fabs(x - y); });
    else if (n_.op == "smooth_l1_loss")
        pairs([&](double x, double y) { return std::fabs(x - y) < beta ? 0.5 * (x - y) * (x - y) / beta : std::fabs(x - y) - 0.5 * beta; });
    else if (n_.op == "huber_loss")
        pairs([&](double x, double y) {
            return std::fabs(x - y) <= delta ? 0.5 * (x - y) * (x - y) : delta * (std::fabs(x - y) - 0.5 * delta);
        });
    else if (n_.op == "kl_div") pairs([](double x, double y) { return y > 0 ? y * (std::log(y) - x) : 0.0; });
    else if (n_.op == "cross_entropy") {
        const auto classes = static_cast<std::size_t>(in_[0].shape[1]);
        for (std::size_t row = 0; row < in_[1].data.size(); ++row) {
            const Data line(in_[0].data.begin() + static_cast<std::ptrdiff_t>(row * classes),
                            in_[0].data.begin() + static_cast<std::ptrdiff_t>((row + 1) * classes));
            each.push_back((flag("log_probabilities") ? 0 : folded("logsumexp", line, *this)) -
                           line[static_cast<std::size_t>(in_[1].data[row])]);
        }
    } else return false;
    const std::string how = text_in(n_.attributes, "reduction", "mean");
    if (how == "none") {
        out_.data = each;
        return true;
    }
    double sum = 0;
    for (const double x : each) sum += x;
    out_.data = {how == "sum" ? sum
                              : sum / static_cast<double>(how == "batchmean" ? in_[0].shape[0] : static_cast<std::int64_t>(each.size()))};
    return true;
}

}  // namespace

Result<std::vector<std::vector<double>>> evaluate(const Graph& graph, const Values& values) {
    std::vector<Array> arrays(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& n = graph.nodes[i];
        if (count_of(n.shape) > (1 << 24))
            return Unexpected<Problem>{Problem{n.name, "is too large to be evaluated here", "the same graph at smaller sizes"}};
        if (n.role != Role::operation) {
            const auto found = values.find(n.name);
            if (found == values.end() || static_cast<std::int64_t>(found->second.size()) != count_of(n.shape))
                return Unexpected<Problem>{Problem{n.name, "has no values, or another number of them", ""}};
            arrays[i] = {n.shape, found->second};
            continue;
        }
        std::vector<Array> in;
        for (const Operand& o : n.in) in.push_back(o.node < 0 ? Array{{}, {o.number}} : arrays[static_cast<std::size_t>(o.node)]);
        Evaluator e(graph, n, std::move(in));
        if (!e.run())
            return Unexpected<Problem>{Problem{n.name, fmt::format("'{}' has no reference", n.op), "docs/graph.md lists the operators"}};
        arrays[i] = e.take();
    }
    std::vector<std::vector<double>> out;
    for (const int o : graph.outputs) out.push_back(arrays[static_cast<std::size_t>(o)].data);
    return out;
}

Difference compare(const std::vector<std::vector<double>>& expected, const std::vector<std::vector<double>>& actual) {
    Difference worst;
    for (std::size_t o = 0; o < expected.size(); ++o) {
        double squares = 0, finite = 0;
        for (const double x : expected[o])
            if (std::isfinite(x)) {
                squares += x * x;
                ++finite;
            }
        const double rms = finite > 0 ? std::sqrt(squares / finite) : 0;
        for (std::size_t i = 0; i < expected[o].size(); ++i) {
            const double e = expected[o][i], a = o < actual.size() && i < actual[o].size() ? actual[o][i] : std::nan("");
            const bool same = e == a || (std::isnan(e) && std::isnan(a));
            double error = same ? 0 : std::fabs(e - a) / std::max({std::fabs(e), rms, 1e-30});
            if (!same && !std::isfinite(error)) error = INFINITY;
            if (error > worst.worst) worst = {error, o, i, e, a};
        }
    }
    return worst;
}

}  // namespace tw::graph
