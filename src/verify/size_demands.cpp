// What is asked of each size: the trip counts, remainders and counts that its values must show.
#include <functional>
#include <map>

#include "base/index.h"
#include "verify/instances.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

// Definitions written out; the one block of a persistent kernel that goes through all tiles.
Expr over_sizes(const ir::Kernel& k, const Expr& e, const std::map<int, std::vector<Expr>>& assigned) {
    return ir::written_out(e, [&](const ir::ExprNode& n) -> std::optional<Expr> {
        if (k.persistent && n.kind == ExprKind::block_index) return Expr(0);
        if (n.kind == ExprKind::grid_size) return k.persistent && n.id == 0 ? Expr(1) : k.grid[at(n.id)];
        if (n.kind != ExprKind::var) return std::nullopt;
        const auto found = assigned.find(n.id);
        if (found == assigned.end() || found->second.size() != 1 || ir::mentions_var(found->second[0], n.id)) return std::nullopt;
        return found->second[0];
    });
}

// T, where the order of events hangs on the size through (size + a) // T alone, with one a and one T: sizes that give one quotient are
// alike.
std::int64_t tile_that_decides(const ir::Kernel& k, const Steering& steering, int size) {
    std::optional<std::pair<std::int64_t, std::int64_t>> quotient;  // a, T
    bool alone = true;
    std::function<void(const Expr&)> look = [&](const Expr& e) {
        if (e.kind() == ExprKind::size && e->id == size) alone = false;
        if (e.kind() == ExprKind::floor_div) {
            const Expr& above = e->args[0];
            const auto divisor = e->args[1].as_constant();
            const bool shifted = above.kind() == ExprKind::add || above.kind() == ExprKind::sub;
            const Expr& leaf = shifted ? above->args[0] : above;
            const auto shift = shifted ? above->args[1].as_constant() : std::optional<std::int64_t>(0);
            if (divisor && shift && leaf.kind() == ExprKind::size && leaf->id == size) {
                const std::pair now{above.kind() == ExprKind::sub ? -*shift : *shift, *divisor};
                alone = alone && (!quotient || *quotient == now);
                quotient = now;
                return;
            }
        }
        for (const Expr& a : e->args) look(a);
    };
    for (const auto* list : {&steering.expressions, &steering.fixed_conditions, &steering.calm_conditions}) {
        for (const Expr& e : *list) look(e);
    }
    for (const auto& [stmt, loop] : steering.loops) look(loop.loop->lo), look(loop.loop->hi), look(loop.loop->step);
    for (const IrregularLoop& i : steering.irregular) look(i.trips);
    if (steering.by_block || k.persistent) {
        for (const Expr& g : k.grid) look(g);
    }
    for (int t : steering.tensors) {
        for (const Expr& d : k.tensors[at(t)].dims) look(d);
    }
    return alone && quotient && quotient->second > 0 ? quotient->second : 1;
}

// The expression with each value of what has few of them, in all combinations: instances of roles, ranks, blocks along an axis with a
// constant number of them, variables of loops between constants. Only itself where those are too many.
std::vector<Expr> with_few_values(const ir::Kernel& k, const Expr& e, const std::map<int, std::pair<std::int64_t, std::int64_t>>& ranges) {
    constexpr std::size_t most = 64;
    std::map<std::pair<ExprKind, int>, std::pair<std::int64_t, std::int64_t>> few;
    std::function<void(const Expr&)> look = [&](const Expr& x) {
        if (x.kind() == ExprKind::cluster_rank) few[{x.kind(), 0}] = {0, k.cluster[0] * k.cluster[1] * k.cluster[2]};
        if (x.kind() == ExprKind::block_index) {
            if (const auto blocks = k.grid[at(x->id)].as_constant()) few[{x.kind(), x->id}] = {0, *blocks};
        }
        if (const auto range = x.kind() == ExprKind::var ? ranges.find(x->id) : ranges.end(); range != ranges.end())
            few[{x.kind(), x->id}] = range->second;
        for (const Expr& a : x->args) look(a);
    };
    look(e);
    std::vector<Expr> all{e};
    for (const auto& [atom, range] : few) {
        std::vector<Expr> next;
        for (const Expr& x : all) {
            for (std::int64_t v = range.first; v < range.second && next.size() <= most; ++v) {
                next.push_back(ir::written_out(x, [&, atom = atom](const ir::ExprNode& n) -> std::optional<Expr> {
                    const int id = n.kind == ExprKind::cluster_rank ? 0 : n.id;
                    return n.kind == atom.first && id == atom.second ? std::optional<Expr>(v) : std::nullopt;
                }));
            }
        }
        all = std::move(next);
        if (all.size() > most) return {e};
    }
    return all;
}

}  // namespace

