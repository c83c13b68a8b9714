// Changes to the barriers that are there: who counts, how many, which number, which phase, which slot, how many bytes.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "diagnose/explain.h"
#include "diagnose/repair_list.h"

namespace tw::diagnose {
namespace {

using ir::Expr;
using ir::ExprKind;

std::string lines_text(const std::set<ir::Line>& lines) {
    std::string s = lines.size() == 1 ? "line " : "lines ";
    for (const ir::Line& l : lines) s += (s.back() == ' ' ? "" : ", ") + ir::line_text(l);
    return s;
}

// A number of its own for each instance of a role: in all its barriers with that number.
void own_numbers(CandidateList& list) {
    const ir::Kernel& k = list.kernel();
    std::set<std::pair<const ir::Role*, std::int64_t>> seen;
    for (const auto& p : list.places()) {
        const auto* n = std::get_if<ir::NamedSync>(&p.stmt->op);
        if (!n || !p.role) continue;
        const auto id = n->id.as_constant();
        if (!id || !seen.emplace(p.role, *id).second) continue;
        std::set<ir::Line> lines;
        ir::for_each_stmt(p.role->body, [&](const ir::Stmt& s) {
            if (auto* m = std::get_if<ir::NamedSync>(&s.op); m && m->id.is_constant(*id)) lines.insert(s.loc.first_line());
        });
        auto renumber = [role = p.role->name, number = *id](ir::Kernel& x, const Expr& to) {
            for (ir::Stmt& s : x.body) {
                auto* r = std::get_if<ir::Role>(&s.op);
                if (!r || r->name != role) continue;
                ir::for_each_stmt(r->body, [&](ir::Stmt& inner) {
                    if (auto* m = std::get_if<ir::NamedSync>(&inner.op); m && m->id.is_constant(number)) m->id = to;
                    if (auto* m = std::get_if<ir::NamedArrive>(&inner.op); m && m->id.is_constant(number)) m->id = to;
                });
            }
        };
        if (p.role->instances > 1 && p.role->instance_var >= 0) {
            const int var = p.role->instance_var;
            list.declare(
                0, p.stmt->loc,
                fmt::format("the {} instances of `{}` share named barrier {} ({}): give each its own number, tw.named_barrier({} + {}, {})",
                            p.role->instances, p.role->name, *id, lines_text(lines), *id, source_name(k, var), n->threads),
                [=](ir::Kernel& x) { renumber(x, Expr(*id) + ir::var_expr(var)); });
        }
        list.declare(3, p.stmt->loc,
                     fmt::format("a number of its own for the named barrier of `{}`: {} is used by another group too ({})", p.role->name,
                                 *id, lines_text(lines)),
                     [=](ir::Kernel& x) { renumber(x, Expr(15)); });
    }
}

// Counts of threads that some group of the kernel has.
std::set<int> thread_counts(const ir::Kernel& k) {
    std::set<int> counts = {32 * k.warps};
    int all = 0;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        const auto* r = std::get_if<ir::Role>(&s.op);
        if (!r) return;
        counts.insert(32 * r->warps_per_instance);
        counts.insert(32 * r->warps_per_instance * r->instances);
        all += 32 * r->warps_per_instance * r->instances;
        counts.insert(all);
    });
    return counts;
}

