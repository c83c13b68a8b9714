#include "graph/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace tw::graph {

using nlohmann::json;

namespace {

bool is_prime(std::int64_t n) {
    for (std::int64_t d = 2; d * d <= n; ++d)
        if (n % d == 0) return false;
    return n > 1;
}

// Every whole number that a graph has written down, shapes made of open sizes left out.
void numbers_of(const json& value, std::set<std::int64_t>& out) {
    if (value.is_number() && std::abs(value.get<double>()) < 1e15) out.insert(std::abs(static_cast<std::int64_t>(value.get<double>())));
    for (const auto& part : value.is_structured() ? value : json::array()) numbers_of(part, out);
}

// A number as a product of sizes and what is left of it.
struct Made {
    std::int64_t left = 0;
    std::vector<int> power;
    bool open = false;
};

Made made_of(std::int64_t n, const std::vector<OpenSize>& sizes) {
    Made out{n, std::vector<int>(sizes.size(), 0), false};
    for (std::size_t s = 0; s < sizes.size() && n != 0; ++s)
        for (; out.left % sizes[s].stands_in == 0; out.left /= sizes[s].stands_in) {
            ++out.power[s];
            out.open = true;
        }
    return out;
}

// By `joined`: 3 * S_N, or ["S_N", 3] of a plan.
std::string product_text(const Made& made, const std::vector<OpenSize>& sizes, const std::string& prefix, const char* joined) {
    std::string text;
    for (std::size_t s = 0; s < sizes.size(); ++s)
        for (int i = 0; i < made.power[s]; ++i) text += (text.empty() ? "" : joined) + prefix + sizes[s].name;
    return made.left == 1 ? text : text + joined + std::to_string(made.left);
}

}  // namespace

std::int64_t extent_at(std::int64_t n, const std::vector<OpenSize>& sizes, const std::vector<std::int64_t>& values) {
    const Made made = made_of(n, sizes);
    std::int64_t out = made.left;
    for (std::size_t s = 0; s < sizes.size(); ++s)
        for (int i = 0; i < made.power[s]; ++i) out *= values[s];
    return out;
}

Graph graph_at(const Graph& graph, const std::vector<std::int64_t>& values) {
    Graph out = graph;
    for (Node& n : out.nodes)
        for (std::int64_t& d : n.shape) d = extent_at(d, graph.sizes, values);
    out.sizes.clear();
    return out;
}

Generated launches_at(const Generated& generated, const Graph& graph, const std::vector<std::int64_t>& values) {
    Generated out = generated;
    const auto at = [&](std::int64_t& n) { n = extent_at(n, graph.sizes, values); };
    for (KernelText& k : out.kernels) {
        for (Argument& a : k.arguments) {
            for (std::int64_t& d : a.dims) at(d);
            for (std::int64_t& d : a.strides) at(d);
            for (std::int64_t& d : a.whole) at(d);
            at(a.offset);
        }
        for (auto& [name, value] : k.sizes) at(value);
    }
    for (auto& [name, about] : out.plan["buffers"].items())
        for (json& d : about["shape"]) {
            if (d.is_number()) continue;
            std::int64_t extent = 1;
            for (const json& factor : d)
                if (factor.is_number()) extent *= factor.get<std::int64_t>();
                else
                    for (std::size_t s = 0; s < values.size(); ++s)
                        if (factor == graph.sizes[s].name) extent *= values[s];
            d = extent;
        }
    return out;
}

Result<bool> choose_stand_ins(Graph& graph) {
    std::set<std::int64_t> known;
    for (const Node& n : graph.nodes) {
        numbers_of(n.attributes, known);
        for (const std::int64_t d : n.shape) known.insert(d);
        for (const Operand& o : n.in)
            if (o.node < 0 && std::abs(o.number) < 1e15) known.insert(static_cast<std::int64_t>(std::abs(o.number)));
    }
    std::set<std::int64_t> taken;
    const auto next = [&](std::int64_t most) {
        for (std::int64_t p = most; p > 1; --p)
            if (is_prime(p) && !taken.contains(p) &&
                std::none_of(known.begin(), known.end(), [&](std::int64_t n) { return n != 0 && n % p == 0; })) {
                taken.insert(p);
                return p;
            }
        return std::int64_t{0};
    };
    for (OpenSize& size : graph.sizes) {
        size.stands_in = next(size.most);
        size.other = next(size.most);
        // Templates are chosen by the numbers that stand in for sizes: these are of the largest value's magnitude.
        if (std::min(size.stands_in, size.other) * 2 <= size.most)
            return Unexpected<Problem>{
                Problem{size.name, "is an open size with too few values", "`most` is 32 or more; write a smaller size as a number"}};
    }
    return true;
}

