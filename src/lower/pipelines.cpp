// Step 2, pipelines: a ring becomes two arrays of mbarriers and three counters. The n-th acquire of the producer waits until
// slot n % S is empty for the (n / S)-th time and announces the bytes of the TMA copies that follow; the n-th wait of a
// consumer waits until it is full. `release(keep)` arrives on the empty barrier of every held slot but the newest `keep`; how
// many slots can be held at that place is found by counting over the structured code, so that the number of arrivals in the
// text is exact and only a release that may have nothing to do is put under a condition. Counters belong to the role that
// uses the ring and live across tiles.
#include <algorithm>

#include <fmt/format.h>

#include "lower/groups.h"
#include "lower/steps.h"

namespace tw::lower {
namespace {

using ir::Expr;

struct Counters {
    int produced = -1, consumed = -1, released = -1;
};

struct Held {
    int least = 0, most = 0;
};

class Pipelines {
public:
    Pipelines(Draft& draft, const Context& context) : d_(draft), k_(draft.kernel), cx_(context) {
        cluster_ = k_.cluster[0] * k_.cluster[1] * k_.cluster[2];
    }

    void run() {
        for (Ring& ring : d_.rings) {
            if (ring.multicast) k_.barriers[static_cast<std::size_t>(ring.empty)].arrivals = ring.consumers * cluster_;
        }
        scope(k_.body, whole_block(d_));
    }

private:
    const SugarOp* sugar(const ir::Stmt& s) const {
        const auto* op = std::get_if<ir::Sugar>(&s.op);
        return op ? &d_.sugar[static_cast<std::size_t>(op->id)] : nullptr;
    }

    // A region whose group owns counters: the kernel body, or a role's.
    void scope(ir::Region& region, ExecutingGroup group) {
        auto saved = std::move(counters_);
        counters_.clear();
        for (std::size_t r = 0; r < d_.rings.size(); ++r) {
            Held held;
            count(region, static_cast<int>(r), held);
        }
        expand(region, group);
        ir::Region initial;
        for (auto& [ring, c] : counters_) {
            for (int var : {c.produced, c.consumed, c.released}) {
                if (var >= 0) initial.push_back({ir::Assign{var, 0}, cx_.loc(d_.rings[static_cast<std::size_t>(ring)].span), ""});
            }
        }
        region.insert(region.begin(), std::make_move_iterator(initial.begin()), std::make_move_iterator(initial.end()));
        counters_ = std::move(saved);
    }

    // How many slots of the ring a consumer holds, at least and at most, before each release.
    void count(const ir::Region& region, int ring, Held& held) {
        const int stages = d_.rings[static_cast<std::size_t>(ring)].stages;
        for (const ir::Stmt& s : region) {
            if (const SugarOp* op = sugar(s)) {
                if (auto* w = std::get_if<RingWait>(op); w && w->ring == ring) {
                    held.least = std::min(held.least + 1, stages);
                    held.most = std::min(held.most + 1, stages);
                }
                if (auto* r = std::get_if<RingRelease>(op); r && r->ring == ring) {
                    const int id = std::get<ir::Sugar>(s.op).id;
                    auto [it, fresh] = before_.emplace(id, held);
                    if (!fresh) {
                        it->second.least = std::min(it->second.least, held.least);
                        it->second.most = std::max(it->second.most, held.most);
                    }
                    held.least = std::min(held.least, r->keep);
                    held.most = std::min(held.most, r->keep);
                }
            } else if (auto* f = std::get_if<ir::For>(&s.op)) {
                for (int round = 0; round <= stages + 1; ++round) {
                    Held after = held;
                    count(f->body, ring, after);
                    const Held joined{std::min(held.least, after.least), std::max(held.most, after.most)};
                    if (joined.least == held.least && joined.most == held.most) break;
                    held = joined;
                }
            } else if (auto* i = std::get_if<ir::If>(&s.op)) {
                Held a = held, b = held;
                count(i->then, ring, a);
                count(i->otherwise, ring, b);
                held = {std::min(a.least, b.least), std::max(a.most, b.most)};
            } else if (auto* e = std::get_if<ir::Elect>(&s.op)) {
                count(e->body, ring, held);
            }
        }
    }

    Counters& counters(int ring) { return counters_[ring]; }
    Expr counter(int& var, int ring, const char* what) {
        if (var < 0) var = d_.add_var(d_.rings[static_cast<std::size_t>(ring)].name + "_" + what);
        return ir::var_expr(var);
    }

