#include <algorithm>

#include "graph/group.h"

namespace tw::graph {

namespace {

// Pointwise operations and reshapes that hang on `anchor` through one another only, in ascending order, and the anchor itself.
std::vector<int> chain_of(const Primitives& p, int anchor) {
    const std::int64_t count = count_of(p.list[static_cast<std::size_t>(anchor)].shape);
    std::set<int> inside = {anchor}, beyond;
    for (int id = anchor + 1; id < static_cast<int>(p.list.size()); ++id) {
        const Primitive& v = p.list[static_cast<std::size_t>(id)];
        const auto among = [&](const std::set<int>& s) {
            return std::any_of(v.in.begin(), v.in.end(), [&](int q) { return s.contains(q); });
        };
        if (!among(inside) && !among(beyond)) continue;
        const bool each = (v.kind == Kind::pointwise || v.kind == Kind::reshape) && count_of(v.shape) == count && !among(beyond);
        (each ? inside : beyond).insert(id);
    }
    return {inside.begin(), inside.end()};
}

}  // namespace

std::set<int> epilogues(const Primitives& p) {
    std::vector<std::vector<int>> users(p.list.size());
    for (std::size_t i = 0; i < p.list.size(); ++i)
        for (const int q : p.list[i].in) users[static_cast<std::size_t>(q)].push_back(static_cast<int>(i));
    const std::set<int> outputs(p.outputs.begin(), p.outputs.end());
    std::set<int> out, scores;
    for (const Primitive& v : p.list) scores.insert(v.scores);
    for (int id = 0; id < static_cast<int>(p.list.size()); ++id) {
        const Kind kind = p.list[static_cast<std::size_t>(id)].kind;
        if ((kind != Kind::matmul && kind != Kind::conv) || scores.contains(id)) continue;
        const auto chain = chain_of(p, id);
        const std::set<int> inside(chain.begin(), chain.end());
        for (auto last = chain.rbegin(); last != chain.rend(); ++last) {
            const bool all = std::all_of(chain.begin(), chain.end(), [&](int y) {
                if (y >= *last) return true;
                const auto& u = users[static_cast<std::size_t>(y)];
                return !outputs.contains(y) && std::all_of(u.begin(), u.end(), [&](int x) { return x <= *last && inside.contains(x); });
            });
            const Primitive& v = p.list[static_cast<std::size_t>(*last)];
            if (!all || v.kind == Kind::reshape || v.dtype == "bool") continue;
            if (*last != id) out.insert(*last);
            break;
        }
    }
    return out;
}

}  // namespace tw::graph