bool is_open(const std::vector<OpenSize>& sizes, std::int64_t n) {
    return std::any_of(sizes.begin(), sizes.end(), [&](const OpenSize& s) { return n != 0 && n % s.stands_in == 0; });
}

std::string parts_text(const std::vector<OpenSize>& sizes, std::int64_t n, std::int64_t each) {
    const std::int64_t count = (n + each - 1) / each;
    return is_open(sizes, n) && each > 1 && count > 1 ? fmt::format("tw.cdiv({}, {})", n, each) : std::to_string(count);
}

namespace {

// The tokens of a text: names and numbers (with the sign of their exponent), and each other character.
std::vector<std::string> tokens_of(const std::string& text) {
    const auto word = [&](std::size_t i) {
        return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_' || text[i] == '.');
    };
    std::vector<std::string> out;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i + 1;
        const bool number = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
        if (word(i))
            while (word(end) || (number && end < text.size() && (text[end] == '-' || text[end] == '+') && text[end - 1] == 'e')) ++end;
        out.push_back(text.substr(i, end - i));
        i = end;
    }
    return out;
}

// What a token is made of: a whole number, or one that is written as a real one.
Made made_of_token(const std::string& token, const std::vector<OpenSize>& sizes) {
    const std::string digits = token.ends_with(".0") ? token.substr(0, token.size() - 2) : token;
    const bool whole =
        !digits.empty() && digits.size() <= 18 && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    return whole ? made_of(std::stoll(digits), sizes) : Made{0, std::vector<int>(sizes.size(), 0), false};
}

}  // namespace

NamedText named_text(const std::string& text, const std::vector<OpenSize>& sizes) {
    const auto tokens = tokens_of(text);
    std::vector<bool> used(sizes.size(), false);
    int most = 0;
    for (const std::string& token : tokens) {
        const Made made = made_of_token(token, sizes);
        if (!made.open) continue;
        for (std::size_t s = 0; s < sizes.size(); ++s) {
            used[s] = used[s] || made.power[s] > 0;
            most = std::max(most, made.power[s]);
        }
    }
    const auto several = std::count(used.begin(), used.end(), true);
    bool together = several > 1 && most == 1;
    for (const std::string& token : tokens) {
        const Made made = made_of_token(token, sizes);
        for (std::size_t s = 0; s < sizes.size(); ++s) together = together && (!made.open || (made.power[s] == 1) == used[s]);
    }
    NamedText out;
    OpenSize product{"", 1, 1};
    for (std::size_t s = 0; s < sizes.size(); ++s) {
        if (!used[s]) continue;
        if (!together) out.sizes.push_back({"S_" + sizes[s].name, sizes[s].least, sizes[s].most, sizes[s].stands_in, 0});
        product.name += (product.name.empty() ? "S_" : "_") + sizes[s].name;
        product.least *= sizes[s].least;
        product.most *= sizes[s].most;
        product.stands_in = (product.stands_in == 0 ? 1 : product.stands_in) * sizes[s].stands_in;
    }
    if (together) out.sizes.push_back(product);
    for (const std::string& token : tokens) {
        const Made made = made_of_token(token, sizes);
        if (!made.open) {
            out.text += token;
            continue;
        }
        const std::string name =
            together ? product.name + (made.left == 1 ? "" : " * " + std::to_string(made.left)) : product_text(made, sizes, "S_", " * ");
        out.text += name.find(' ') == std::string::npos ? name : "(" + name + ")";
    }
    return out;
}

json named_plan(const json& plan, const std::vector<OpenSize>& sizes) {
    if (plan.is_number_integer()) {
        const Made made = made_of(plan.get<std::int64_t>(), sizes);
        if (!made.open) return plan;
        json out = json::array();
        for (std::size_t s = 0; s < sizes.size(); ++s)
            for (int i = 0; i < made.power[s]; ++i) out.push_back(sizes[s].name);
        if (made.left != 1) out.push_back(made.left);
        return out;
    }
    json out = plan;
    if (plan.is_structured())
        for (auto& [key, part] : out.items())
            if (key != "values") part = named_plan(part, sizes);
    return out;
}

}  // namespace tw::graph
