// The shapes of the variables that steer: of loops and roles, counters, and those that go round.
#include "verify/steering_reader.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"

namespace tw::verify {
namespace {

constexpr std::size_t largest_domain = 1024;  // values of a variable that is updated from itself

}  // namespace

Shape SteeringReader::leaf_shape(const Expr& e) {
    switch (e.kind()) {
        case ExprKind::size: return atom_shape({ExprKind::size, e->id}, 0);
        case ExprKind::cluster_rank: return constant_shape(0, k_.cluster[0] * k_.cluster[1] * k_.cluster[2] - 1);
        case ExprKind::block_index:
        case ExprKind::grid_size: {
            const auto blocks = k_.grid[at(e->id)].as_constant();
            if (!blocks || (k_.persistent && e->id == 0)) return atom_shape({e.kind(), e->id}, 0);
            return e.kind() == ExprKind::grid_size ? constant_shape(*blocks, *blocks) : constant_shape(0, *blocks - 1);
        }
        case ExprKind::var: {
            const auto found = variables_.find(e->id);
            if (found != variables_.end()) return found->second;
            variables_[e->id] = no_shape("depends on itself through other variables");
            return variables_[e->id] = variable_shape(e->id);
        }
        default: return no_shape("depends on the contents of `" + k_.tensors[at(e->id)].name + "`");
    }
}

Shape SteeringReader::variable_shape(int id) {
    if (const auto role = instances_.find(id); role != instances_.end()) return constant_shape(0, role->second - 1);
    const auto& loops = loops_[id];
    const auto& values = assigned_[id];
    if (!loops.empty()) {
        if (!values.empty()) return no_shape("is a loop's variable that is assigned to");
        std::int64_t least = 0, most = 0;
        bool constant = true;
        std::optional<std::int64_t> first = 0;
        for (const ir::For* f : loops) {
            const auto lo = f->lo.as_constant(), hi = f->hi.as_constant();
            constant = constant && lo && hi;
            const auto start = shapes_.of(f->lo).least;
            first = first && start ? std::optional(std::min(*first, *start)) : std::nullopt;
            if (lo && hi) least = std::min(least, *lo), most = std::max(most, *hi - 1);
        }
        return constant ? constant_shape(least, most) : atom_shape({ExprKind::var, id}, first);
    }
    if (values.size() == 1 && !mentions(values[0], id)) return shapes_.of(values[0]);
    if (counter(id)) return atom_shape({ExprKind::var, id}, std::nullopt);
    return finite_shape(id);
}

// A variable that takes few values: set to periodic ones, and updated from itself alone, so that it goes round.
Shape SteeringReader::finite_shape(int id) {
    std::optional<Shape> whole;
    std::vector<Expr> updates;
    for (const Expr& v : assigned_[id]) {
        if (mentions(v, id)) {
            if (std::none_of(updates.begin(), updates.end(), [&](const Expr& u) { return ir::same(u, v); })) updates.push_back(v);
            continue;
        }
        const Shape s = shapes_.of(v);
        whole = whole ? either(*whole, s) : s;
        if (!whole->periodic()) return no_shape(whole->known() ? "takes values that grow" : whole->obstacle);
    }
    if (!whole) return no_shape("has no first value");
    if (updates.empty()) return *whole;
    if (!whole->least || !whole->most || *whole->most - *whole->least >= static_cast<std::int64_t>(largest_domain))
        return no_shape("is updated from itself over a range that is not known");
    auto next = [&](const Expr& update, std::int64_t x) {
        return ir::evaluate(update, [&](const ir::ExprNode& n, const std::vector<std::int64_t>&) {
            return n.kind == ExprKind::var && n.id == id ? std::optional(x) : std::nullopt;
        });
    };
    std::set<std::int64_t> domain;
    std::vector<std::int64_t> open;
    for (std::int64_t x = *whole->least; x <= *whole->most; ++x) domain.insert(x), open.push_back(x);
    while (!open.empty()) {
        const std::int64_t x = open.back();
        open.pop_back();
        for (const Expr& u : updates) {
            const auto y = next(u, x);
            if (!y) return no_shape("is updated with something else than itself and constants");
            if (domain.insert(*y).second) open.push_back(*y);
            if (domain.size() > largest_domain) return no_shape("is updated from itself and grows");
        }
    }
    std::int64_t round = 1;
    for (const Expr& u : updates) {
        for (const Expr& v : updates) {  // in whatever order they come
            for (std::int64_t x : domain) {
                if (next(u, *next(v, x)) != next(v, *next(u, x))) return no_shape("is updated in ways whose order matters");
            }
        }
        for (std::int64_t x : domain) {
            std::map<std::int64_t, std::int64_t> seen;
            std::int64_t steps = 0;
            while (seen.emplace(x, steps).second) x = *next(u, x), ++steps;
            round = std::lcm(round, steps - seen[x]);
            reach_[id] = std::max(reach_[id], seen[x]);  // before it goes round
            if (round > longest_period) return no_shape("goes round after more than " + std::to_string(longest_period) + " updates");
        }
    }
    whole->atoms[{ExprKind::var, id}] = {round, 0};
    whole->least = *domain.begin(), whole->most = *domain.rbegin();
    return *whole;
}

// A loop's variable or a counter, whose value has no bound.
bool SteeringReader::grows(int id) {
    if (k_.vars[at(id)].kind == ir::Variable::Kind::instance) return false;
    const Shape s = leaf_shape(ir::var_expr(id));
    return !s.known() || !s.periodic();
}

// Set to constants and advanced by constants, nothing else.
bool SteeringReader::counter(int id) {
    const auto& values = assigned_[id];
    return loops_[id].empty() && !values.empty() && std::all_of(values.begin(), values.end(), [&](const Expr& v) {
               return v.as_constant() ||
                      (v.kind() == ExprKind::add && v->args[0].kind() == ExprKind::var && v->args[0]->id == id && v->args[1].as_constant());
           });
}

}  // namespace tw::verify
