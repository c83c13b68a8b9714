// Mutation operators on synchronisation: barriers, phases, groups, fences, clusters and collectives.
#include "diagnose/mutate_sites.h"

namespace tw::diagnose {
namespace {

template <class... Kinds>
bool is_any(const ir::Stmt& s) {
    return (std::holds_alternative<Kinds>(s.op) || ...);
}

void drop(Site& s) { s.region.erase(s.region.begin() + static_cast<std::ptrdiff_t>(s.at)); }
void swap_with_next(Site& s) { std::swap(s.region[s.at], s.region[s.at + 1]); }
void swap_with_previous(Site& s) { std::swap(s.region[s.at], s.region[s.at - 1]); }

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
                if (!c || *c < 2 || *c > 16) return {};   // rings, not tiles
                return {ir::make_expr(n.kind(), {n->args[0], *c - 1}), ir::make_expr(n.kind(), {n->args[0], *c + 1})};
            }));
        }
        if (role == ExprRole::parity) replace("sync/parity", {(e + 1) % 2});
        if (role == ExprRole::bytes) replace("sync/bytes", {e + 16, e - 16, e / 2});
        if (role == ExprRole::mask) replace("cluster/mask", {ir::Expr(1), ir::make_expr(ir::ExprKind::shift_left, {1, ir::cluster_rank()})});
        if (role == ExprRole::rank) replace("cluster/rank", {ir::cluster_rank(), ir::Expr(0), ir::Expr(1)});
        if (role == ExprRole::id) replace("sync/named", {e + 1});
        if (role == ExprRole::condition) {
            replace("pipeline/guard", rewrites(e, [](const ir::Expr& n) -> std::vector<ir::Expr> {
                if (n.kind() == ir::ExprKind::lt) return {ir::make_expr(ir::ExprKind::le, n->args), ir::make_expr(ir::ExprKind::lt, {n->args[0] + 1, n->args[1]}), ir::Expr(1)};
                if (n.kind() == ir::ExprKind::le) return {ir::make_expr(ir::ExprKind::lt, n->args)};
                if (n.kind() == ir::ExprKind::eq) return {ir::make_expr(ir::ExprKind::ne, n->args)};
                return {};
            }));
        }
    }
}

}  // namespace

void mutate_synchronisation(MutantList& list, const ir::Stmt& stmt, const ir::Region& region, std::size_t at, const SiteContext& context) {
    using namespace ir;
    rings(list, stmt);
    if (is_any<BarrierWait, BlockSync, NamedSync, NamedArrive, WarpSync, CpAsyncArrive, BarrierExpect>(stmt)) list.edit("sync/drop", "dropped", drop);
    if (is_any<BarrierInit, BarrierInitFence>(stmt)) list.edit("sync/init", "dropped", drop);
    if (is_any<CpAsyncCommit, WgmmaCommit, BulkCommit, WgmmaFence>(stmt)) list.edit("pipeline/groups", "dropped", drop);
    if (is_any<CpAsyncWait, WgmmaWait, BulkWait>(stmt)) {
        list.edit("pipeline/wait", "dropped", drop);
        list.change("pipeline/groups", [](Stmt& s) {
            if (auto* w = std::get_if<CpAsyncWait>(&s.op)) ++w->pending;
            if (auto* w = std::get_if<WgmmaWait>(&s.op)) ++w->pending;
            if (auto* w = std::get_if<BulkWait>(&s.op)) ++w->pending;
        });
    }
    if (is_any<BarrierArrive>(stmt)) {
        list.edit(context.last_arrive ? "pipeline/final_arrive" : "pipeline/arrive", "dropped", drop);
        list.edit("sync/arrivals", "doubled", [](Site& s) { s.region.insert(s.region.begin() + static_cast<std::ptrdiff_t>(s.at), Stmt(s.stmt())); });
    }
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
    if (is_any<ClusterArrive, ClusterWait>(stmt)) list.edit("cluster/barrier", "dropped", drop);
    if (is_any<ClusterArrive>(stmt)) list.change("cluster/barrier", [](Stmt& s) { auto& a = std::get<ClusterArrive>(s.op); a.relaxed = !a.relaxed; });
    if (is_any<BarrierWait, BlockSync, NamedSync, CpAsyncWait, WgmmaWait, BulkWait, BarrierArrive, BarrierInitFence, WgmmaFence, WgmmaCommit, CpAsyncCommit, BulkCommit>(stmt)) {
        if (at + 1 < region.size()) list.edit("sync/move", "moved one statement down:", swap_with_next);
        if (at > 0) list.edit("sync/move", "moved one statement up:", swap_with_previous);
    }
    if (is_any<ProxyFence>(stmt)) {
        list.edit("proxy/fence", "dropped", drop);
        if (at + 1 < region.size()) list.edit("proxy/order", "moved one statement down:", swap_with_next);
        if (at > 0) list.edit("proxy/order", "moved one statement up:", swap_with_previous);
    }
    if (is_any<BlockSync, NamedSync, BarrierWait, ProxyFence, ClusterArrive, ClusterWait, WgmmaWait>(stmt)) {
        list.edit("collective/elect", "one thread only:", wrap_in_elect);
    }
    if (context.instance_var >= 0 && is_any<NamedSync, BarrierWait, BarrierArrive, ProxyFence, WgmmaWait>(stmt)) {
        list.edit("collective/instance", "first instance only:", [&](Site& s) {
            Stmt wrapped;
            wrapped.loc = s.stmt().loc;
            If only;
            only.condition = equal(var_expr(context.instance_var), 0);
            only.then.push_back(s.stmt());
            wrapped.op = std::move(only);
            s.region[s.at] = std::move(wrapped);
        });
    }
    Stmt copy = stmt;
    for (const BarrierRef* b : barriers_of(copy)) {
        const auto& arrays = list.kernel().barriers;
        const int slots = arrays[static_cast<std::size_t>(b->array)].slots;
        if (slots > 1) list.change("sync/barrier", [&](Stmt& s) { BarrierRef* r = barriers_of(s)[0]; r->slot = (r->slot + 1) % slots; });
        for (std::size_t other = 0; other < arrays.size(); ++other) {
            if (static_cast<int>(other) == b->array || arrays[other].slots != slots || is_any<BarrierInit>(stmt)) continue;
            list.change("sync/barrier", [&](Stmt& s) { barriers_of(s)[0]->array = static_cast<int>(other); });
        }
    }
    if (const auto* a = std::get_if<Assign>(&stmt.op); a && mentions_var(a->value, a->var)) {
        list.edit("pipeline/counter", "dropped", drop);
        list.change("pipeline/counter", [](Stmt& s) { auto& x = std::get<Assign>(s.op); x.value = x.value + 1; });
    }
}

}  // namespace tw::diagnose
