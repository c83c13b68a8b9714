#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "base/input.h"
#include "graph/sizes.h"

namespace tw::graph {

using nlohmann::json;

std::int64_t count_of(const Shape& shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
}

std::string text_of(const Shape& shape) {
    std::string out = "(";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + ")";
}

double real_in(const json& object, const char* key, double otherwise) {
    const std::string text = text_in(object, key);
    return text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : number_in(object, key, otherwise);
}

namespace {

// The elements of a constant.
Result<std::vector<double>> read_values(const json& entry, const Node& node) {
    std::vector<double> values;
    const json given = part_in(entry, "values", json::array());
    if (static_cast<std::int64_t>(given.size()) != count_of(node.shape))
        return Unexpected<Problem>{Problem{node.name, fmt::format("has {} `values` for the shape {}", given.size(), text_of(node.shape)),
                                           "a constant's values are a flat list, the last dimension first"}};
    for (const json& v : given) {
        const bool truth = v.is_boolean();
        const double value = truth ? (v.get<bool>() ? 1 : 0) : real_in({{"v", v}}, "v", NAN);
        if (std::isnan(value))
            return Unexpected<Problem>{Problem{node.name, "has a value that is no number", "numbers, \"inf\" or \"-inf\""}};
        values.push_back(value);
    }
    return values;
}

Unexpected<Problem> refuse(std::string where, std::string what, std::string help = "docs/graph.md has the format") {
    return Unexpected<Problem>{Problem{std::move(where), std::move(what), std::move(help)}};
}

// A dimension that is a product of open sizes and numbers: "N", "4*N".
std::int64_t open_extent(const std::string& text, const std::vector<OpenSize>& sizes) {
    double extent = 1;
    for (std::size_t from = 0; from <= text.size();) {
        const std::size_t end = std::min(text.find('*', from), text.size());
        const std::string factor = text.substr(from, end - from);
        from = end + 1;
        const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const OpenSize& s) { return s.name == factor; });
        const bool digits = !factor.empty() && factor.size() <= 12 && factor.find_first_not_of("0123456789") == std::string::npos;
        if (size == sizes.end() && !digits) return -1;
        extent *= static_cast<double>(size != sizes.end() ? size->stands_in : std::stoll(factor));
        if (extent > 1e12) return -1;
    }
    return static_cast<std::int64_t>(extent);
}

Result<Shape> read_shape(const json& object, const std::string& where, const std::vector<OpenSize>& sizes) {
    const json dims = part_in(object, "shape", json::array());
    if (!object.contains("shape") || !object["shape"].is_array())
        return refuse(where, "has no `shape`", "write a list of whole numbers, [] for a single number");
    if (dims.size() > 8) return refuse(where, "has more than 8 dimensions");
    Shape shape;
    double elements = 1;
    for (const json& given : dims) {
        const json d = given.is_string() && !sizes.empty() ? json(open_extent(given.get<std::string>(), sizes)) : given;
        if (!d.is_number_integer() || d.get<double>() < 1 || d.get<double>() > 1e12)
            return refuse(where, "has a dimension that is no positive whole number",
                          "sizes are concrete, or products of what `sizes` names");
        shape.push_back(d.get<std::int64_t>());
        elements *= static_cast<double>(shape.back());
        if (elements > static_cast<double>(kMostElements)) return refuse(where, "has more than 2^40 elements");
    }
    return shape;
}

const std::set<std::string>& dtypes() {
    static const std::set<std::string> known = {"f32", "f16", "bf16", "i32", "i64", "bool"};
    return known;
}

Result<Node> read_value(const json& object, const std::string& list, const std::vector<OpenSize>& sizes) {
    Node node;
    node.name = text_in(object, "name");
    if (node.name.empty() || node.name.size() > 200) return refuse(list, "has an entry without a `name`");
    // Reports name it, a line each: a name of several lines could say what only the report says.
    if (std::any_of(node.name.begin(), node.name.end(), [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }))
        return refuse(list, "has an entry whose `name` holds control characters");
    auto shape = read_shape(object, node.name, sizes);
    if (!shape) return Unexpected<Problem>{shape.error()};
    node.shape = *shape;
    node.dtype = text_in(object, "dtype");
    if (!dtypes().contains(node.dtype))
        return refuse(node.name, fmt::format("has the type '{}'", node.dtype), "types are f32, f16, bf16, i32, i64 and bool");
    return node;
}