    // Bytes that arrive on `array` in this block from the statements from `at` on, until the next acquire of the ring.
    std::optional<Expr> bytes(const ir::Region& region, std::size_t at, int ring, bool& any,
                              const std::function<Expr(const Expr&)>& condition_of) {
        Expr total = 0;
        for (std::size_t i = at; i < region.size(); ++i) {
            if (const SugarOp* op = sugar(region[i])) {
                if (auto* a = std::get_if<RingAcquire>(op); a && a->ring == ring) return total;
                auto* load = std::get_if<TileTmaLoad>(op);
                if (!load || load->barrier.array != d_.rings[static_cast<std::size_t>(ring)].full) continue;
                any = true;
                std::int64_t size = target::bytes(k_.buffers[static_cast<std::size_t>(load->dst.buffer)].dtype);
                for (int e : load->dst.extents) size *= e;
                if (!load->multicast) {
                    total = total + condition_of(Expr(1)) * Expr(size);
                    continue;
                }
                // Every block of the cluster runs this text; a copy arrives here from each block whose mask names this one.
                for (int from = 0; from < cluster_; ++from) {
                    auto there = [&](const Expr& e) {
                        return ir::substitute(e, [&](const ir::ExprNode& n) -> std::optional<Expr> {
                            if (n.kind == ir::ExprKind::cluster_rank) return Expr(from);
                            return std::nullopt;
                        });
                    };
                    const Expr mask = there(*load->multicast);
                    Expr reaches = mask.is_constant((std::int64_t{1} << cluster_) - 1)
                                       ? Expr(1)
                                       : ir::make_expr(ir::ExprKind::bit_and,
                                                       {ir::make_expr(ir::ExprKind::shift_right, {mask, ir::cluster_rank()}), Expr(1)});
                    total = total + there(condition_of(Expr(1))) * reaches * Expr(size);
                }
            } else if (auto* c = std::get_if<ir::If>(&region[i].op)) {
                auto then_condition = [&, outer = condition_of](const Expr& e) { return ir::select(c->condition, outer(e), Expr(0)); };
                auto else_condition = [&, outer = condition_of](const Expr& e) { return ir::select(c->condition, Expr(0), outer(e)); };
                auto a = bytes(c->then, 0, ring, any, then_condition), b = bytes(c->otherwise, 0, ring, any, else_condition);
                if (!a || !b) return std::nullopt;
                total = total + *a + *b;
            } else if (auto* f = std::get_if<ir::For>(&region[i].op)) {
                bool inside = false;
                auto once = bytes(f->body, 0, ring, inside, condition_of);
                if (!once) return std::nullopt;
                if (!inside) continue;
                any = true;
                if (ir::mentions_var(*once, f->var)) return std::nullopt;
                total = total + ir::max(ir::ceil_div(f->hi - f->lo, f->step), Expr(0)) * *once;
            } else if (auto* e = std::get_if<ir::Elect>(&region[i].op)) {
                auto inside = bytes(e->body, 0, ring, any, condition_of);
                if (!inside) return std::nullopt;
                total = total + *inside;
            }
        }
        return total;
    }

