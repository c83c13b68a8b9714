// What steers the order of events: the whole reading, one question after the other; and upper bounds of expressions.
#include "verify/steering_reader.h"

#include <algorithm>
#include <numeric>

#include "base/index.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

}  // namespace

SteeringReader::SteeringReader(const ir::Kernel& k) : k_(k), names_(ir::names_of(k)) {
    shapes_.leaf = [this](const Expr& e) { return leaf_shape(e); };
    shapes_.threshold = [this](const Expr& e) { return threshold_at_an_end(e); };
    ir::for_each_stmt(k.body, [&](const Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned_[a->var].push_back(a->value);
        if (auto* f = std::get_if<ir::For>(&s.op)) loops_[f->var].push_back(f);
        if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0)
            instances_[r->instance_var] = std::max(instances_[r->instance_var], r->instances);
    });
}

Steering SteeringReader::read() {
    find_touched_in_flight();
    for (const ir::Team& team : k_.teams) result_.expressions.push_back(team.messages), result_.counts.push_back(team.messages);
    collect(k_.body);
    // Variables in steering expressions steer through what they are assigned.
    std::set<int> seen;
    result_.direct = result_.expressions.size();
    std::vector<Expr> queue = result_.expressions;
    while (!queue.empty() || take_calm(seen, queue)) {
        if (queue.empty()) continue;
        const Expr e = queue.back();
        queue.pop_back();
        visit(e, [&](const Expr& x) {
            if (x.kind() == ExprKind::block_index) result_.by_block = true;
            if (x.kind() == ExprKind::element) add_tensor(x->id);
            if (x.kind() != ExprKind::var || !seen.insert(x->id).second) return;
            for (const Expr& v : assigned_[x->id]) result_.expressions.push_back(v), queue.push_back(v);
            for (const ir::For* f : loops_[x->id]) {
                for (const Expr& b : {f->lo, f->hi, f->step}) result_.expressions.push_back(b), queue.push_back(b);
            }
        });
    }
    for (const auto& [e, what, line, in_memory] : places_) demand(e, what, line, in_memory);
    for (const auto& [e, stmt, line] : conditions_) {
        if (decided_by_data(e)) result_.by_data.insert(stmt);
        else demand(e, "the condition", line, false);
    }
    periods_of_arrivals();
    bounds_of_loops(k_.body, {});
    for (const ir::Team& team : k_.teams) count_of(written_out(team.messages), Expr(1), " at line " + ir::line_text(team.loc));
    compare_trips();
    starts_of_loops();
    loops_over_tiles();
    for (const auto& [condition, stmt, threshold] : trip_conditions_) {  // instances run every trip count that it can tell from longer ones
        if (threshold <= farthest_reach) {
            trip_reach_ = std::max(trip_reach_, threshold);
            continue;
        }
        result_.statements.erase(stmt);
        add_fixed(condition);
    }
    others_follow_tiles();
    caps(k_.body);
    for (const auto& [atom, step] : period_) {
        if (atom.first == ExprKind::size) result_.residues[atom.second] = step;
        if (atom.first == ExprKind::block_index) result_.block_residues[atom.second] = step;
    }
    for (int t : result_.tensors) {
        if (!k_.tensors[at(t)].content_range && !in_a_table(t)) {
            complain("the order of events depends on the contents of `" + k_.tensors[at(t)].name + "`, of which nothing is promised");
        }
    }
    return std::move(result_);
}

// Periodic in all that grows, or the lemma does not apply.
void SteeringReader::demand(const Expr& e, const std::string& what, const std::string& line, bool in_memory) {
    const Shape s = shapes_.of(e);
    if (!s.periodic()) {
        complain(what + " " + text(e) + " " + (s.known() ? "grows with its loop, the sizes or the data" : s.obstacle) + line);
        return;
    }
    for (const auto& [atom, step] : s.atoms) {
        if (atom.first == ExprKind::grid_size || (k_.persistent && atom.first == ExprKind::block_index))
            complain(what + " " + text(e) + " depends on how many blocks run, and on which this is" + line);
        std::int64_t& p = period_[atom];
        p = std::lcm(std::max<std::int64_t>(1, p), step.period);
        if (in_memory) {
            std::int64_t& q = places_period_[atom];
            q = std::lcm(std::max<std::int64_t>(1, q), step.period);
        }
        if (p > longest_period) {
            complain("the slots and phases repeat after more than " + std::to_string(longest_period) + " iterations");
            p = 1;
        }
    }
}

Steering steering_of(const ir::Kernel& kernel) { return SteeringReader(kernel).read(); }

std::optional<std::int64_t> upper_bound(const Expr& e) {
    if (auto c = e.as_constant()) return c;
    if (e.kind() == ExprKind::mod) {
        if (auto d = e->args[1].as_constant(); d && *d > 0) return *d - 1;
    }
    if (e.kind() == ExprKind::min) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        return a && b ? std::optional(std::min(*a, *b)) : a ? a : b;
    }
    if (e.kind() == ExprKind::max || e.kind() == ExprKind::select) {
        const std::size_t first = e.kind() == ExprKind::select ? 1 : 0;
        const auto a = upper_bound(e->args[first]), b = upper_bound(e->args[first + 1]);
        if (a && b) return std::max(*a, *b);
    }
    if (e.kind() == ExprKind::add) {
        const auto a = upper_bound(e->args[0]), b = upper_bound(e->args[1]);
        if (a && b) return *a + *b;
    }
    return std::nullopt;
}

}  // namespace tw::verify