// What the graph leaves open. The numbers that stand in for sizes divide none of the graph's: so these are read first.
Result<std::vector<OpenSize>> read_sizes(const json& whole) {
    Graph numbers;
    for (const json& entry : part_in(whole, "sizes", json::array())) {
        OpenSize size;
        size.name = text_in(entry, "name");
        const bool letters =
            std::all_of(size.name.begin(), size.name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
        if (size.name.empty() || size.name.size() > 20 || !letters || std::isdigit(static_cast<unsigned char>(size.name[0])) != 0)
            return refuse("sizes", "has an entry whose `name` is no letters and digits");
        size.least = integer_in(entry, "least", 1, -1, std::int64_t{1} << 31);
        size.most = integer_in(entry, "most", 0, -1, std::int64_t{1} << 31);
        if (size.least < 1 || size.most < 32 || size.least > size.most || size.most > (1 << 20))
            return refuse(size.name, "is an open size without a range", "`least` is 1 or more, `most` from 32 to 1048576");
        if (std::any_of(numbers.sizes.begin(), numbers.sizes.end(), [&](const OpenSize& s) { return s.name == size.name; }))
            return refuse(size.name, "is defined twice");
        numbers.sizes.push_back(size);
    }
    if (numbers.sizes.empty()) return std::vector<OpenSize>{};
    if (numbers.sizes.size() > 4) return refuse("sizes", "has more than 4 entries");
    for (const char* list : {"inputs", "parameters", "nodes"}) {
        const json entries = part_in(whole, list, json::array());
        for (std::size_t i = 0; i < entries.size() && i < kMostNodes; ++i) {
            Node node;
            node.attributes = json::array({part_in(entries[i], "shape", json::array()), part_in(entries[i], "attributes", json::object()),
                                           part_in(entries[i], "inputs", json::array())});
            numbers.nodes.push_back(std::move(node));
        }
    }
    if (const auto chosen = choose_stand_ins(numbers); !chosen) return Unexpected<Problem>{chosen.error()};
    return std::move(numbers.sizes);
}

}  // namespace

Result<Graph> read_graph(const std::string& text) {
    const json whole = parse_json(text);
    if (!whole.is_object())
        return refuse("the file", "is no JSON object",
                      "docs/graph.md has the format; Infinity and NaN are no numbers of JSON: write \"inf\" or \"-inf\"");
    if (text_in(whole, "format") != "tilewright-graph") return refuse("format", "is not \"tilewright-graph\"");
    if (number_in(whole, "version") != 1) return refuse("version", "is not 1");
    Graph graph;
    graph.name = text_in(whole, "name", "graph");
    auto sizes = read_sizes(whole);
    if (!sizes) return Unexpected<Problem>{sizes.error()};
    graph.sizes = *std::move(sizes);
    std::map<std::string, int> known;
    const auto add = [&](Node node) -> bool {
        if (!known.emplace(node.name, static_cast<int>(graph.nodes.size())).second) return false;
        graph.nodes.push_back(std::move(node));
        return true;
    };
    for (const char* list : {"inputs", "parameters", "nodes"}) {
        const json entries = part_in(whole, list, json::array());
        if (entries.size() + graph.nodes.size() > kMostNodes) return refuse(list, fmt::format("has more than {} entries", kMostNodes));
        for (const json& entry : entries) {
            auto node = read_value(entry, list, graph.sizes);
            if (!node) return Unexpected<Problem>{node.error()};
            if (list[0] == 'p' && entry.contains("values")) {
                auto values = read_values(entry, *node);
                if (!values) return Unexpected<Problem>{values.error()};
                node->values = std::move(*values);
            }
            node->random = text_in(entry, "random");
            if (!node->random.empty() && node->random != "uniform" && node->random != "words")
                return refuse(node->name, fmt::format("has the kind of random numbers '{}'", node->random), "uniform or words");
            if (node->random == "words" && node->dtype != "i32") return refuse(node->name, "holds random words that are not i32");
            node->role = list[0] == 'i' ? Role::input : list[0] == 'p' ? Role::parameter : Role::operation;
            if (node->role == Role::operation) {
                node->op = text_in(entry, "op");
                if (node->op.empty()) return refuse(node->name, "has no `op`");
                node->attributes = part_in(entry, "attributes", json::object());
                const json in = part_in(entry, "inputs", json::array());
                if (in.size() > 64) return refuse(node->name, "has more than 64 inputs");
                for (const json& value : in) {
                    if (value.is_number()) {
                        node->in.push_back({-1, value.get<double>()});
                    } else if (value.is_string() && known.contains(value.get<std::string>())) {
                        node->in.push_back({known.at(value.get<std::string>()), 0});
                    } else if (value == "inf" || value == "-inf") {
                        node->in.push_back({-1, value == "inf" ? INFINITY : -INFINITY});
                    } else {
                        return refuse(node->name, fmt::format("uses {}, which is no earlier name", value.dump().substr(0, 60)),
                                      "inputs are names of earlier values, or numbers");
                    }
                }
            }
            const std::string name = node->name;
            if (!add(std::move(*node))) return refuse(name, "is defined twice");
        }
    }
    const json outputs = part_in(whole, "outputs", json::array());
    for (const json& value : outputs) {
        if (!value.is_string() || !known.contains(value.get<std::string>()))
            return refuse("outputs", fmt::format("names {}, which does not exist", value.dump().substr(0, 60)));
        graph.outputs.push_back(known.at(value.get<std::string>()));
    }
    if (graph.outputs.empty()) return refuse("outputs", "is empty");
    return graph;
}

}  // namespace tw::graph
