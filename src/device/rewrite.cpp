#include "device/rewrite.h"

namespace tw::device {
namespace {

class Mapper {
public:
    explicit Mapper(const MapExpr& map) : map_(map) {}

    void operator()(ir::For& o) const { expr(o.lo), expr(o.hi), expr(o.step); }
    void operator()(ir::If& o) const { expr(o.condition); }
    void operator()(ir::Assign& o) const { expr(o.value); }
    void operator()(ir::Compute& o) const { element(o.value); }
    void operator()(ir::LoadGlobal& o) const { view(o.src); }
    void operator()(ir::StoreGlobal& o) const { view(o.dst); }
    void operator()(ir::AtomicAdd& o) const { view(o.dst); }
    void operator()(ir::LoadShared& o) const { view(o.src); }
    void operator()(ir::StoreShared& o) const { view(o.dst); }
    void operator()(ir::CpAsync& o) const { view(o.dst), view(o.src); }
    void operator()(ir::CpAsyncArrive& o) const { barrier(o.barrier); }
    void operator()(ir::TmaLoad& o) const {
        view(o.dst), barrier(o.barrier), exprs(o.coordinates);
        if (o.multicast_mask) expr(*o.multicast_mask);
    }
    void operator()(ir::TmaStore& o) const { view(o.src), exprs(o.coordinates); }
    void operator()(ir::BarrierInit& o) const { barrier(o.barrier); }
    void operator()(ir::BarrierArrive& o) const { barrier(o.barrier); }
    void operator()(ir::BarrierExpect& o) const { barrier(o.barrier), expr(o.bytes); }
    void operator()(ir::BarrierWait& o) const { barrier(o.barrier), expr(o.parity); }
    void operator()(ir::NamedSync& o) const { expr(o.id); }
    void operator()(ir::NamedArrive& o) const { expr(o.id); }
    void operator()(ir::TeamSend& o) const { expr(o.message); }
    void operator()(ir::TeamReceive& o) const { expr(o.message); }
    void operator()(ir::Wgmma& o) const {
        if (auto* v = std::get_if<ir::SharedView>(&o.a)) view(*v);
        view(o.b), expr(o.accumulate);
    }
    template <class Other>
    void operator()(Other&) const {}

    void element(ir::Element& e) const {
        e = mapped(e, [&](const ir::Element& n) {
            if (n->op != ir::ElementOp::index) return n;
            auto changed = std::make_shared<ir::ElementNode>(*n);
            expr(changed->index);
            return ir::Element(std::move(changed));
        });
    }
    void access(ir::AccessPlan& plan) const {
        for (auto& d : plan.dims) expr(d.end);
    }
    void expr(ir::Expr& e) const { e = map_(e); }

private:
    void exprs(std::vector<ir::Expr>& list) const {
        for (ir::Expr& e : list) expr(e);
    }
    void view(ir::SharedView& v) const {
        exprs(v.origin);
        if (v.cluster_rank) expr(*v.cluster_rank);
    }
    void view(ir::GlobalView& v) const {
        exprs(v.origin);
        for (auto& limit : v.limit) {
            if (limit) expr(*limit);
        }
    }
    void barrier(ir::BarrierRef& b) const {
        expr(b.slot);
        if (b.cluster_rank) expr(*b.cluster_rank);
    }

    const MapExpr& map_;
};

void walk(ir::Region& region, Place place, const std::function<void(ir::Stmt&, const Place&)>& visit) {
    place.region = &region;
    for (ir::Stmt& s : region) {
        visit(s, place);
        Place inner = place;
        if (auto* f = std::get_if<ir::For>(&s.op)) walk(f->body, inner, visit);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) inner.elected = true, walk(e->body, inner, visit);
        if (auto* r = std::get_if<ir::Role>(&s.op)) inner.threads = 32 * r->warps_per_instance, walk(r->body, inner, visit);
        if (auto* i = std::get_if<ir::If>(&s.op)) {
            inner.votes += i->vote >= 0;
            walk(i->then, inner, visit);
            walk(i->otherwise, inner, visit);
        }
    }
}

}  // namespace

void map_exprs(ir::Stmt& stmt, const MapExpr& map) {
    const Mapper mapper(map);
    std::visit(mapper, stmt.op);
    if (!stmt.device) return;
    set_device(stmt, [&](ir::DeviceStmt& d) {
        if (d.mask) mapper.expr(d.mask->everywhere);
        if (d.search && d.search->any) mapper.element(d.search->any);
        if (d.access) mapper.access(*d.access);
    });
}

ir::Expr mapped(const ir::Expr& e, const MapExpr& node) {
    if (e->args.empty()) return node(e);
    std::vector<ir::Expr> args;
    bool changed = false;
    for (const ir::Expr& a : e->args) {
        args.push_back(mapped(a, node));
        changed |= &args.back().node() != &a.node();
    }
    if (!changed) return node(e);
    return node(e.kind() == ir::ExprKind::element ? ir::element_expr(e->id, std::move(args)) : ir::make_expr(e.kind(), std::move(args)));
}

ir::Element mapped(const ir::Element& e, const MapElement& node) {
    std::vector<ir::Element> args;
    bool changed = false;
    for (const ir::Element& a : e->args) {
        args.push_back(mapped(a, node));
        changed |= args.back() != a;
    }
    if (!changed) return node(e);
    auto with = std::make_shared<ir::ElementNode>(*e);
    with->args = std::move(args);
    return node(with);
}

bool same(const ir::Element& a, const ir::Element& b) {
    if (a == b) return true;
    if (a->op != b->op || a->dtype != b->dtype || a->id != b->id || a->dims != b->dims || a->offset != b->offset ||
        a->number != b->number || a->approximate != b->approximate || a->part != b->part || a->run != b->run || a->plain != b->plain ||
        a->args.size() != b->args.size() || !ir::same(a->index, b->index))
        return false;
    for (std::size_t i = 0; i < a->args.size(); ++i) {
        if (!same(a->args[i], b->args[i])) return false;
    }
    return true;
}

void for_each_place(ir::Kernel& kernel, const std::function<void(ir::Stmt&, const Place&)>& visit) {
    walk(kernel.body, {nullptr, 32 * kernel.warps, false, 0}, visit);
}

}  // namespace tw::device
