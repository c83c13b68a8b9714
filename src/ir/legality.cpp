#include "ir/legality.h"

#include <map>
#include <set>

#include "ir/shuffle.h"
#include "ir/uses.h"

namespace tw::ir {

const std::vector<LegalityRule>& legality_table() {
    using E = Executor;
    static const std::vector<LegalityRule> table = {
        {"for", E::anyone, "bounds and step are uniform in the group"},
        {"if", E::anyone, "the condition is uniform in the group; a vote: in a warp, and the branch concerns no other warp"},
        {"role", E::block_only, "whole warps of the block; roles do not nest"},
        {"elect", E::group, "one thread of the group; does not nest"},
        {"assign", E::anyone, "a scalar variable"},
        {"compute", E::group, "all leaves have the distribution of the result, or a slice of it"},
        {"reduce", E::group, "inside each warp; `across` counts the warps along the dimension"},
        {"scan", E::group, "inside each warp, contiguous runs in thread order"},
        {"shuffle", E::group, "both fragments have one distribution"},
        {"load", E::group, "vector width decided"},
        {"store", E::group, "vector width decided; copies are stored once"},
        {"atomic_add", E::group, "vector width decided; copies are added once"},
        {"load_shared", E::group, "vector width decided"},
        {"store_shared", E::group, "vector width decided; copies are stored once"},
        {"cp_async", E::group, "4, 8 or 16 bytes per thread, distribution decided"},
        {"cp_async_commit", E::group, "closes a group of every thread's copies"},
        {"cp_async_wait", E::group, ""},
        {"cp_async_arrive", E::group, "every thread arrives when its copies have landed"},
        {"tma_load", E::one_thread, "one box"},
        {"tma_store", E::one_thread, "one box"},
        {"bulk_commit", E::one_thread, ""},
        {"bulk_wait", E::one_thread, ""},
        {"mbarrier_init", E::one_thread, ""},
        {"fence_mbarrier_init", E::one_thread, ""},
        {"mbarrier_arrive", E::one_thread, ""},
        {"mbarrier_expect", E::one_thread, ""},
        {"mbarrier_wait", E::anyone, ""},
        {"block_sync", E::block_only, ""},
        {"named_sync", E::group, ""},
        {"named_arrive", E::group, ""},
        {"warp_sync", E::group, ""},
        {"cluster_arrive", E::group, ""},
        {"cluster_wait", E::group, ""},
        {"fence_proxy_async", E::anyone, ""},
        {"fence_block", E::anyone, ""},
        {"setmaxnreg", E::group, "first statement of a role of whole warpgroups"},
        {"grid_wait", E::group, "of a kernel with dependent_launch"},
        {"grid_launch", E::group, "of a kernel with dependent_launch"},
        {"team_send", E::block_only, "every thread of every block"},
        {"team_receive", E::block_only, "every thread of every block"},
        {"wgmma", E::group, "a group of whole warpgroups"},
        {"wgmma_fence", E::group, ""},
        {"wgmma_commit", E::group, ""},
        {"wgmma_wait", E::group, ""},
        {"pin", E::group, "of the device form only"},
        {"mma", E::group, ""},
        {"expect", E::anyone, "checked, never executed"},
        {"sugar", E::anyone, "never in the last form"},
    };
    return table;
}

bool touches_unstable_tensor(const Kernel& k, const Stmt& s) {
    bool found = false;
    auto touched = [&](int tensor) { found |= !k.tensors[static_cast<std::size_t>(tensor)].stable; };
    // An element of an integer tensor may stand in any expression.
    auto elements = [&](const Expr& e) { visit_leaves(e, {}, touched); };
    visit_uses(s, {.expr = elements, .synchronises = elements, .tensor = touched});
    if (auto* x = std::get_if<TmaLoad>(&s.op)) touched(k.tensor_maps[static_cast<std::size_t>(x->map)].tensor);
    if (auto* x = std::get_if<TmaStore>(&s.op)) touched(k.tensor_maps[static_cast<std::size_t>(x->map)].tensor);
    return found;
}

const Stmt* unfit_for_vote(const Kernel& k, const If& branch) {
    std::map<int, int> assigned, inside;  // a variable that is assigned elsewhere too would differ from warp to warp afterwards
    auto count = [](const Region& region, std::map<int, int>& into) {
        for_each_stmt(region, [&](const Stmt& s) {
            if (auto* a = std::get_if<Assign>(&s.op)) ++into[a->var];
        });
    };
    count(k.body, assigned);
    count(branch.then, inside);
    const Stmt* found = nullptr;
    for_each_stmt(branch.then, [&](const Stmt& s) {
        auto is = [&]<class... Ops>() { return (std::holds_alternative<Ops>(s.op) || ...); };
        bool fits = is.operator()<Compute, Scan, Shuffle, LoadGlobal, Mma, For, If, Expect>();
        if (auto* r = std::get_if<Reduce>(&s.op)) fits = r->across == 1;
        if (auto* a = std::get_if<Assign>(&s.op)) fits = inside[a->var] == assigned[a->var];
        if (auto* l = std::get_if<LoadGlobal>(&s.op)) fits = !k.tensors[static_cast<std::size_t>(l->src.tensor)].is_output;
        if (!fits && !found) found = &s;
    });
    return found;
}

namespace {

class Check {
public:
    explicit Check(const Kernel& kernel) : k_(kernel) {}

