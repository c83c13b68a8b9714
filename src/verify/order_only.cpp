#include "verify/order_only.h"

#include <algorithm>

#include "base/index.h"
#include "ir/uses.h"

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

bool reads_element(const Expr& e) { return e.kind() == ExprKind::element || std::any_of(e->args.begin(), e->args.end(), reads_element); }

class Slice {
public:
    explicit Slice(const ir::Kernel& k) : k_(k), needed_(k.vars.size(), false) {}

    OrderOnly made() {
        bool stated = false;
        std::set<int> assigned;
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
            stated |= std::holds_alternative<ir::Expect>(s.op);
            if (auto* a = std::get_if<ir::Assign>(&s.op)) assigned.insert(a->var);
        });
        OrderOnly result;
        if (stated) return result;
        // What data flow needs grows until a branch that only counts needs nothing, nor an assignment to what is not needed.
        for (grew_ = true; grew_;) {
            grew_ = false;
            ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) { visit(s); });
        }
        for (int v : assigned) {
            if (!needed_[at(v)]) result.scalars.insert(v);
        }
        ir::for_each_stmt(k_.body, [&](const ir::Stmt& s) {
            if (auto* i = std::get_if<ir::If>(&s.op); i && only_synchronises(*i)) result.branches.insert(&s);
        });
        return result;
    }

private:
    void need(const Expr& e) {
        if (e.kind() == ExprKind::var && !needed_[at(e->id)]) needed_[at(e->id)] = grew_ = true;
        for (const Expr& a : e->args) need(a);
    }
    // The slot is a fixed dimension. Through an overlay an element is found by its address, and that takes every dimension.
    void need(const ir::SharedView& v) {
        for (std::size_t d = 0; d < v.origin.size(); ++d) {
            if (overlaid(v.buffer) || std::find(v.dims.begin(), v.dims.end(), static_cast<int>(d)) != v.dims.end()) need(v.origin[d]);
        }
        if (v.cluster_rank) need(*v.cluster_rank);
    }
    bool overlaid(int buffer) const {
        const ir::SharedBuffer& x = k_.buffers[at(buffer)];
        return std::any_of(k_.buffers.begin(), k_.buffers.end(), [&](const ir::SharedBuffer& y) {
            return &x != &y && x.byte_offset < y.byte_offset + y.bytes && y.byte_offset < x.byte_offset + x.bytes;
        });
    }

    bool only_synchronises(const ir::If& i) const {
        return !reads_element(i.condition) && only_synchronises(i.then) && only_synchronises(i.otherwise);
    }
    bool only_synchronises(const ir::Region& region) const {
        return std::all_of(region.begin(), region.end(), [&](const ir::Stmt& s) {
            if (auto* a = std::get_if<ir::Assign>(&s.op)) return !needed_[at(a->var)] && !reads_element(a->value);
            if (auto* i = std::get_if<ir::If>(&s.op)) return only_synchronises(*i);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) return only_synchronises(e->body);
            auto is = [&]<class... Ops>() { return (std::holds_alternative<Ops>(s.op) || ...); };
            return is.
            operator()<ir::BarrierArrive, ir::BarrierExpect, ir::BarrierWait, ir::CpAsyncArrive, ir::CpAsyncCommit, ir::CpAsyncWait,
                       ir::BulkCommit, ir::BulkWait, ir::BlockSync, ir::NamedSync, ir::NamedArrive, ir::WarpSync, ir::ClusterArrive,
                       ir::ClusterWait, ir::ProxyFence, ir::BlockFence, ir::WgmmaFence, ir::WgmmaCommit, ir::WgmmaWait>();
        });
    }

    void visit(const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::Assign>(&s.op)) {
            if (reads_element(x->value) && !needed_[at(x->var)])
                needed_[at(x->var)] = grew_ = true;  // that the element exists is shown where it is read
            if (!needed_[at(x->var)]) return;
        }
        if (auto* x = std::get_if<ir::If>(&s.op); x && only_synchronises(*x)) return;
        ir::visit_uses(s, {.expr = [&](const Expr& e) { need(e); }, .shared = [&](const ir::SharedView& v) { need(v); }});
    }

    const ir::Kernel& k_;
    std::vector<bool> needed_;  // by variable
    bool grew_ = false;
};

}  // namespace

bool OrderOnly::mentioned(const Expr& e) const {
    return (e.kind() == ExprKind::var && scalars.count(e->id)) ||
           std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return mentioned(a); });
}

OrderOnly order_only(const ir::Kernel& kernel) { return Slice(kernel).made(); }

}  // namespace tw::verify
