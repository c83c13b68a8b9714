#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/compose_node.h"

namespace tw::graph {

namespace {

// Indices of the input where `folded` runs through its own names and the others through the output's; and what those names run over.
struct FoldedLine {
    Indices index;
    std::vector<std::pair<std::string, std::int64_t>> over;
    double count = 1;
};

FoldedLine line_of(const Shape& s, const std::vector<bool>& folded, bool kept, const char* name = "r") {
    FoldedLine line;
    std::size_t at = 0;
    for (std::size_t d = 0; d < s.size(); ++d) {
        if (folded[d]) {
            line.index.push_back(s[d] == 1 ? "0" : fmt::format("{}{}", name, d));
            line.over.emplace_back(fmt::format("{}{}", name, d), s[d]);
            line.count *= static_cast<double>(s[d]);
        } else {
            line.index.push_back(s[d] == 1 ? "0" : fmt::format("i{}", kept ? d : at));
        }
        at += kept || !folded[d] ? 1 : 0;
    }
    return line;
}

}  // namespace

// log(sum(exp(x))), as it is computed: below the largest. `x` is a function of the letter that its folded indices have.
std::string NodeText::log_of_sum(const std::function<Folded(const char*)>& x) {
    const Folded each = x("r"), other = x("q");
    const std::string top = fold("max", other.over, other.value);
    return fmt::format("({} + log({}))", top, fold("sum", each.over, fmt::format("exp({} - {})", each.value, top)));
}

std::optional<std::string> NodeText::folds() {
    if (n.in.empty()) return std::nullopt;
    static const std::map<std::string, std::string> plain = {
        {"sum", "sum"}, {"amax", "max"}, {"amin", "min"}, {"prod", "prod"}, {"mean", "sum"}};
    const Shape& s = shape(0);
    const std::string& op = n.op;
    if (op == "softmax" || op == "log_softmax" || op == "cumsum" || op == "cumprod") {
        Indices line = own();
        const std::size_t a = axis();
        if (s[a] == 1 && op[0] == 'c') return flag("exclusive") ? literal(op == "cumsum" ? 0 : 1) : real(0, line);
        const std::string here = line[a];
        const std::string x = real(0, line);
        line[a] = s[a] == 1 ? "0" : "r";
        const std::string all = fold("sum", {{"r", s[a]}}, fmt::format("exp({})", real(0, line)));
        if (op == "softmax") return fmt::format("exp({}) / {}", x, all);
        if (op == "log_softmax")
            return fmt::format("{} - {}", x, log_of_sum([&](const char* name) {
                                   line[a] = s[a] == 1 ? "0" : name;
                                   return Folded{{{name, s[a]}}, real(0, line)};
                               }));
        const bool exclusive = flag("exclusive");
        const std::string range = flag("reverse") ? fmt::format("{}{}:{}", here, exclusive ? " + 1" : "", s[a])
                                                  : fmt::format("0:{}{}", here, exclusive ? "" : " + 1");
        return fmt::format("{}(r in {}, {})", op == "cumsum" ? "sum" : "prod", range, real(0, line));
    }
    if (op == "argmax" || op == "argmin") {
        if (!n.attributes.contains("dim"))
            return fmt::format("{}(r in 0:{}, {})", op, count_of(s), real(0, reshaped(s, {count_of(s)}, {"r"})));
        std::vector<bool> folded(s.size(), false);
        folded[axis()] = true;
        FoldedLine line = line_of(s, folded, flag("keepdim"));
        if (s[axis()] == 1) return "0";
        return fmt::format("{}(r{} in 0:{}, {})", op, axis(), s[axis()], real(0, line.index));
    }
    const auto f = plain.find(op);
    if (f == plain.end() && op != "logsumexp" && op != "norm" && op != "var") return std::nullopt;
    const FoldedLine line = line_of(s, axes("dims"), flag("keepdim"));
    const std::string x = real(0, line.index);
    if (op == "mean") return line.count == 1 ? x : fmt::format("{} / {}", fold("sum", line.over, x), literal(line.count));
    if (f != plain.end()) return fold(f->second, line.over, x);
    if (op == "logsumexp")
        return log_of_sum([&](const char* name) {
            const FoldedLine other = line_of(s, axes("dims"), flag("keepdim"), name);
            return Folded{other.over, real(0, other.index)};
        });
    if (op == "norm") {
        if (number("p", 2) == 1) return fold("sum", line.over, fmt::format("abs({})", x));
        return fmt::format("sqrt({})", fold("sum", line.over, fmt::format("({0} * {0})", x)));
    }
    const std::string mean = let("m_" + id, n.shape, fmt::format("{} / {}", fold("sum", line.over, x), literal(line.count)));
    Indices kept;
    for (std::size_t d = 0; d < n.shape.size(); ++d) kept.push_back(n.shape[d] == 1 ? "0" : fmt::format("i{}", d));
    const std::string off = fmt::format("({} - {})", x, kept.empty() ? mean : fmt::format("{}[{}]", mean, fmt::join(kept, ", ")));
    return fmt::format("{} / {}", fold("sum", line.over, fmt::format("{0} * {0}", off)), literal(line.count - number("correction", 1)));
}

// Mean and variance are lets of their own; `place` of them belongs to an element.
std::optional<std::string> NodeText::norms() {
    static const std::set<std::string> known = {"batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm"};
    if (!known.contains(n.op)) return std::nullopt;
    const Shape& s = shape(0);
    const Indices i = own();
    Shape statistics;  // extents of the place
    Indices place, at = i;
    std::vector<std::pair<std::string, std::int64_t>> over;
    double count = 1;
    const auto folded = [&](std::size_t d, std::int64_t extent) {
        over.emplace_back(fmt::format("r{}", d), extent);
        count *= static_cast<double>(extent);
        return extent == 1 ? std::string("0") : fmt::format("r{}", d);
    };
    const bool channels = n.op[0] != 'l' && n.op != "rms_norm";
    if (channels) {
        const std::int64_t groups = n.op == "group_norm" ? static_cast<std::int64_t>(number("groups", 1)) : s[1], each = s[1] / groups;
        const bool batch = n.op == "batch_norm";
        if (batch) {
            statistics = {s[1]};
            place = {i[1]};
            at = {folded(0, s[0]), s[1] == 1 ? "0" : "i0"};
        } else {
            statistics = {s[0], groups};
            place = {i[0], groups == 1 ? "0" : each == 1 ? i[1] : fmt::format("{} // {}", i[1], each)};
            at = {s[0] == 1 ? "0" : "i0", each == 1 ? "i1" : fmt::format("i1 * {} + {}", each, folded(1, each))};
            if (groups == 1) at[1] = each == 1 ? "0" : "r1";
        }
        for (std::size_t d = 2; d < s.size(); ++d) at.push_back(folded(d, s[d]));
    } else {
        const auto dims = zu(integer_in(n.attributes, "dims", 1, 1, 8));
        for (std::size_t d = 0; d < s.size(); ++d) {
            if (d + dims >= s.size()) {
                at[d] = folded(d, s[d]);
            } else {
                statistics.push_back(s[d]);
                place.push_back(i[d]);
            }
        }
    }
    const auto of = [](const std::string& name, const Indices& k) {
        return k.empty() ? name : fmt::format("{}[{}]", name, fmt::join(k, ", "));
    };
    Indices free;
    for (std::size_t d = 0; d < statistics.size(); ++d) free.push_back(statistics[d] == 1 ? "0" : fmt::format("i{}", d));
    const std::string eps = literal(number("eps", 1e-5));
    std::string x = real(0, i), y;
    if (n.op == "rms_norm") {
        const std::string r = real(0, at);
        const std::string square =
            let("v_" + id, statistics, fmt::format("{} / {}", fold("sum", over, fmt::format("{0} * {0}", r)), literal(count)));
        y = fmt::format("{} * rsqrt({} + {})", x, of(square, place), eps);
    } else {
        const std::string mean = let("m_" + id, statistics, fmt::format("{} / {}", fold("sum", over, real(0, at)), literal(count)));
        const std::string off = fmt::format("({} - {})", real(0, at), of(mean, free));
        const std::string variance =
            let("v_" + id, statistics, fmt::format("{} / {}", fold("sum", over, fmt::format("{0} * {0}", off)), literal(count)));
        y = fmt::format("({} - {}) * rsqrt({} + {})", x, of(mean, place), of(variance, place), eps);
    }
    for (const std::size_t k : {1, 2}) {
        if (!has(k)) continue;
        y = fmt::format("{} {} {}", y, k == 1 ? "*" : "+", real(k, channels ? reshaped(shape(k), {s[1]}, {i[1]}) : broadcast(k, i)));
    }
    return y;
}

std::optional<std::string> NodeText::losses() {
    static const std::set<std::string> known = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cross_entropy"};
    if (!known.contains(n.op)) return std::nullopt;
    Shape s = shape(0).size() >= shape(1).size() ? shape(0) : shape(1);
    std::string each;
    const std::string how = text_in(n.attributes, "reduction", "mean"), letter = how == "none" ? "i" : "r";
    Indices at;
    const auto indices = [&] {
        at.clear();
        for (std::size_t d = 0; d < s.size(); ++d) at.push_back(s[d] == 1 ? "0" : fmt::format("{}{}", letter, d));
    };
    indices();
    if (n.op == "cross_entropy") {
        const std::int64_t classes = shape(0)[1];
        s = {shape(0)[0]};
        indices();
        const std::string chosen = real(0, {at[0], raw(1, {at[0]})});
        each = flag("log_probabilities") ? fmt::format("-{}", chosen)
                                         : fmt::format("({} - {})", log_of_sum([&](const char* name) {
                                                           const std::string c = std::string("c") + name;
                                                           return Folded{{{c, classes}}, real(0, {at[0], classes == 1 ? "0" : c})};
                                                       }),
                                                       chosen);
        if (n.in[1].node >= 0) out.range[n.in[1].node] = classes;
    } else {
        const std::string x = real(0, broadcast(0, at)), y = real(1, broadcast(1, at)), d = fmt::format("abs({} - {})", x, y);
        const std::string beta = literal(number("beta", 1)), delta = literal(number("delta", 1));
        if (n.op == "mse_loss") each = fmt::format("({0} - {1}) * ({0} - {1})", x, y);
        if (n.op == "l1_loss") each = d;
        if (n.op == "smooth_l1_loss")
            each = fmt::format("where({0} < {1}, 0.5 * {0} * {0} / {1}, {0} - {2})", d, beta, literal(0.5 * number("beta", 1)));
        if (n.op == "huber_loss")
            each = fmt::format("where({0} <= {1}, 0.5 * {0} * {0}, {1} * ({0} - {2}))", d, delta, literal(0.5 * number("delta", 1)));
        if (n.op == "kl_div") each = fmt::format("where({1} > 0, {1} * log(where({1} > 0, {1}, 1.0)), 0.0) - {1} * {0}", x, y);
    }
    if (how == "none") return each;
    std::vector<std::pair<std::string, std::int64_t>> over;
    for (std::size_t d = 0; d < s.size(); ++d) over.emplace_back(fmt::format("r{}", d), s[d]);
    const std::string total = fold("sum", over, each);
    if (how == "sum") return total;
    const std::int64_t by = how == "batchmean" ? s[0] : count_of(s);
    return by == 1 ? total : fmt::format("({}) / {}", total, literal(static_cast<double>(by)));
}

}  // namespace tw::graph