    std::vector<LegalityViolation> run() {
        if (legality_table().size() != std::variant_size_v<Operation>) fail("the legality table does not cover every operation", {});
        for (const SharedBuffer& b : k_.buffers) {
            if (b.byte_offset < 0 || b.byte_offset + b.bytes > k_.shared_bytes)
                fail("buffer " + b.name + " is not inside the arena", b.loc);
            if (b.swizzle != target::SwizzleMode::None && b.byte_offset % 1024)
                fail("swizzled buffer " + b.name + " is not aligned to its pattern", b.loc);
        }
        for (const BarrierArray& b : k_.barriers) {
            if (b.byte_offset < 0 || b.byte_offset % 8 || b.byte_offset + 8 * b.slots > k_.shared_bytes)
                fail("mbarriers " + b.name + " are not inside the arena", b.loc);
        }
        for (const Team& t : k_.teams) {
            if (t.byte_offset < 0 || t.byte_offset % 8 || t.byte_offset + t.bytes > k_.shared_bytes)
                fail("the mailboxes of " + t.name + " are not inside the arena", t.loc);
            if (k_.persistent || !k_.grid[0].as_constant() || !k_.grid[1].is_constant(1) || !k_.grid[2].is_constant(1) ||
                k_.cluster[0] * k_.cluster[1] * k_.cluster[2] > 1)
                fail("a team in a grid that is not one row of a constant number of blocks", t.loc);
        }
        region(k_.body, 32 * k_.warps, false, false);
        if (k_.dependent_launch) waits_for_grid(k_.body, false);
        return std::move(found_);
    }

private:
    void fail(std::string what, const Loc& loc) {
        if (found_.size() < 20) found_.push_back({std::move(what), loc});
    }

    void fragment(int f, int threads, const Stmt& s) {
        if (f < 0 || f >= static_cast<int>(k_.fragments.size())) return fail("a fragment that does not exist", s.loc);
        const Fragment& fragment = k_.fragments[static_cast<std::size_t>(f)];
        if (fragment.dist.threads() != threads) {
            return fail("fragment " + fragment.name + " is spread over " + std::to_string(fragment.dist.threads()) +
                            " threads, executed by " + std::to_string(threads),
                        s.loc);
        }
        if (checked_.insert(f).second && !covers_exactly(fragment.dist))
            fail("the distribution of " + fragment.name + " does not cover its shape exactly", fragment.loc);
    }