std::vector<SizeDemand> demands_of(const ir::Kernel& k, const Steering& steering, const std::set<const ir::For*>& in_step) {
    std::vector<SizeDemand> demands(k.sizes.size());
    std::map<int, std::vector<Expr>> assigned;
    std::map<int, std::vector<const ir::For*>> loops;
    std::map<int, std::pair<std::int64_t, std::int64_t>> ranges;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned[a->var].push_back(a->value);
        if (auto* r = std::get_if<ir::Role>(&s.op); r && r->instance_var >= 0) {
            auto& most = ranges[r->instance_var].second;
            most = std::max<std::int64_t>(most, r->instances);
        }
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            loops[f->var].push_back(f);
            const auto lo = f->lo.as_constant(), hi = f->hi.as_constant();
            if (lo && hi) ranges[f->var] = {*lo, *hi};
        }
    });
    const auto add_once = [](std::vector<Expr>& list, const Expr& e) {
        if (std::none_of(list.begin(), list.end(), [&](const Expr& x) { return ir::same(x, e); })) list.push_back(e);
    };
    std::set<int> seen;
    auto sizes_in = [&](const Expr& e, const std::function<void(int)>& found) {
        seen.clear();
        std::function<void(const Expr&)> look = [&](const Expr& x) {
            if (x.kind() == ExprKind::size) found(x->id);
            if ((x.kind() == ExprKind::block_index || x.kind() == ExprKind::grid_size) && !k.persistent) look(k.grid[at(x->id)]);
            if (x.kind() == ExprKind::var && seen.insert(x->id).second) {
                for (const Expr& v : assigned[x->id]) look(v);
                for (const ir::For* f : loops[x->id]) look(f->lo), look(f->hi);
            }
            if (x.kind() == ExprKind::element) {  // it counts up to where its promise ends
                const ir::Tensor& t = k.tensors[at(x->id)];
                if (t.content_range) look(t.content_range->second);
                if (t.offsets_of >= 0) look(k.tensors[at(t.offsets_of)].dims[0]);
                return;
            }
            for (const Expr& a : x->args) look(a);
        };
        look(e);
    };
    for (const auto& entry : steering.loops) {
        const ir::Stmt* stmt = entry.first;
        const SteeringLoop& loop = entry.second;
        const ir::For& f = *loop.loop;
        if (std::any_of(steering.irregular.begin(), steering.irregular.end(),
                        [&, s = stmt](const IrregularLoop& i) { return i.stmt == s; }))
            continue;  // taken to be anything
        const Expr trips = over_sizes(k, ir::ceil_div(f.hi - f.lo, f.step), assigned);
        for (const Expr& bound : {f.lo, f.hi, f.step}) {
            sizes_in(bound, [&](int size) {
                SizeDemand& d = demands[at(size)];
                d.cap = std::max(d.cap, loop.cap);
                d.period = std::max(d.period, loop.period), d.distance = std::max(d.distance, loop.distance);
                d.own_part = std::max(d.own_part, loop.own_part);
                d.by_inner = d.by_inner && loop.by_inner;
                d.apart = d.apart && in_step.count(&f) != 0;
                add_once(d.trips, trips);
                for (const Expr& e : with_few_values(k, trips, ranges)) add_once(d.counts, e);
            });
        }
    }
    for (const Expr& count : steering.counts) {
        sizes_in(count, [&](int size) {
            demands[at(size)].apart = false;
            add_once(demands[at(size)].counts, over_sizes(k, count, assigned));
        });
    }
    const bool follow_sizes = !steering.remainders.empty() ||
                              std::any_of(steering.residues.begin(), steering.residues.end(), [](const auto& r) { return r.second > 1; });
    for (const auto& [axis, period] : steering.block_residues) {  // blocks of every remainder
        sizes_in(k.grid[at(axis)], [&, p = period](int size) {
            demands[at(size)].cap = std::max(demands[at(size)].cap, p);
            if (p > 1 && follow_sizes) demands[at(size)].apart = false;  // jointly with the remainders of sizes
        });
    }
    for (const auto& [size, residue] : steering.residues) {
        demands[at(size)].residue = residue;
        if (residue > 1) demands[at(size)].apart = false;
    }
    for (int size : steering.falls) demands[at(size)].falls = true, demands[at(size)].apart = false;
    for (const auto& [size, list] : steering.remainders) {
        demands[at(size)].remainders = list;
        demands[at(size)].apart = false;
    }
    for (std::size_t i = 0; i < demands.size(); ++i) {
        SizeDemand& d = demands[i];
        if (d.residue == 1 || !d.remainders.empty()) continue;
        const std::int64_t tile = tile_that_decides(k, steering, static_cast<int>(i));
        if (d.residue % tile == 0) d.residue /= tile, d.residue_step = tile;
    }
    return demands;
}

}  // namespace tw::verify
