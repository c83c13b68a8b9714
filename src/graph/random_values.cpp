// Inputs for a run of a graph: those that name places stay inside of what they choose from.
#include <algorithm>
#include <map>
#include <random>

#include "base/input.h"
#include "graph/evaluate.h"

namespace tw::graph {

namespace {

// By leaf: how many places the integers that are made of it choose from.
class Places {
public:
    explicit Places(const Graph& graph) : graph_(graph) {
        for (const Node& n : graph.nodes) {
            if (n.in.size() < 2 || n.in[0].node < 0 || n.in[1].node < 0) continue;
            const Shape& s = at(n.in[0].node).shape;
            if (n.op == "cross_entropy") {
                limit(n.in[1].node, s.back());
            } else if (n.op == "index_select" || n.op == "gather") {
                const std::int64_t dim = integer_in(n.attributes, "dim", 0, -8, 8);
                limit(n.in[1].node, s[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(s.size()) : dim)]);
            }
        }
    }

    std::int64_t of(int leaf, std::int64_t otherwise) const {
        const auto found = most_.find(leaf);
        return found == most_.end() ? otherwise : found->second;
    }

private:
    const Node& at(int node) const { return graph_.nodes[static_cast<std::size_t>(node)]; }

    // Under views and choices; i * columns + j is a place where i is a row and j a column.
    void limit(int node, std::int64_t extent) {
        const Node& n = at(node);
        if (n.role != Role::operation) {
            if (n.dtype[0] != 'i') return;
            const auto [known, first] = most_.emplace(node, extent);
            if (!first) known->second = std::min(known->second, extent);
            return;
        }
        const auto step = [&](const Operand& o) -> std::int64_t {
            if (o.node < 0 || at(o.node).op != "mul" || at(o.node).in.size() != 2 || at(o.node).in[1].node >= 0) return 0;
            return static_cast<std::int64_t>(at(o.node).in[1].number);
        };
        if (n.op == "mul" && n.in.size() == 2 && n.in[0].node >= 0 && n.in[1].node < 0 && n.in[1].number >= 1) {
            limit(n.in[0].node, std::max<std::int64_t>(1, extent / static_cast<std::int64_t>(n.in[1].number)));
        } else if (n.op == "add" && n.in.size() == 2 && step(n.in[0]) > 0 && n.in[1].node >= 0) {
            limit(n.in[0].node, extent);
            limit(n.in[1].node, step(n.in[0]));
        } else if (n.op == "where") {
            for (std::size_t i = 1; i < n.in.size(); ++i)
                if (n.in[i].node >= 0) limit(n.in[i].node, extent);
        } else if (!n.in.empty() && n.in[0].node >= 0) {
            limit(n.in[0].node, extent);
        }
    }

    const Graph& graph_;
    std::map<int, std::int64_t> most_;
};

}  // namespace

Values random_values(const Graph& graph, std::uint64_t seed, bool positive) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<float> real(positive ? 0.05F : -1.0F, 1.0F);
    const Places places(graph);
    Values values;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& n = graph.nodes[i];
        if (n.role == Role::operation) continue;
        std::vector<double>& data = values[n.name];
        if (!n.values.empty()) {
            data = n.values;
            continue;
        }
        const std::int64_t count = count_of(n.shape);
        const auto range = static_cast<std::uint64_t>(places.of(static_cast<int>(i), n.dtype == "bool" ? 2 : 8));
        for (std::int64_t k = 0; k < count && n.random == "words"; ++k)
            data.push_back(static_cast<double>(static_cast<std::int32_t>(random() >> 32)));
        for (std::int64_t k = 0; k < count && n.random != "words"; ++k)
            data.push_back(n.dtype[0] == 'i' || n.dtype == "bool" ? static_cast<double>(random() % range)
                                                                  : static_cast<double>(real(random)));
    }
    return values;
}

}  // namespace tw::graph
