#include "verify/carried.h"

#include <algorithm>
#include <map>

namespace tw::verify {
namespace {

using ir::Expr;
using ir::ExprKind;

struct Uses {
    std::vector<int> fragments, scalars;
};

void read(const Expr& e, Uses& u) {
    if (e.kind() == ExprKind::var) u.scalars.push_back(e->id);
    for (const Expr& a : e->args) read(a, u);
}

void read(const std::optional<Expr>& e, Uses& u) {
    if (e) read(*e, u);
}

void read(const ir::Element& e, Uses& u) {
    if (e->op == ir::ElementOp::fragment) u.fragments.push_back(e->id);
    read(e->index, u);
    for (const ir::Element& a : e->args) read(a, u);
}

void read(const ir::GlobalView& v, Uses& u) {
    for (const Expr& e : v.origin) read(e, u);
    for (const auto& e : v.limit) read(e, u);
    if (v.gather_fragment >= 0) u.fragments.push_back(v.gather_fragment);
}

void read(const ir::SharedView& v, Uses& u) {
    for (const Expr& e : v.origin) read(e, u);
    read(v.cluster_rank, u);
}

// What data flow evaluates of one statement, without the statements in it.
Uses reads_of(const ir::Stmt& s) {
    Uses u;
    if (auto* x = std::get_if<ir::For>(&s.op)) read(x->lo, u), read(x->hi, u), read(x->step, u);
    if (auto* x = std::get_if<ir::If>(&s.op)) {
        read(x->condition, u);
        if (x->vote >= 0) u.fragments.push_back(x->vote);
    }
    if (auto* x = std::get_if<ir::Assign>(&s.op)) read(x->value, u);
    if (auto* x = std::get_if<ir::Compute>(&s.op)) read(x->value, u);
    if (auto* x = std::get_if<ir::Reduce>(&s.op)) u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::Scan>(&s.op)) u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::Shuffle>(&s.op)) u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) read(x->src, u);
    if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) read(x->dst, u), u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) read(x->dst, u), u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::LoadShared>(&s.op)) read(x->src, u);
    if (auto* x = std::get_if<ir::StoreShared>(&s.op)) read(x->dst, u), u.fragments.push_back(x->src);
    if (auto* x = std::get_if<ir::CpAsync>(&s.op)) read(x->dst, u), read(x->src, u);
    if (auto* x = std::get_if<ir::TmaLoad>(&s.op)) {
        read(x->dst, u), read(x->multicast_mask, u);
        for (const Expr& e : x->coordinates) read(e, u);
    }
    if (auto* x = std::get_if<ir::TmaStore>(&s.op)) {
        read(x->src, u);
        for (const Expr& e : x->coordinates) read(e, u);
    }
    if (auto* x = std::get_if<ir::Wgmma>(&s.op)) {
        if (auto* view = std::get_if<ir::SharedView>(&x->a)) read(*view, u);
        else u.fragments.push_back(std::get<int>(x->a));
        read(x->b, u), read(x->accumulate, u);
        if (!x->accumulate.is_constant(0)) u.fragments.push_back(x->acc);
    }
    if (auto* x = std::get_if<ir::Mma>(&s.op)) u.fragments.insert(u.fragments.end(), {x->a, x->b, x->acc});
    return u;
}

// What it leaves written, as a whole.
void write(const ir::Stmt& s, std::set<int>& fragments, std::set<int>& scalars) {
    if (auto* x = std::get_if<ir::Assign>(&s.op)) scalars.insert(x->var);
    if (auto* x = std::get_if<ir::Compute>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::Reduce>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::Scan>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::Shuffle>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::LoadShared>(&s.op)) fragments.insert(x->dst);
    if (auto* x = std::get_if<ir::Wgmma>(&s.op)) fragments.insert(x->acc);
    if (auto* x = std::get_if<ir::Mma>(&s.op)) fragments.insert(x->acc);
}

using Written = std::pair<std::set<int>, std::set<int>>;   // fragments, scalars: by every way to this point

void walk(const ir::Region& region, Written& written, Carried& out) {
    for (const ir::Stmt& s : region) {
        const Uses u = reads_of(s);
        for (int f : u.fragments) {
            if (!written.first.count(f)) out.fragments.insert(f);
        }
        for (int v : u.scalars) {
            if (!written.second.count(v)) out.scalars.insert(v);
        }
        if (auto* x = std::get_if<ir::If>(&s.op)) {
            Written then = written, otherwise = written;
            walk(x->then, then, out);
            walk(x->otherwise, otherwise, out);
            auto common = [](const std::set<int>& a, const std::set<int>& b) {
                std::set<int> c;
                std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(c, c.end()));
                return c;
            };
            written = {common(then.first, otherwise.first), common(then.second, otherwise.second)};
            continue;
        }
        Written inside = written;   // of what may not run, or not for all
        if (auto* x = std::get_if<ir::For>(&s.op)) inside.second.insert(x->var), walk(x->body, inside, out);
        if (auto* x = std::get_if<ir::Role>(&s.op)) {
            if (x->instance_var >= 0) inside.second.insert(x->instance_var);
            walk(x->body, inside, out);
        }
        if (auto* x = std::get_if<ir::Elect>(&s.op)) walk(x->body, inside, out);
        write(s, written.first, written.second);
    }
}

}  // namespace

Carried carried_by(const ir::Kernel& kernel, const ir::For& loop) {
    Carried result;
    Written written;
    written.second.insert(loop.var);
    walk(loop.body, written, result);
    // Read outside: more often in the kernel than in the loop. Invariants may speak of anything.
    std::map<int, int> fragments, scalars;
    bool stated = false;
    auto count = [&](const ir::Region& region, int by) {
        ir::for_each_stmt(region, [&](const ir::Stmt& s) {
            stated |= std::holds_alternative<ir::Expect>(s.op);
            const Uses u = reads_of(s);
            for (int f : u.fragments) fragments[f] += by;
            for (int v : u.scalars) scalars[v] += by;
        });
    };
    count(kernel.body, 1);
    count(loop.body, -1);
    for (const auto& [f, n] : fragments) {
        if (n > 0 || stated) result.fragments.insert(f);
    }
    for (const auto& [v, n] : scalars) {
        if (n > 0 || stated) result.scalars.insert(v);
    }
    return result;
}

}  // namespace tw::verify