void counts(CandidateList& list) {
    const ir::Kernel& k = list.kernel();
    const std::set<int> groups = thread_counts(k);
    // Named barriers: of all statements with one number and count.
    std::set<std::pair<std::string, int>> seen;
    for (const auto& p : list.places()) {
        const auto* n = std::get_if<ir::NamedSync>(&p.stmt->op);
        if (!n || !seen.emplace(source_text(k, n->id), n->threads).second) continue;
        for (int threads : groups) {
            if (threads == n->threads) continue;
            list.declare(2, p.stmt->loc,
                         fmt::format("{} threads meet at named barrier {}, not {}: tw.named_barrier({}, {})", threads,
                                     source_text(k, n->id), n->threads, source_text(k, n->id), threads),
                         [id = n->id, had = n->threads, threads](ir::Kernel& x) {
                             ir::for_each_stmt(x.body, [&](ir::Stmt& s) {
                                 if (auto* m = std::get_if<ir::NamedSync>(&s.op); m && m->threads == had && ir::same(m->id, id))
                                     m->threads = threads;
                                 if (auto* m = std::get_if<ir::NamedArrive>(&s.op); m && m->threads == had && ir::same(m->id, id))
                                     m->threads = threads;
                             });
                         });
        }
    }
    // Arrivals of an mbarrier array.
    for (std::size_t i = 0; i < k.barriers.size(); ++i) {
        const ir::BarrierArray& b = k.barriers[i];
        std::set<int> wanted = groups;
        const int blocks = k.cluster[0] * k.cluster[1] * k.cluster[2];
        for (int n : {1, b.arrivals - 1, b.arrivals + 1, b.arrivals * 2, b.arrivals / 2, b.arrivals * blocks, blocks}) wanted.insert(n);
        for (int n = 1; n <= 4; ++n) wanted.insert(n);
        for (int n : wanted) {
            if (n < 1 || n == b.arrivals) continue;
            list.declare(2, b.loc, fmt::format("`{}` gets {} arrival{} a phase, not {}", b.name, n, n == 1 ? "" : "s", b.arrivals),
                         [i, n](ir::Kernel& x) {
                             x.barriers[i].arrivals = n;
                             ir::for_each_stmt(x.body, [&](ir::Stmt& s) {
                                 if (auto* init = std::get_if<ir::BarrierInit>(&s.op); init && init->barrier.array == static_cast<int>(i))
                                     init->arrivals = n;
                             });
                         });
        }
    }
}

// What the copies that complete on a barrier bring in one phase.
std::int64_t bytes_on(const ir::Kernel& k, const ir::Region& region, int array) {
    std::int64_t bytes = 0;
    ir::for_each_stmt(region, [&](const ir::Stmt& s) {
        const auto* t = std::get_if<ir::TmaLoad>(&s.op);
        if (!t || t->barrier.array != array) return;
        std::int64_t box = target::bytes(k.tensors[static_cast<std::size_t>(k.tensor_maps[static_cast<std::size_t>(t->map)].tensor)].dtype);
        for (int n : k.tensor_maps[static_cast<std::size_t>(t->map)].box) box *= n;
        bytes += box;
    });
    return bytes;
}

// The bytes of a ring with `(mask >> rank) & 1` as 1.
Expr reached(const Expr& e, const Expr& mask) {
    if (e.kind() == ExprKind::bit_and && e->args[0].kind() == ExprKind::shift_right && ir::same(e->args[0]->args[0], mask)) return 1;
    if (e->args.empty() || e.kind() == ExprKind::element) return e;
    std::vector<Expr> args;
    for (const Expr& a : e->args) args.push_back(reached(a, mask));
    return ir::make_expr(e.kind(), std::move(args));
}

