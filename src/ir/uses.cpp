#include "ir/uses.h"

namespace tw::ir {
namespace {

class Walk {
public:
    explicit Walk(const UseVisitor& v) : v_(v) {}

    void operator()(const For& o) const { bind(o.var), expr(o.lo), expr(o.hi), expr(o.step); }
    void operator()(const If& o) const {
        expr(o.condition);
        if (o.vote >= 0) read(o.vote);
    }
    void operator()(const Role& o) const {
        if (o.instance_var >= 0) bind(o.instance_var);
    }
    void operator()(const Assign& o) const { expr(o.value), bind(o.var); }
    void operator()(const Compute& o) const { element(*o.value), write(o.dst); }
    void operator()(const Reduce& o) const { read(o.src), write(o.dst); }
    void operator()(const Scan& o) const { read(o.src), write(o.dst); }
    void operator()(const Shuffle& o) const { read(o.src), write(o.dst); }
    void operator()(const LoadGlobal& o) const { view(o.src), write(o.dst); }
    void operator()(const StoreGlobal& o) const { view(o.dst), read(o.src); }
    void operator()(const AtomicAdd& o) const { view(o.dst), read(o.src); }
    void operator()(const LoadShared& o) const { view(o.src), write(o.dst); }
    void operator()(const StoreShared& o) const { view(o.dst), read(o.src); }
    void operator()(const CpAsync& o) const { view(o.dst), view(o.src); }
    void operator()(const CpAsyncArrive& o) const { barrier(o.barrier); }
    void operator()(const TmaLoad& o) const {
        view(o.dst), barrier(o.barrier);
        for (const Expr& c : o.coordinates) expr(c);
        if (o.multicast_mask) expr(*o.multicast_mask);
    }
    void operator()(const TmaStore& o) const {
        view(o.src);
        for (const Expr& c : o.coordinates) expr(c);
    }
    void operator()(const BarrierInit& o) const { barrier(o.barrier); }
    void operator()(const BarrierArrive& o) const { barrier(o.barrier); }
    void operator()(const BarrierExpect& o) const { barrier(o.barrier), synchronise(o.bytes); }
    void operator()(const BarrierWait& o) const { barrier(o.barrier), synchronise(o.parity); }
    void operator()(const NamedSync& o) const { synchronise(o.id); }
    void operator()(const NamedArrive& o) const { synchronise(o.id); }
    void operator()(const TeamSend& o) const {
        synchronise(o.message);
        for (int f : o.src) read(f);
    }
    void operator()(const TeamReceive& o) const {
        synchronise(o.message);
        for (int f : o.dst) write(f);
    }
    void operator()(const Wgmma& o) const {
        if (auto* fragment = std::get_if<int>(&o.a)) read(*fragment);
        else view(std::get<SharedView>(o.a));
        view(o.b), expr(o.accumulate);
        if (!o.accumulate.is_constant(0)) read(o.acc);
        write(o.acc);
    }
    void operator()(const Pin& o) const {
        for (int f : o.fragments) read(f);
    }
    void operator()(const Mma& o) const { read(o.a), read(o.b), read(o.acc), write(o.acc); }
    // The rest uses nothing. By name, so that a new statement does not compile until it has been thought of.
    void operator()(const Elect&) const {}
    void operator()(const CpAsyncCommit&) const {}
    void operator()(const CpAsyncWait&) const {}
    void operator()(const BulkCommit&) const {}
    void operator()(const BulkWait&) const {}
    void operator()(const BarrierInitFence&) const {}
    void operator()(const BlockSync&) const {}
    void operator()(const WarpSync&) const {}
    void operator()(const ClusterArrive&) const {}
    void operator()(const ClusterWait&) const {}
    void operator()(const ProxyFence&) const {}
    void operator()(const BlockFence&) const {}
    void operator()(const SetMaxRegisters&) const {}
    void operator()(const GridWait&) const {}
    void operator()(const GridLaunch&) const {}
    void operator()(const WgmmaFence&) const {}
    void operator()(const WgmmaCommit&) const {}
    void operator()(const WgmmaWait&) const {}
    void operator()(const Expect&) const {}
    void operator()(const Sugar&) const {}

private:
    template <class Hook, class Argument>
    static void call(const Hook& hook, const Argument& argument) {
        if (hook) hook(argument);
    }
    void read(int fragment) const { call(v_.reads, fragment); }
    void write(int fragment) const { call(v_.writes, fragment); }
    void bind(int variable) const { call(v_.binds, variable); }
    void expr(const Expr& e) const { call(v_.expr, e); }
    void synchronise(const Expr& e) const { call(v_.synchronises, e); }
    void element(const ElementNode& e) const {
        if (e.op == ElementOp::fragment) read(e.id);
        if (e.op == ElementOp::index) expr(e.index);
        for (const Element& a : e.args) element(*a);
    }
    void view(const SharedView& s) const {
        if (v_.shared) return v_.shared(s);
        for (const Expr& e : s.origin) expr(e);
        if (s.cluster_rank) expr(*s.cluster_rank);
    }
    void view(const GlobalView& g) const {
        call(v_.tensor, g.tensor);
        for (const Expr& e : g.origin) expr(e);
        for (const auto& limit : g.limit) {
            if (limit) expr(*limit);
        }
        if (g.gather_fragment >= 0) read(g.gather_fragment);
    }
    void barrier(const BarrierRef& b) const {
        synchronise(b.slot);
        if (b.cluster_rank) synchronise(*b.cluster_rank);
    }

    const UseVisitor& v_;
};

}  // namespace

void visit_uses(const Stmt& stmt, const UseVisitor& visitor) { std::visit(Walk(visitor), stmt.op); }

void visit_leaves(const Expr& e, const std::function<void(int)>& variable, const std::function<void(int)>& element_of) {
    if (e.kind() == ExprKind::var && variable) variable(e->id);
    if (e.kind() == ExprKind::element && element_of) element_of(e->id);
    for (const Expr& a : e->args) visit_leaves(a, variable, element_of);
}

}  // namespace tw::ir