    // Each leaf of an elementwise statement is the result's distribution with the dimensions it does not have sliced away.
    void element(const Element& e, int dst, const Stmt& s, int threads) {
        if (e->op == ElementOp::fragment) {
            fragment(e->id, threads, s);
            Distribution d = k_.fragments[static_cast<std::size_t>(dst)].dist;
            if (!e->offset.empty()) return window(*e, d, s);
            for (int dim = static_cast<int>(d.shape.size()) - 1; dim >= 0; --dim) {
                bool kept = false;
                for (int x : e->dims) kept |= x == dim;
                if (!kept) d = sliced(d, dim);
            }
            if (!same_map(d, k_.fragments[static_cast<std::size_t>(e->id)].dist))
                fail("fragment " + k_.fragments[static_cast<std::size_t>(e->id)].name + " does not lie as " +
                         k_.fragments[static_cast<std::size_t>(dst)].name + " needs it",
                     s.loc);
        }
        for (const Element& a : e->args) element(a, dst, s, threads);
    }

    // The result is the slice of what is folded; digits of the dimension that tell warps apart are its last dimension. A warp folds what
    // it holds: with a result elsewhere it would have nothing to fold.
    void folded(const Reduce& r, const Stmt& s) {
        const Distribution& src = k_.fragments[static_cast<std::size_t>(r.src)].dist;
        if (r.dim < 0 || r.dim >= static_cast<int>(src.shape.size())) return fail("a reduction along no dimension", s.loc);
        Distribution wanted = sliced(src, r.dim);
        const int last = static_cast<int>(wanted.shape.size());
        int below = 1, across = 1;
        for (std::size_t i = 0; i < src.thread.size(); below *= src.thread[i].extent, ++i) {
            const DistDigit& d = src.thread[i];
            if (d.dim != r.dim || d.extent == 1 || below * d.extent <= 32) continue;
            if (below < 32) return fail("a reduction along a digit that is partly in a warp", s.loc);
            wanted.thread[i] = {d.extent, last, across};
            across *= d.extent;
        }
        if (across > 1) wanted.shape.push_back(across);
        if (across != r.across || !same_map(wanted, k_.fragments[static_cast<std::size_t>(r.dst)].dist))
            fail("the result of a reduction does not lie as what it folds", s.loc);
    }

    void window(const ElementNode& leaf, Distribution wanted, const Stmt& s) {
        for (int dim = static_cast<int>(wanted.shape.size()) - 1; dim >= 0; --dim) {
            bool kept = false;
            for (int x : leaf.dims) kept |= x == dim;
            if (!kept) wanted = sliced(wanted, dim);
        }
        std::optional<Distribution> part = k_.fragments[static_cast<std::size_t>(leaf.id)].dist;
        const auto& shape = k_.fragments[static_cast<std::size_t>(leaf.id)].dist.shape;
        for (std::size_t i = 0; i < leaf.offset.size() && part; ++i) {
            const int extent = wanted.shape[i];
            if (leaf.offset[i] % extent || leaf.offset[i] + extent > shape[i]) return fail("a window that is not aligned", s.loc);
            part = windowed(*part, static_cast<int>(i), extent);
        }
        if (!part || !same_map(*part, wanted))
            fail("a window of " + k_.fragments[static_cast<std::size_t>(leaf.id)].name + " does not lie as it is needed", s.loc);
    }

    void view(const SharedView& v, const Stmt& s) {
        if (v.buffer < 0 || v.buffer >= static_cast<int>(k_.buffers.size())) return fail("a buffer that does not exist", s.loc);
        const SharedBuffer& b = k_.buffers[static_cast<std::size_t>(v.buffer)];
        if (v.origin.size() != b.dims.size() || v.dims.size() != v.extents.size()) fail("a malformed view of " + b.name, s.loc);
    }
    void view(const GlobalView& v, const Stmt& s) {
        if (v.tensor < 0 || v.tensor >= static_cast<int>(k_.tensors.size())) return fail("a tensor that does not exist", s.loc);
        const Tensor& t = k_.tensors[static_cast<std::size_t>(v.tensor)];
        if (v.origin.size() != t.dims.size() || v.dims.size() != v.extents.size() || v.limit.size() != v.dims.size() ||
            v.in_bounds.size() != v.dims.size())
            fail("a malformed view of " + t.name, s.loc);
    }