void phases(CandidateList& list) {
    const ir::Kernel& k = list.kernel();
    for (std::size_t i = 0; i < list.places().size(); ++i) {
        const auto& p = list.places()[i];
        const ir::Stmt& s = *p.stmt;
        const int place = static_cast<int>(i);
        if (auto* w = std::get_if<ir::BarrierWait>(&s.op)) {
            const int slots = k.barriers[static_cast<std::size_t>(w->barrier.array)].slots;
            std::vector<Expr> parities;
            for (int up = p.parent; up >= 0; up = list.places()[static_cast<std::size_t>(up)].parent) {
                if (auto* loop = std::get_if<ir::For>(&list.places()[static_cast<std::size_t>(up)].stmt->op)) {
                    parities.push_back(ir::var_expr(loop->var) / slots % 2);
                    parities.push_back((ir::var_expr(loop->var) / slots + 1) % 2);
                }
            }
            parities.push_back((w->parity + 1) % 2);
            for (const Expr& e : parities) {
                if (!ir::same(e, w->parity))
                    list.change(1, place, "the parity of the wait: " + instead_text(k, w->parity, e),
                                [e](ir::Stmt& x) { std::get<ir::BarrierWait>(x.op).parity = e; });
            }
        }
        if (auto* e = std::get_if<ir::BarrierExpect>(&s.op)) {
            std::set<std::int64_t> wanted = {bytes_on(k, *p.region, e->barrier.array)};
            if (p.parent >= 0) wanted.insert(bytes_on(k, {*list.places()[static_cast<std::size_t>(p.parent)].stmt}, e->barrier.array));
            if (p.role) wanted.insert(bytes_on(k, p.role->body, e->barrier.array));
            if (auto c = e->bytes.as_constant()) wanted.insert(*c * 2), wanted.insert(*c / 2);
            for (std::int64_t n : wanted) {
                if (n > 0 && !e->bytes.is_constant(n))
                    list.change(1, place,
                                fmt::format("announce {} bytes, not {}: so many do the copies bring", n, source_text(k, e->bytes)),
                                [n](ir::Stmt& x) { std::get<ir::BarrierExpect>(x.op).bytes = Expr(n); });
            }
        }
        if (auto* t = std::get_if<ir::TmaLoad>(&s.op); t && t->multicast_mask) {
            const int blocks = k.cluster[0] * k.cluster[1] * k.cluster[2];
            const Expr everyone = (std::int64_t{1} << blocks) - 1;
            if (!ir::same(everyone, *t->multicast_mask)) {
                const std::string text = fmt::format("multicast={} (all {} blocks) instead of multicast={}", source_text(k, everyone),
                                                     blocks, source_text(k, *t->multicast_mask));
                list.edit(1, place, text, [everyone](Site& x) {
                    auto& load = std::get<ir::TmaLoad>(x.stmt().op);
                    const Expr had = *load.multicast_mask;
                    const int array = load.barrier.array;
                    load.multicast_mask = everyone;
                    // What a ring announces is counted from the mask: everybody now gets it.
                    ir::for_each_stmt(x.kernel.body, [&](ir::Stmt& other) {
                        if (auto* e = std::get_if<ir::BarrierExpect>(&other.op); e && e->barrier.array == array)
                            e->bytes = reached(e->bytes, had);
                    });
                });
            }
            list.change(3, place, "no multicast: every block loads what it reads",
                        [](ir::Stmt& x) { std::get<ir::TmaLoad>(x.op).multicast_mask.reset(); });
        }
        const bool twice = std::holds_alternative<ir::BarrierArrive>(s.op) || std::holds_alternative<ir::CpAsync>(s.op) ||
                           std::holds_alternative<ir::BarrierWait>(s.op) || std::holds_alternative<ir::TmaLoad>(s.op) ||
                           std::holds_alternative<ir::CpAsyncArrive>(s.op);
        if (twice && list.suspects().order) {
            const char* what = std::holds_alternative<ir::BarrierArrive>(s.op) ? "this arrival"
                               : std::holds_alternative<ir::BarrierWait>(s.op) ? "this wait"
                                                                               : "this copy";
            // Two in one region are the likelier to be one too many.
            int alike = 0;
            for (const ir::Stmt& other : *p.region) alike += other.op.index() == s.op.index();
            list.edit(alike > 1 && std::holds_alternative<ir::BarrierArrive>(s.op) ? 1 : 32, place,
                      fmt::format("leave {} out: there is one too many", what), drop);
        }
        if (auto* a = std::get_if<ir::BarrierArrive>(&s.op)) {
            if (a->count != 1) list.change(3, place, "arrive once", [](ir::Stmt& x) { std::get<ir::BarrierArrive>(x.op).count = 1; });
        }
        if (auto* a = std::get_if<ir::CpAsyncArrive>(&s.op)) {
            list.change(3, place, a->noinc ? "`noinc=False`" : "`noinc=True`: the arrival of the copies is one that the barrier counts",
                        [](ir::Stmt& x) {
                            auto& y = std::get<ir::CpAsyncArrive>(x.op);
                            y.noinc = !y.noinc;
                        });
        }
    }
}

}  // namespace

void repair_barriers(CandidateList& list) {
    own_numbers(list);
    counts(list);
    phases(list);
}

}  // namespace tw::diagnose