    void expand(ir::Region& region, const ExecutingGroup& group) {
        ir::Region out;
        for (std::size_t i = 0; i < region.size(); ++i) {
            ir::Stmt& s = region[i];
            const SugarOp* op = sugar(s);
            auto emit = [&](ir::Operation o, std::string note = {}) { out.push_back({std::move(o), s.loc, std::move(note)}); };
            if (const auto* a = op ? std::get_if<RingAcquire>(op) : nullptr) {
                const Ring& ring = d_.rings[static_cast<std::size_t>(a->ring)];
                Counters& c = counters(a->ring);
                const Expr n = counter(c.produced, a->ring, "produced"), slot = ir::var_expr(a->var), stages = ring.stages;
                emit(ir::Assign{a->var, n % stages});
                emit(ir::BarrierWait{{ring.empty, slot, std::nullopt}, (n / stages + Expr(1)) % Expr(2)},
                     fmt::format("{}: wait until the slot is empty", ring.name));
                bool any = false;
                auto total = bytes(region, i + 1, a->ring, any, [](const Expr& e) { return e; });
                if (!total) {
                    cx_.error(Code::ring_use, s.loc,
                              fmt::format("the bytes that arrive for this slot of '{}' depend on a loop variable", ring.name))
                        .with_hint("issue the copies of one slot unconditionally, or use raw mbarriers");
                } else if (any) {
                    emit(ir::BarrierExpect{{ring.full, slot, std::nullopt}, *total}, fmt::format("{}: announce the bytes", ring.name));
                }
                emit(ir::Assign{c.produced, n + Expr(1)});
                continue;
            }
            if (const auto* w = op ? std::get_if<RingWait>(op) : nullptr) {
                const Ring& ring = d_.rings[static_cast<std::size_t>(w->ring)];
                Counters& c = counters(w->ring);
                const Expr n = counter(c.consumed, w->ring, "consumed"), slot = ir::var_expr(w->var), stages = ring.stages;
                emit(ir::Assign{w->var, n % stages});
                emit(ir::BarrierWait{{ring.full, slot, std::nullopt}, (n / stages) % Expr(2)},
                     fmt::format("{}: wait until the slot is full", ring.name));
                emit(ir::Assign{c.consumed, n + Expr(1)});
                continue;
            }
            if (const auto* r = op ? std::get_if<RingRelease>(op) : nullptr) {
                const Ring& ring = d_.rings[static_cast<std::size_t>(r->ring)];
                Counters& c = counters(r->ring);
                if (c.consumed < 0) {
                    cx_.error(Code::ring_use, s.loc, fmt::format("'{}' is released before any slot of it was waited for", ring.name));
                    continue;
                }
                const Expr released = counter(c.released, r->ring, "released"), consumed = ir::var_expr(c.consumed);
                const Held held = before_.at(std::get<ir::Sugar>(s.op).id);
                if (held.most <= r->keep) {
                    cx_.error(Code::ring_use, s.loc,
                              fmt::format("release(keep={}) never has a slot to release: at most {} are held here", r->keep, held.most));
                    continue;
                }
                for (int j = 0; j < held.most - r->keep; ++j) {
                    ir::Region arrive;
                    const Expr slot = released % Expr(ring.stages);
                    const std::string note = fmt::format("{}: the slot may be filled again", ring.name);
                    if (ring.multicast) {
                        for (int rank = 0; rank < cluster_; ++rank)
                            arrive.push_back({ir::BarrierArrive{{ring.empty, slot, Expr(rank)}, 1}, s.loc, note});
                    } else {
                        arrive.push_back({ir::BarrierArrive{{ring.empty, slot, std::nullopt}, 1}, s.loc, note});
                    }
                    arrive.push_back({ir::Assign{c.released, released + Expr(1)}, s.loc, ""});
                    if (held.least - r->keep > j) {
                        out.insert(out.end(), std::make_move_iterator(arrive.begin()), std::make_move_iterator(arrive.end()));
                    } else {
                        emit(ir::If{released < consumed - Expr(r->keep), std::move(arrive), {}});
                    }
                }
                continue;
            }
            if (const auto* c = op ? std::get_if<RingCommit>(op) : nullptr) {
                const Ring& ring = d_.rings[static_cast<std::size_t>(c->ring)];
                emit(ir::ProxyFence{}, fmt::format("{}: make the slot visible to the asynchronous proxy", ring.name));
                out.push_back(group_sync(d_, cx_, group, s.loc, fmt::format("{}: all threads have written", ring.name)));
                emit(ir::BarrierArrive{{ring.full, c->slot, std::nullopt}, 1}, fmt::format("{}: the slot is full", ring.name));
                continue;
            }
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                expand(f->body, group);
            } else if (auto* f2 = std::get_if<ir::If>(&s.op)) {
                expand(f2->then, group);
                expand(f2->otherwise, group);
            } else if (auto* e = std::get_if<ir::Elect>(&s.op)) {
                expand(e->body, group);
            } else if (auto* role = std::get_if<ir::Role>(&s.op)) {
                ExecutingGroup inner;
                inner.role = true;
                inner.threads = 32 * role->warps_per_instance;
                inner.first_warp = role->first_warp;
                inner.warps_per_instance = role->warps_per_instance;
                inner.instances = role->instances;
                inner.instance_var = role->instance_var;
                scope(role->body, inner);
            }
            out.push_back(std::move(s));
        }
        region = std::move(out);
    }

    Draft& d_;
    ir::Kernel& k_;
    const Context& cx_;
    int cluster_ = 1;
    std::map<int, Counters> counters_;
    std::map<int, Held> before_;  // by Sugar id of a release
};

}  // namespace

void lower_pipelines(Draft& draft, const Context& context) { Pipelines(draft, context).run(); }

}  // namespace tw::lower
