// Mutation operators on synchronisation: barriers, phases, groups, fences, clusters and collectives.
#include <algorithm>

#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

template <class... Kinds>
bool is_any(const ir::Stmt& s) {
    return (std::holds_alternative<Kinds>(s.op) || ...);
}

void swap_with_next(Site& s) { std::swap(s.region[s.at], s.region[s.at + 1]); }
void swap_with_previous(Site& s) { std::swap(s.region[s.at], s.region[s.at - 1]); }

// Past the rest of its region, or before all of it.
void move_to_end(Site& s) {
    std::rotate(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), s.region.begin() + static_cast<std::ptrdiff_t>(s.at) + 1,
                s.region.end());
}
void move_to_front(Site& s) {
    std::rotate(s.region.begin(), s.region.begin() + static_cast<std::ptrdiff_t>(s.at),
                s.region.begin() + static_cast<std::ptrdiff_t>(s.at) + 1);
}

void wrap_in_elect(Site& s) {
    ir::Stmt wrapped;
    wrapped.loc = s.stmt().loc;
    ir::Elect elect;
    elect.body.push_back(s.stmt());
    wrapped.op = std::move(elect);
    s.region[s.at] = std::move(wrapped);
}

void rings(MutantList& list, const ir::Stmt& stmt) {
    ir::Stmt copy = stmt;
    const auto places = expressions_of(copy);
    for (std::size_t i = 0; i < places.size(); ++i) {
        const ExprRole role = places[i].role;
        auto replace = [&](const char* operation, const std::vector<ir::Expr>& with) {
            for (const ir::Expr& e : with) list.change(operation, [&](ir::Stmt& s) { *expressions_of(s)[i].expr = e; });
        };
        const ir::Expr e = *places[i].expr;
        if (role == ExprRole::assigned || role == ExprRole::slot || role == ExprRole::parity || role == ExprRole::shared_origin) {
            replace("pipeline/stages", rewrites(e, [](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() != ir::ExprKind::mod && n.kind() != ir::ExprKind::floor_div) return {};
                        const auto c = n->args[1].as_constant();
                        if (!c || *c < 2 || *c > 16) return {};  // rings, not tiles
                        return {ir::make_expr(n.kind(), {n->args[0], *c - 1}), ir::make_expr(n.kind(), {n->args[0], *c + 1})};
                    }));
        }
        if (role == ExprRole::assigned || role == ExprRole::slot || role == ExprRole::shared_origin) {
            replace("pipeline/slot", rewrites(e, [](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() != ir::ExprKind::mod && n.kind() != ir::ExprKind::floor_div) return {};
                        const auto c = n->args[1].as_constant();
                        if (!c || *c < 2 || *c > 16) return {};
                        return {ir::make_expr(n.kind(), {n->args[0] + 1, *c}), ir::make_expr(n.kind(), {n->args[0] + (*c - 1), *c})};
                    }));
        }
        if (role == ExprRole::parity) replace("sync/parity", {(e + 1) % 2, ir::Expr(0), ir::Expr(1)});
        if (role == ExprRole::bytes) replace("sync/bytes", {e + 16, e - 16, e / 2});
        if (role == ExprRole::mask)
            replace("cluster/mask", {ir::Expr(1), ir::make_expr(ir::ExprKind::shift_left, {1, ir::cluster_rank()})});
        if (role == ExprRole::rank) {
            const auto& c = list.kernel().cluster;
            replace("cluster/rank", {ir::cluster_rank(), ir::Expr(0), ir::Expr(1), (e + 1) % (c[0] * c[1] * c[2])});
        }
        if (role == ExprRole::id) replace("sync/named", {e + 1});
        if (role == ExprRole::condition) {
            replace("pipeline/guard", rewrites(e, [](const ir::Expr& n) -> std::vector<ir::Expr> {
                        if (n.kind() == ir::ExprKind::lt)
                            return {ir::make_expr(ir::ExprKind::le, n->args), ir::make_expr(ir::ExprKind::lt, {n->args[0] + 1, n->args[1]}),
                                    ir::Expr(1)};
                        if (n.kind() == ir::ExprKind::le) return {ir::make_expr(ir::ExprKind::lt, n->args)};
                        if (n.kind() == ir::ExprKind::eq) return {ir::make_expr(ir::ExprKind::ne, n->args)};
                        if (n.kind() == ir::ExprKind::ne) return {ir::make_expr(ir::ExprKind::eq, n->args)};
                        if (n.kind() == ir::ExprKind::logic_and || n.kind() == ir::ExprKind::logic_or) return {n->args[0], n->args[1]};
                        return {};
                    }));
        }
    }
}