    void statement(const Stmt& s, int threads, bool role, bool elected) {
        const LegalityRule& rule = legality_table()[s.op.index()];
        const std::string kind(rule.kind);
        if (rule.kind != kind_name(s.op)) fail("the legality table is out of order at " + kind, s.loc);
        if (rule.executor == Executor::one_thread && !elected) fail(kind + " stands outside elect", s.loc);
        if (rule.executor == Executor::group && elected) fail(kind + " stands inside elect", s.loc);
        if (rule.executor == Executor::block_only && (role || elected)) fail(kind + " is not executed by the whole block", s.loc);
        if (std::holds_alternative<Sugar>(s.op)) fail("sugar is left: " + std::get<Sugar>(s.op).text, s.loc);
        if (!k_.device && (s.device || std::holds_alternative<Pin>(s.op))) fail("a part of the device form stands in a tile form", s.loc);
        if (auto* c = std::get_if<Compute>(&s.op)) {
            fragment(c->dst, threads, s);
            if (found_.empty()) element(c->value, c->dst, s, threads);
        }
        if (auto* r = std::get_if<Reduce>(&s.op)) {
            fragment(r->dst, threads, s), fragment(r->src, threads, s);
            if (found_.empty()) folded(*r, s);
        }
        if (auto* r = std::get_if<Scan>(&s.op)) {
            fragment(r->dst, threads, s), fragment(r->src, threads, s);
            if (found_.empty() &&
                !same_map(k_.fragments[static_cast<std::size_t>(r->dst)].dist, k_.fragments[static_cast<std::size_t>(r->src)].dist))
                fail("a scan between tiles that lie differently", s.loc);
        }
        if (auto* x = std::get_if<Shuffle>(&s.op)) {
            fragment(x->dst, threads, s), fragment(x->src, threads, s);
            if (x->lane_arg < 0 || x->lane_arg > 31) fail("a shuffle from no lane", s.loc);
            else if (found_.empty() &&
                     !same_map(k_.fragments[static_cast<std::size_t>(x->dst)].dist, k_.fragments[static_cast<std::size_t>(x->src)].dist))
                fail("a shuffle between tiles that lie differently", s.loc);
        }
        if (auto* l = std::get_if<LoadGlobal>(&s.op)) {
            fragment(l->dst, threads, s);
            view(l->src, s);
            if (l->vector_bytes < 1) fail("a load without a vector width", s.loc);
        }
        if (auto* st = std::get_if<StoreGlobal>(&s.op)) {
            fragment(st->src, threads, s);
            view(st->dst, s);
            if (st->vector_bytes < 1) fail("a store without a vector width", s.loc);
        }
        if (auto* a = std::get_if<AtomicAdd>(&s.op)) {
            fragment(a->src, threads, s);
            view(a->dst, s);
            if (a->vector_bytes < 1) fail("an atomic add without a vector width", s.loc);
        }
        if (auto* l = std::get_if<LoadShared>(&s.op)) {
            fragment(l->dst, threads, s);
            view(l->src, s);
            if (l->vector_bytes < 1) fail("a shared load without a vector width", s.loc);
        }
        if (auto* st = std::get_if<StoreShared>(&s.op)) {
            fragment(st->src, threads, s);
            view(st->dst, s);
            if (st->vector_bytes < 1) fail("a shared store without a vector width", s.loc);
        }
        if (auto* c = std::get_if<CpAsync>(&s.op)) {
            view(c->dst, s);
            view(c->src, s);
            if (c->dist.threads() != threads) fail("cp_async is spread over other threads than execute it", s.loc);
            if (c->bytes != 4 && c->bytes != 8 && c->bytes != 16) fail("cp_async of " + std::to_string(c->bytes) + " bytes", s.loc);
        }
        auto map = [&](int m, std::size_t coordinates) {
            if (m < 0 || m >= static_cast<int>(k_.tensor_maps.size())) return fail("a tensor map that does not exist", s.loc);
            if (k_.tensor_maps[static_cast<std::size_t>(m)].dims.size() != coordinates)
                fail("a TMA copy with the wrong number of coordinates", s.loc);
        };
        if (auto* t = std::get_if<TmaLoad>(&s.op)) map(t->map, t->coordinates.size()), view(t->dst, s);
        if (auto* t = std::get_if<TmaStore>(&s.op)) map(t->map, t->coordinates.size()), view(t->src, s);
        if (auto* w = std::get_if<Wgmma>(&s.op)) {
            fragment(w->acc, threads, s);
            view(w->b, s);
            if (auto* a = std::get_if<int>(&w->a)) fragment(*a, threads, s);
            if (auto* a = std::get_if<SharedView>(&w->a)) view(*a, s);
            if (threads % 128) fail("wgmma in a group that is no warpgroup", s.loc);
        }
        auto team = [&](int t, const std::vector<int>& numbers) {
            if (t < 0 || t >= static_cast<int>(k_.teams.size()) ||
                static_cast<int>(numbers.size()) != k_.teams[static_cast<std::size_t>(t)].numbers)
                return fail("a message of no team, or of another length", s.loc);
            for (int f : numbers) fragment(f, threads, s);
        };
        if (auto* t = std::get_if<TeamSend>(&s.op)) team(t->team, t->src);
        if (auto* t = std::get_if<TeamReceive>(&s.op)) team(t->team, t->dst);
        if (auto* m = std::get_if<Mma>(&s.op)) fragment(m->acc, threads, s), fragment(m->a, threads, s), fragment(m->b, threads, s);
        if (auto* i = std::get_if<If>(&s.op); i && i->vote >= 0) {
            fragment(i->vote, threads, s);
            if (!i->condition.is_constant(1) || !i->otherwise.empty() || elected)
                fail("a vote with a condition, with another side or of one thread", s.loc);
            if (const Stmt* unfit = unfit_for_vote(k_, *i))
                fail(std::string(kind_name(unfit->op)) + " stands in a branch that warps take for themselves", unfit->loc);
        }
    }

