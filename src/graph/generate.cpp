#include "graph/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "graph/program_text.h"
#include "graph/sizes.h"

namespace tw::graph {

using nlohmann::json;

namespace {

std::string identifier(const std::string& text) {
    std::string out;
    for (const char c : text) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out = "g_" + out;
    return out.substr(0, 60);
}

json constant_values(const Node& n) {
    json out = json::array();
    for (const double v : n.values) {
        if (std::isinf(v)) out.push_back(v > 0 ? "inf" : "-inf");
        else if (n.dtype[0] == 'i') out.push_back(static_cast<std::int64_t>(v));
        else out.push_back(v);
    }
    return out;
}

json plan_of(const Graph& graph, const Primitives& p, const std::vector<KernelText>& kernels) {
    json buffers = json::object();
    std::map<int, std::string> name;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
        if (p.leaves[n] >= 0) name[p.leaves[n]] = graph.nodes[n].name;
    for (const KernelText& k : kernels) {
        for (const Argument& a : k.arguments)
            if (!a.scratch.empty()) buffers[a.scratch] = {{"shape", a.whole}, {"dtype", a.dtype}};
        const Argument& out = k.arguments.back();
        if (!out.scratch.empty()) continue;
        const Primitive& v = p.list[static_cast<std::size_t>(out.primitive)];
        name[out.primitive] = "%" + std::to_string(out.primitive);
        buffers[name[out.primitive]] = {{"shape", v.shape}, {"dtype", v.dtype}};
    }
    const auto buffer_of = [&](const Argument& a) { return a.scratch.empty() ? name.at(a.primitive) : a.scratch; };
    json launches = json::array();
    for (const KernelText& k : kernels) {
        json arguments = json::array();
        for (const Argument& a : k.arguments)
            arguments.push_back(
                {{"buffer", buffer_of(a)}, {"shape", a.dims}, {"strides", a.strides}, {"offset", a.offset}, {"output", a.output}});
        launches.push_back({{"kernel", k.name}, {"arguments", arguments}, {"family", k.family}, {"nodes", k.nodes}});
    }
    json outputs = json::array(), inputs = json::array(), parameters = json::array();
    for (std::size_t o = 0; o < graph.outputs.size(); ++o)
        outputs.push_back({{"buffer", name.at(p.outputs[o])},
                           {"shape", graph.nodes[static_cast<std::size_t>(graph.outputs[o])].shape},
                           {"dtype", graph.nodes[static_cast<std::size_t>(graph.outputs[o])].dtype}});
    for (const Node& n : graph.nodes) {
        if (n.role == Role::operation) continue;
        json about = {{"name", n.name}, {"shape", n.shape}, {"dtype", n.dtype}};
        if (!n.random.empty()) about["random"] = n.random;
        if (!n.values.empty()) about["values"] = constant_values(n);
        (n.role == Role::input ? inputs : parameters).push_back(about);
    }
    return {{"format", "tilewright-plan"}, {"version", 1},       {"name", graph.name},   {"inputs", inputs},
            {"parameters", parameters},    {"buffers", buffers}, {"launches", launches}, {"outputs", outputs}};
}

// Where a kernel could be cut in two, what is most likely to help first: after an operator of the graph, after a reduction or the product,
// before a reduction.
std::vector<int> cuts_of(const Primitives& p, const Group& g) {
    std::vector<int> ends, folds, taken, out;
    for (auto it = g.members.rbegin(); it != g.members.rend(); ++it) {
        const Primitive& v = p.list[static_cast<std::size_t>(*it)];
        if (v.kind == Kind::reduce && g.has(v.in[0]) && p.list[static_cast<std::size_t>(v.in[0])].kind == Kind::pointwise)
            taken.push_back(v.in[0]);
        if (*it == g.root || v.dtype[0] == 'i' || v.dtype == "bool" || v.kind == Kind::pick) continue;
        const bool end = std::any_of(g.members.begin(), g.members.end(), [&](int m) {
            const Primitive& user = p.list[static_cast<std::size_t>(m)];
            return user.from != v.from && std::find(user.in.begin(), user.in.end(), *it) != user.in.end();
        });
        int value = *it;  // under reshapes
        while (p.list[static_cast<std::size_t>(value)].kind == Kind::reshape && g.has(value))
            value = p.list[static_cast<std::size_t>(value)].in[0];
        if (!g.has(value) || (value != *it && !end)) continue;
        if (end) ends.push_back(value);
        else if (v.kind == Kind::reduce || *it == g.anchor) folds.push_back(*it);
    }
    out = ends;
    out.insert(out.end(), folds.begin(), folds.end());
    out.insert(out.end(), taken.begin(), taken.end());
    return out;
}

// Packing may read what another kernel was to read for it (packed_conv.cpp): kernels whose result nobody reads are left out.
void drop_unread(const Primitives& p, std::vector<KernelText>& kernels) {
    for (bool again = true; again;) {
        std::set<int> read(p.outputs.begin(), p.outputs.end());
        for (const KernelText& k : kernels)
            for (const Argument& a : k.arguments)
                if (!a.output) read.insert(a.primitive);
        const auto unread = [&](const KernelText& k) {
            const Argument& out = k.arguments.back();
            return out.scratch.empty() && !read.contains(out.primitive);
        };
        const auto from = std::remove_if(kernels.begin(), kernels.end(), unread);
        again = from != kernels.end();
        kernels.erase(from, kernels.end());
    }
}

// Whether a launch can tell each size from the dimensions of the kernel's tensors, one after the other.
bool tells_sizes(const KernelText& k, const std::vector<OpenSize>& sizes) {
    std::vector<std::int64_t> known;
    for (bool more = true; more && known.size() < sizes.size();) {
        more = false;
        for (const Argument& a : k.arguments)
            for (std::int64_t d : a.dims) {
                for (const std::int64_t p : known)
                    while (d % p == 0) d /= p;
                for (const OpenSize& size : sizes) {
                    if (d % size.stands_in != 0 || is_open(sizes, d / size.stands_in)) continue;
                    known.push_back(size.stands_in);
                    more = true;
                    break;
                }
            }
    }
    return known.size() >= sizes.size();
}

// With the names of open sizes in the texts; what they may be is assumed by each kernel.
std::optional<Problem> name_sizes(const Graph& graph, Generated& out) {
    for (KernelText& k : out.kernels) {
        const NamedText named = named_text(k.text, graph.sizes);
        std::string assumed;
        for (const OpenSize& size : named.sizes) {
            assumed += fmt::format("    tw.assume({0} <= {1} and {1} <= {2})\n", size.least, size.name, size.most);
            k.sizes.emplace_back(size.name, size.stands_in);
        }
        if (!tells_sizes(k, named.sizes))
            return Problem{k.nodes.empty() ? k.name : k.nodes.back(), "has open sizes that no dimension of its tensors tells",
                           "these sizes must be numbers: import with example inputs"};
        k.text = named.text;
        k.text.insert(k.text.find(":\n", k.text.find("\ndef ")) + 2, assumed);
    }
    out.plan = named_plan(out.plan, graph.sizes);
    out.plan["sizes"] = json::array();
    for (const OpenSize& size : graph.sizes) out.plan["sizes"].push_back({{"name", size.name}, {"least", size.least}, {"most", size.most}});
    return std::nullopt;
}

Result<Generated> generate_at(const Graph& graph, const Precision& precision, std::set<int> stored);

// The same with something that no template takes whole left in pieces.
Result<Generated> generate_apart(const Graph& graph, Precision precision, const std::set<int>& stored, const Problem& problem) {
    if (problem.apart.empty() || !precision.rows.insert(problem.apart).second) return Unexpected<Problem>{problem};
    return generate_at(graph, precision, stored);
}

Result<Generated> generate_at(const Graph& graph, const Precision& precision, std::set<int> stored) {
    auto primitives = to_primitives(graph, precision);
    if (!primitives) return Unexpected<Problem>{primitives.error()};
    primitives->rows = precision.rows;
    const std::set<int> given = stored;
    stored.merge(epilogues(*primitives));
    for (std::size_t round = 0; round <= primitives->list.size(); ++round) {
        auto groups = cut(*primitives, stored);
        if (!groups) return generate_apart(graph, precision, given, groups.error());
        Generated out;
        bool again = false;
        for (std::size_t i = 0; i < groups->size() && !again; ++i) {
            const Group& g = (*groups)[i];
            const std::string& from = primitives->list[static_cast<std::size_t>(g.root)].from;
            auto written = write_kernels(*primitives, g, identifier(fmt::format("k{}_{}", i, from)), &*groups);
            if (!written) {
                if (!written.error().apart.empty()) return generate_apart(graph, precision, given, written.error());
                const int store = written.error().store;
                if (store < 0 || !stored.insert(store).second) return Unexpected<Problem>{written.error()};
                again = true;
            } else {
                for (KernelText& k : *written) {
                    for (KernelText& before : k.before) {
                        before.cuts = cuts_of(*primitives, g);
                        before.rows = k.rows;
                        out.kernels.push_back(std::move(before));
                    }
                    k.before.clear();
                    k.cuts = cuts_of(*primitives, g);
                    out.kernels.push_back(std::move(k));
                }
            }
        }
        if (again) continue;
        drop_unread(*primitives, out.kernels);
        for (const KernelText& k : out.kernels)
            for (const Argument& a : k.arguments)
                if (!begins_well(a.strides, a.offset, a.dtype))
                    return Unexpected<Problem>{
                        Problem{k.name, fmt::format("{} begins between multiples of 16 bytes, and could not be launched", a.name),
                                "please report this graph"}};
        const bool in_f64 =
            std::any_of(primitives->list.begin(), primitives->list.end(), [](const Primitive& v) { return v.dtype == "f64"; });
        const auto text_of_program = program_text(graph, *primitives, out.kernels, precision);
        out.plan = plan_of(graph, *primitives, out.kernels);
        if (!graph.sizes.empty())
            if (auto problem = name_sizes(graph, out)) return Unexpected<Problem>{*std::move(problem)};
        out.source = fmt::format(
            "\"\"\"Generated from the graph {}: {} kernels, in the order of their launches.\"\"\"\nimport tilewright as tw\nfrom "
            "tilewright import bf16, f16, f32, {}i32, i64, tf32\n",
            graph.name, out.kernels.size(), in_f64 ? "f64, " : "");
        std::set<std::string> sizes;
        if (text_of_program && !graph.sizes.empty())
            for (const OpenSize& size : named_text(*text_of_program, graph.sizes).sizes) sizes.insert(size.name);
        for (const KernelText& k : out.kernels)
            for (const auto& [name, value] : k.sizes) sizes.insert(name);
        if (!sizes.empty()) out.source += fmt::format("\n{} = tw.sizes(\"{}\")\n", fmt::join(sizes, ", "), fmt::join(sizes, " "));
        for (const KernelText& k : out.kernels) out.source += "\n\n" + k.text;
        out.kernels_only = out.source;
        if (text_of_program)
            out.source += "\n\n" + (graph.sizes.empty() ? *text_of_program : named_text(*text_of_program, graph.sizes).text);
        else out.program_problem = text_of_program.error().where + ": " + text_of_program.error().what;
        return out;
    }
    return Unexpected<Problem>{Problem{graph.name, "cannot be cut into kernels", "this is a limit of the generator"}};
}

// The same with the second number for each size.
Graph with_others(const Graph& graph) {
    std::vector<std::int64_t> others;
    for (const OpenSize& size : graph.sizes) others.push_back(size.other);
    Graph out = graph_at(graph, others);
    out.sizes = graph.sizes;
    for (OpenSize& size : out.sizes) std::swap(size.stands_in, size.other);
    return out;
}

// Where two texts part, for a message.
std::string first_difference(const std::string& one, const std::string& other) {
    std::size_t i = 0;
    while (i < one.size() && i < other.size() && one[i] == other[i]) ++i;
    const auto from = one.rfind('\n', i);
    const std::size_t begin = from == std::string::npos ? 0 : from + 1;
    return one.substr(begin, std::min<std::size_t>(160, one.find('\n', i) - begin));
}

}  // namespace

Result<Generated> generate(const Graph& graph, const Precision& precision, std::set<int> stored) {
    auto made = generate_at(graph, precision, stored);
    if (!made || graph.sizes.empty()) return made;
    const auto again = generate_at(with_others(graph), precision, std::move(stored));
    if (!again) return again;
    if (made->source == again->source && made->plan == again->plan) return made;
    const std::string where = made->source == again->source ? "the plan" : first_difference(made->source, again->source);
    return Unexpected<Problem>{Problem{graph.name, fmt::format("hangs on the open sizes in another way than by their products: {}", where),
                                       "these sizes must be numbers: import with example inputs"}};
}

}  // namespace tw::graph
