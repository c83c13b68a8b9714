#include "verify/in_place.h"

#include <algorithm>

#include "base/index.h"
#include "ir/uses.h"

namespace tw::verify {
namespace {

// Every element of the tile is held by one thread: with copies, one of the holders may store before another has loaded.
bool held_once(const ir::Distribution& d) {
    return ir::covers_exactly(d) &&
           std::none_of(d.thread.begin(), d.thread.end(), [](const ir::DistDigit& digit) { return digit.dim < 0 && digit.extent > 1; });
}

// Does the store overwrite all that the load reads? A limit on the load alone makes that less.
bool overwrites(const ir::GlobalView& from, const ir::GlobalView& to) {
    if (from.tensor != to.tensor || from.gather_dim >= 0 || to.gather_dim >= 0 || from.dims != to.dims || from.extents != to.extents)
        return false;
    if (!std::equal(from.origin.begin(), from.origin.end(), to.origin.begin(), to.origin.end(), ir::same)) return false;
    for (std::size_t d = 0; d < to.limit.size(); ++d) {
        if (!to.limit[d]) continue;
        if (d >= from.limit.size() || !from.limit[d] || !ir::same(*from.limit[d], *to.limit[d])) return false;
    }
    return true;
}

std::set<int> variables_of(const ir::Stmt& stmt) {
    std::set<int> found;
    ir::visit_uses(stmt, {.expr = [&](const ir::Expr& e) { ir::visit_leaves(e, [&](int v) { found.insert(v); }); }});
    return found;
}

bool binds_one_of(const ir::Stmt& stmt, const std::set<int>& variables) {
    bool any = false;
    ir::for_each_stmt(ir::Region{stmt},
                      [&](const ir::Stmt& s) { ir::visit_uses(s, {.binds = [&](int v) { any |= variables.count(v) > 0; }}); });
    return any;
}

}  // namespace

std::set<const ir::Stmt*> reads_before_writes(const ir::Kernel& k) {
    std::set<const ir::Stmt*> found;
    auto dist = [&](int fragment) -> const ir::Distribution& { return k.fragments[at(fragment)].dist; };
    auto look = [&](const ir::Region& region) {
        for (std::size_t i = 0; i < region.size(); ++i) {
            const auto* load = std::get_if<ir::LoadGlobal>(&region[i].op);
            if (!load || !k.tensors[at(load->src.tensor)].is_output || k.tensors[at(load->src.tensor)].zero_initialised) continue;
            if (!held_once(dist(load->dst))) continue;
            const std::set<int> steered_by = variables_of(region[i]);
            for (std::size_t j = i + 1; j < region.size() && !binds_one_of(region[j], steered_by); ++j) {
                const auto* store = std::get_if<ir::StoreGlobal>(&region[j].op);
                if (!store || !overwrites(load->src, store->dst) || !ir::same_map(dist(load->dst), dist(store->src))) continue;
                found.insert(&region[i]);
                break;
            }
        }
    };
    look(k.body);
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* f = std::get_if<ir::For>(&s.op)) look(f->body);
        if (auto* b = std::get_if<ir::If>(&s.op)) look(b->then), look(b->otherwise);
        if (auto* r = std::get_if<ir::Role>(&s.op)) look(r->body);
        if (auto* e = std::get_if<ir::Elect>(&s.op)) look(e->body);
    });
    return found;
}

}  // namespace tw::verify