    // Nothing that the grid before may write is touched by a group that has not waited for it. A wait counts where every path
    // to the access passes it: at the level of the kernel's or the role's own body.
    void waits_for_grid(const Region& body, bool waited) {
        for (const Stmt& s : body) {
            waited |= std::holds_alternative<GridWait>(s.op);
            if (waited) continue;
            if (touches_unstable_tensor(k_, s)) fail("a tensor is touched before the launch has waited for the grid before it", s.loc);
            if (auto* f = std::get_if<For>(&s.op)) waits_for_grid(f->body, false);
            if (auto* i = std::get_if<If>(&s.op)) waits_for_grid(i->then, false), waits_for_grid(i->otherwise, false);
            if (auto* r = std::get_if<Role>(&s.op)) waits_for_grid(r->body, false);
            if (auto* e = std::get_if<Elect>(&s.op)) waits_for_grid(e->body, false);
        }
    }

    void region(const Region& body, int threads, bool role, bool elected) {
        for (const Stmt& s : body) {
            statement(s, threads, role, elected);
            if (auto* f = std::get_if<For>(&s.op)) region(f->body, threads, role, elected);
            if (auto* i = std::get_if<If>(&s.op)) region(i->then, threads, role, elected), region(i->otherwise, threads, role, elected);
            if (auto* r = std::get_if<Role>(&s.op)) region(r->body, 32 * r->warps_per_instance, true, elected);
            if (auto* e = std::get_if<Elect>(&s.op)) region(e->body, threads, role, true);
        }
    }

    const Kernel& k_;
    std::vector<LegalityViolation> found_;
    std::set<int> checked_;
};

}  // namespace

std::vector<LegalityViolation> legal_last_form(const Kernel& kernel) { return Check(kernel).run(); }

}  // namespace tw::ir