// What is waited for, and in which groups.
void drop_waits_and_groups(MutantList& list, const ir::Stmt& stmt) {
    using namespace ir;
    if (is_any<BarrierWait, BlockSync, NamedSync, NamedArrive, WarpSync, CpAsyncArrive, BarrierExpect>(stmt))
        list.edit("sync/drop", "dropped", drop);
    if (is_any<BarrierInit, BarrierInitFence>(stmt)) list.edit("sync/init", "dropped", drop);
    if (is_any<CpAsyncCommit, WgmmaCommit, BulkCommit, WgmmaFence>(stmt)) list.edit("pipeline/groups", "dropped", drop);
    if (is_any<CpAsyncCommit, WgmmaCommit, BulkCommit>(stmt)) list.edit("pipeline/groups", "doubled", double_statement);
    if (is_any<CpAsyncWait, WgmmaWait, BulkWait>(stmt)) {
        list.edit("pipeline/wait", "dropped", drop);
        list.change("pipeline/groups", [](Stmt& s) {
            if (auto* w = std::get_if<CpAsyncWait>(&s.op)) ++w->pending;
            if (auto* w = std::get_if<WgmmaWait>(&s.op)) ++w->pending;
            if (auto* w = std::get_if<BulkWait>(&s.op)) ++w->pending;
        });
    }
}

// How many arrive.
void change_arrivals(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    using namespace ir;
    if (is_any<BarrierArrive>(stmt)) {
        list.edit(context.last_arrive ? "pipeline/final_arrive" : "pipeline/arrive", "dropped", drop);
        list.edit("sync/arrivals", "doubled", double_statement);
        list.change("sync/arrivals", [](Stmt& s) { ++std::get<BarrierArrive>(s.op).count; });
        if (std::get<BarrierArrive>(stmt.op).barrier.cluster_rank)
            list.change("cluster/scope", [](Stmt& s) { std::get<BarrierArrive>(s.op).barrier.cluster_rank.reset(); });
    }
    if (is_any<BarrierExpect, CpAsyncArrive, NamedArrive>(stmt)) list.edit("sync/arrivals", "doubled", double_statement);
    if (is_any<CpAsyncArrive>(stmt))
        list.change("sync/arrivals", [](Stmt& s) {
            auto& a = std::get<CpAsyncArrive>(s.op);
            a.noinc = !a.noinc;
        });
    if (is_any<BarrierInit>(stmt)) {
        for (int by : {-1, 1}) list.change("sync/arrivals", [by](Stmt& s) { std::get<BarrierInit>(s.op).arrivals += by; });
    }
    if (is_any<NamedSync, NamedArrive>(stmt)) {
        for (int by : {-32, 32}) {
            list.change("sync/named", [by](Stmt& s) {
                if (auto* n = std::get_if<NamedSync>(&s.op)) n->threads += by;
                if (auto* n = std::get_if<NamedArrive>(&s.op)) n->threads += by;
            });
        }
    }
}

// Barriers, scopes and multicast of clusters.
void change_clusters(MutantList& list, const ir::Stmt& stmt, const ir::Region& region, std::size_t at) {
    using namespace ir;
    if (is_any<ClusterArrive, ClusterWait>(stmt)) {
        list.edit("cluster/barrier", "dropped", drop);
        list.edit("cluster/exit", "the other blocks of the cluster leave out", [](Site& s) { put_under(s, equal(cluster_rank(), 0)); });
    }
    if (is_any<ClusterArrive>(stmt) && at + 1 < region.size() && is_any<ClusterWait>(region[at + 1])) {
        list.edit("cluster/exit", "the whole barrier dropped at", [](Site& s) {
            s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), s.region.begin() + static_cast<std::ptrdiff_t>(s.at) + 2);
        });
        list.edit("cluster/scope", "a barrier of the block alone instead of", [](Site& s) {
            s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at) + 1);
            s.stmt().op = BlockSync{};
        });
    }
    Stmt viewed = stmt;
    const auto views = shared_views_of(viewed);
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (views[i]->cluster_rank) list.change("cluster/scope", [i](Stmt& s) { shared_views_of(s)[i]->cluster_rank.reset(); });
    }
    if (const auto* t = std::get_if<TmaLoad>(&stmt.op); t && t->multicast_mask)
        list.change("cluster/scope", [](Stmt& s) { std::get<TmaLoad>(s.op).multicast_mask.reset(); });
}

// A weaker statement, one that more threads execute, one that some rounds leave out.
void weaken_statement(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    using namespace ir;
    if (is_any<BlockSync, NamedSync>(stmt)) {
        list.edit("sync/weaker", "a barrier of each warp alone instead of", [](Site& s) { s.stmt().op = WarpSync{}; });
    }
    if (const auto* n = std::get_if<NamedSync>(&stmt.op)) {
        list.change("sync/weaker", [&](Stmt& s) { s.op = NamedArrive{n->id, n->threads}; });
    }
    if (const auto* w = std::get_if<BulkWait>(&stmt.op); w && !w->read)
        list.change("sync/weaker", [](Stmt& s) { std::get<BulkWait>(s.op).read = true; });
    if (const auto* e = std::get_if<Elect>(&stmt.op)) {
        list.edit("collective/unelected", "every thread does what is in", [&](Site& s) {
            Region body = e->body;
            s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at));
            s.region.insert(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), body.begin(), body.end());
        });
    }
    if (context.loop_var >= 0 && is_any<BarrierWait, BlockSync, NamedSync, NamedArrive, WarpSync, CpAsyncWait, WgmmaWait, BulkWait,
                                        BarrierArrive, BarrierExpect, ProxyFence>(stmt)) {
        list.edit("sync/skip",
                  "not when the loop's variable is 0:", [&](Site& s) { put_under(s, not_equal(var_expr(context.loop_var), 0)); });
        list.edit("sync/skip",
                  "only when the loop's variable is even:", [&](Site& s) { put_under(s, equal(var_expr(context.loop_var) % 2, 0)); });
    }
}

