#include "lower/groups.h"

#include <algorithm>

namespace tw::lower {

ExecutingGroup whole_block(const Draft& draft) {
    ExecutingGroup g;
    g.threads = 32 * draft.kernel.warps;
    g.warps_per_instance = draft.kernel.warps;
    return g;
}

void rewrite(ir::Region& region, const ExecutingGroup& group, const Rewriter& rewriter) {
    ir::Region out;
    out.reserve(region.size());
    for (ir::Stmt& s : region) {
        if (auto* f = std::get_if<ir::For>(&s.op)) {
            ExecutingGroup inner = group;
            inner.in_loop = true;
            rewrite(f->body, inner, rewriter);
        } else if (auto* i = std::get_if<ir::If>(&s.op)) {
            rewrite(i->then, group, rewriter);
            rewrite(i->otherwise, group, rewriter);
        } else if (auto* r = std::get_if<ir::Role>(&s.op)) {
            ExecutingGroup inner = group;
            inner.role = true;
            inner.threads = 32 * r->warps_per_instance;
            inner.first_warp = r->first_warp;
            inner.warps_per_instance = r->warps_per_instance;
            inner.instances = r->instances;
            inner.instance_var = r->instance_var;
            rewrite(r->body, inner, rewriter);
        } else if (auto* e = std::get_if<ir::Elect>(&s.op)) {
            ExecutingGroup inner = group;
            inner.elected = true;
            inner.threads = 1;
            rewrite(e->body, inner, rewriter);
        }
        rewriter(std::move(s), group, out);
    }
    region = std::move(out);
}

ir::Stmt group_sync(Draft& draft, const Context& context, const ExecutingGroup& group, const ir::Loc& loc, std::string note) {
    if (!group.role) return {ir::BlockSync{}, loc, std::move(note)};
    if (group.threads <= 32) return {ir::WarpSync{}, loc, std::move(note)};
    const auto key = std::make_pair(group.first_warp, group.instances);
    auto it = draft.role_barriers.find(key);
    if (it == draft.role_barriers.end()) {
        int base = draft.next_barrier - group.instances + 1;
        auto clashes = [&](int b) {
            return std::any_of(draft.named_ids.begin(), draft.named_ids.end(), [&](int id) { return id >= b && id < b + group.instances; });
        };
        while (base > 0 && clashes(base)) --base;
        if (base < 1) {
            context.error(Code::bad_named_barrier, loc, "no named barrier is left for a group of warps that must wait for one another");
            base = 1;
        }
        draft.next_barrier = base - 1;
        it = draft.role_barriers.emplace(key, base).first;
    }
    ir::Expr id = it->second;
    if (group.instances > 1 && group.instance_var >= 0) id = id + ir::var_expr(group.instance_var);
    return {ir::NamedSync{id, group.threads}, loc, std::move(note)};
}

}  // namespace tw::lower