// The same statement at another place.
void move_statements(MutantList& list, const ir::Stmt& stmt, const ir::Region& region, std::size_t at) {
    using namespace ir;
    if (is_any<ClusterArrive>(stmt))
        list.change("cluster/barrier", [](Stmt& s) {
            auto& a = std::get<ClusterArrive>(s.op);
            a.relaxed = !a.relaxed;
        });
    if (is_any<BarrierWait, BlockSync, NamedSync, CpAsyncWait, WgmmaWait, BulkWait, BarrierArrive, BarrierInitFence, WgmmaFence,
               WgmmaCommit, CpAsyncCommit, BulkCommit>(stmt)) {
        if (at + 1 < region.size()) list.edit("sync/move", "moved one statement down:", swap_with_next);
        if (at > 0) list.edit("sync/move", "moved one statement up:", swap_with_previous);
        if (at + 2 < region.size()) list.edit("sync/far", "moved to the end of its region:", move_to_end);
        if (at > 1) list.edit("sync/far", "moved to the beginning of its region:", move_to_front);
    }
    if (is_any<ProxyFence>(stmt)) {
        if (at + 2 < region.size()) list.edit("proxy/order", "moved to the end of its region:", move_to_end);
        if (at > 1) list.edit("proxy/order", "moved to the beginning of its region:", move_to_front);
        list.edit("proxy/fence", "dropped", drop);
        if (at + 1 < region.size()) list.edit("proxy/order", "moved one statement down:", swap_with_next);
        if (at > 0) list.edit("proxy/order", "moved one statement up:", swap_with_previous);
    }
}

// Fences, scopes, and who takes part.
void narrow_scopes(MutantList& list, const ir::Stmt& stmt, const SiteContext& context) {
    using namespace ir;
    if (is_any<BlockFence>(stmt)) list.edit("sync/scope", "dropped", drop);
    for (const Scope weaker : {Scope::none, Scope::block}) {
        if (const auto* a = std::get_if<BarrierArrive>(&stmt.op); a && weaker < a->release)
            list.change("sync/scope", [weaker](Stmt& s) { std::get<BarrierArrive>(s.op).release = weaker; });
        if (const auto* w = std::get_if<BarrierWait>(&stmt.op); w && weaker < w->acquire)
            list.change("sync/scope", [weaker](Stmt& s) { std::get<BarrierWait>(s.op).acquire = weaker; });
    }
    if (is_any<BlockSync, NamedSync, BarrierWait, ProxyFence, ClusterArrive, ClusterWait, WgmmaWait>(stmt)) {
        list.edit("collective/elect", "one thread only:", wrap_in_elect);
    }
    if (context.instance_var >= 0 && is_any<NamedSync, BarrierWait, BarrierArrive, ProxyFence, WgmmaWait>(stmt)) {
        list.edit("collective/instance", "first instance only:", [&](Site& s) { put_under(s, equal(var_expr(context.instance_var), 0)); });
    }
}

// Another barrier, another slot, another count.
void change_barriers_and_counters(MutantList& list, const ir::Stmt& stmt) {
    using namespace ir;
    Stmt copy = stmt;
    for (const BarrierRef* b : barriers_of(copy)) {
        const auto& arrays = list.kernel().barriers;
        const int slots = arrays[static_cast<std::size_t>(b->array)].slots;
        if (slots > 1)
            list.change("sync/barrier", [&](Stmt& s) {
                BarrierRef* r = barriers_of(s)[0];
                r->slot = (r->slot + 1) % slots;
            });
        for (std::size_t other = 0; other < arrays.size(); ++other) {
            if (static_cast<int>(other) == b->array || arrays[other].slots != slots || is_any<BarrierInit>(stmt)) continue;
            list.change("sync/barrier", [&](Stmt& s) { barriers_of(s)[0]->array = static_cast<int>(other); });
        }
    }
    if (const auto* a = std::get_if<Assign>(&stmt.op); a && mentions_var(a->value, a->var)) {
        list.edit("pipeline/counter", "dropped", drop);
        list.change("pipeline/counter", [](Stmt& s) {
            auto& x = std::get<Assign>(s.op);
            x.value = x.value + 1;
        });
    }
}

}  // namespace

// Mutants are numbered in this order.
void mutate_synchronisation(MutantList& list, const ir::Stmt& stmt, const ir::Region& region, std::size_t at, const SiteContext& context) {
    rings(list, stmt);
    drop_waits_and_groups(list, stmt);
    change_arrivals(list, stmt, context);
    change_clusters(list, stmt, region, at);
    weaken_statement(list, stmt, context);
    move_statements(list, stmt, region, at);
    narrow_scopes(list, stmt, context);
    change_barriers_and_counters(list, stmt);
}

}  // namespace tw::diagnose
