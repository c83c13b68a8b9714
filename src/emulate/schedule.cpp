// Schedules, and one cluster under one of them: who runs next, when asynchronous work takes place, and what it means when nobody can go on.
#include <algorithm>

#include "emulate/machine.h"

namespace tw::emulate {

std::string Schedule::describe() const {
    std::string s;
    switch (order) {
        case Order::round_robin: s = "round-robin"; break;
        case Order::reverse: s = "reversed"; break;
        case Order::random: s = "random seed " + std::to_string(seed); break;
        case Order::starve: s = "warp " + std::to_string(victim) + " starved"; break;
    }
    return s + (lazy ? ", asynchronous work late" : ", asynchronous work at once");
}

std::vector<Schedule> hostile_schedules(const ir::Kernel& kernel, int random_count, std::uint64_t seed) {
    std::vector<Schedule> list;
    for (bool lazy : {false, true}) {
        list.push_back({Schedule::Order::round_robin, 0, lazy, seed});
        list.push_back({Schedule::Order::reverse, 0, lazy, seed});
    }
    // One victim per role is enough to starve a role; without roles, the first and the last warp.
    std::vector<int> victims = {0, kernel.warps - 1};
    ir::for_each_stmt(kernel.body, [&](const ir::Stmt& s) {
        if (auto* r = std::get_if<ir::Role>(&s.op)) {
            for (int i = 0; i < r->instances; ++i) victims.push_back(r->first_warp + i * r->warps_per_instance);
        }
    });
    std::sort(victims.begin(), victims.end());
    victims.erase(std::unique(victims.begin(), victims.end()), victims.end());
    for (int v : victims) list.push_back({Schedule::Order::starve, v, true, seed});
    for (int i = 0; i < random_count; ++i) {
        list.push_back({Schedule::Order::random, 0, (i & 1) != 0, seed + static_cast<std::uint64_t>(i)});
    }
    return list;
}

std::array<std::int64_t, 3> Machine::block_index(std::int64_t cluster, int rank) const {
    const std::int64_t clusters_x = grid_[0] / k_.cluster[0], clusters_y = grid_[1] / k_.cluster[1];
    return {cluster % clusters_x * k_.cluster[0] + rank % k_.cluster[0],
            cluster / clusters_x % clusters_y * k_.cluster[1] + rank / k_.cluster[0] % k_.cluster[1],
            cluster / clusters_x / clusters_y * k_.cluster[2] + rank / k_.cluster[0] / k_.cluster[1]};
}

void Machine::start_cluster(std::int64_t cluster) {
    cluster_ = cluster;
    const int count = cluster_size_;
    auto& spare = options_.cache->shadows;
    for (Block& b : blocks_) spare.push_back(std::move(b.shadow));
    blocks_.clear();
    blocks_.resize(static_cast<std::size_t>(count));
    warps_.clear();
    groups_.clear();
    tma_.clear();
    open_loads_.clear();
    cluster_barrier_ = {};
    rounds_ended_ = 0;
    if (options_.history) options_.history->arrivals.clear();
    actors_ = 4 * count * k_.warps + count * slots_;
    for (int rank = 0; rank < count; ++rank) {
        Block& b = blocks_[static_cast<std::size_t>(rank)];
        b.index = block_index(cluster, rank);
        if (options_.history) b.made.assign(static_cast<std::size_t>(k_.shared_bytes), 0);
        const auto granules = static_cast<std::size_t>(k_.shared_bytes / granule_ + 1);
        if (options_.values) {
            b.arena.assign(static_cast<std::size_t>(k_.shared_bytes), 0xff);  // 0xff.. is NaN in every float type
        }
        if (!spare.empty()) {
            b.shadow = std::move(spare.back());
            spare.pop_back();
        }
        b.shadow.reset();
        Places& places = options_.cache->places;
        if (!options_.values && places.granules() == 0) places = Places(static_cast<int>(granules));
        b.shadow.resize(options_.values ? granules : places.size());
        b.barriers.assign(static_cast<std::size_t>(slots_), BarrierSlot{});
        auto group = std::make_unique<Group>();
        group->block = rank;
        group->warps = k_.warps;
        group->fragments.resize(k_.fragments.size());
        for (int i = 0; i < k_.warps; ++i) {
            Warp w;
            w.block = rank;
            w.index = i;
            w.number = static_cast<int>(warps_.size());
            w.vars.assign(k_.vars.size(), 0);
            w.var_set.assign(k_.vars.size(), 0);
            w.messages.resize(k_.teams.size());
            w.groups.push_back(group.get());
            Frame frame;
            frame.region = &k_.body;
            w.frames.push_back(frame);
            w.knows.order.assign(static_cast<std::size_t>(actors_), 0);
            w.knows.fenced.assign(static_cast<std::size_t>(actors_), 0);
            if (refills_) w.knows.read.assign(static_cast<std::size_t>(count * k_.warps), 0);
            if (!options_.values) w.knows.waits.assign(static_cast<std::size_t>(actors_), 0);
            w.knows.order[static_cast<std::size_t>(w.number)] = 2;  // 1: it has started
            warps_.push_back(std::move(w));
        }
        groups_.push_back(std::move(group));
    }
    for (PagedShadow& shadow : global_shadow_) shadow.reset();
}

StuckWarps Machine::stuck_at(const Warp& w) {
    StuckWarps here;
    here.stmt = w.waiting_at;
    here.warps = 1;
    here.first_warp = w.index;
    here.rank = w.block;
    here.event = w.event;
    const Block& block = blocks_[static_cast<std::size_t>(w.block)];
    auto named = [&](std::int64_t id, int expected) {
        here.named = id;
        here.expected = expected;
        auto it = block.named.find(id);
        here.arrived = it == block.named.end() ? 0 : it->second.arrived;
    };
    if (auto* bw = std::get_if<ir::BarrierWait>(&w.waiting_at->op)) {
        const auto slot = value(w, bw->barrier.slot, *w.waiting_at);
        const ir::BarrierArray& array = k_.barriers[static_cast<std::size_t>(bw->barrier.array)];
        if (slot && *slot >= 0 && *slot < array.slots) {
            const BarrierSlot& b = block.barriers[static_cast<std::size_t>(barrier_base_[static_cast<std::size_t>(bw->barrier.array)] +
                                                                           static_cast<int>(*slot))];
            here.barrier = bw->barrier.array;
            here.slot = *slot;
            here.parity = value(w, bw->parity, *w.waiting_at).value_or(0);
            here.phase = b.state.phase;
            here.arrivals = b.state.pending;
            here.bytes = b.state.tx;
        }
    } else if (auto* n = std::get_if<ir::NamedSync>(&w.waiting_at->op)) {
        named(value(w, n->id, *w.waiting_at).value_or(0), n->threads);
    } else if (std::holds_alternative<ir::BlockSync>(w.waiting_at->op)) {
        named(0, 32 * k_.warps);
    }
    return here;
}

void Machine::run_cluster() {
    const Schedule& schedule = options_.schedule;
    const int n = static_cast<int>(warps_.size());
    auto try_warp = [&](int i, int burst) {
        bool moved = false;
        for (int b = 0; b < burst && !warps_[static_cast<std::size_t>(i)].done && !stopped(); ++b) {
            if (!step(warps_[static_cast<std::size_t>(i)])) break;
            moved = true;
        }
        return moved;
    };
    while (!stopped()) {
        bool moved = false, running = false;
        switch (schedule.order) {
            case Schedule::Order::round_robin:
                for (int i = 0; i < n; ++i) moved |= try_warp(i, 8);
                break;
            case Schedule::Order::reverse:
                for (int i = n - 1; i >= 0; --i) moved |= try_warp(i, 1 << 20);  // runs until it blocks
                break;
            case Schedule::Order::random: {
                const int i = static_cast<int>(random_() % static_cast<std::uint64_t>(n));
                moved = try_warp(i, 1 + static_cast<int>(random_() % 24));
                if (!moved) {
                    for (int j = 0; j < n && !moved; ++j) moved = try_warp((i + j) % n, 1);
                }
                if (random_() % 4 == 0) moved |= progress_async(false);
                break;
            }
            case Schedule::Order::starve:
                for (int i = 0; i < n; ++i) {
                    if (i % k_.warps != schedule.victim) moved |= try_warp(i, 1 << 20);
                }
                if (!moved) {
                    for (int i = 0; i < n; ++i) {
                        if (i % k_.warps == schedule.victim) moved |= try_warp(i, 1);
                    }
                }
                break;
        }
        if (moved) continue;
        for (const Warp& w : warps_) running |= !w.done;
        if (progress_async(true)) continue;
        if (!running) break;
        if (!options_.in_step.empty()) {
            outcome_.out_of_step = true;
            return;
        }
        // Nothing can move: say where everybody stands.
        std::vector<StuckWarps> stuck;
        const Warp* first = nullptr;
        for (const Warp& w : warps_) {
            if (w.done || !w.waiting_at) continue;
            if (!first) first = &w;
            const StuckWarps here = stuck_at(w);
            auto same = std::find_if(stuck.begin(), stuck.end(), [&](const StuckWarps& t) {
                return t.stmt == here.stmt && t.rank == here.rank && t.slot == here.slot && t.parity == here.parity &&
                       w.groups.back() == warps_[static_cast<std::size_t>(t.rank * k_.warps + t.first_warp)].groups.back();
            });
            if (same == stuck.end()) stuck.push_back(here);
            else ++same->warps;
        }
        std::string where;
        for (const StuckWarps& t : stuck) {
            where +=
                "\n    " + std::to_string(t.warps) + " warp(s) wait at line " + ir::line_text(t.stmt->loc) + ": " + ir::print(k_, *t.stmt);
            if (t.barrier >= 0) {
                where += " (slot " + std::to_string(t.slot) + ": " + std::to_string(t.phase) + " phases done, " +
                         std::to_string(t.arrivals) + " arrivals and " + std::to_string(t.bytes) + " bytes outstanding)";
            }
        }
        fault(FaultKind::deadlock, "no warp can go on:" + where, first, 0, first ? *first->waiting_at : k_.body.front());
        if (!outcome_.faults.empty() && outcome_.faults.back().kind == FaultKind::deadlock) outcome_.faults.back().stuck = std::move(stuck);
        return;
    }
    if (stopped()) return;
    if (mixed_ && outcome_.faults.empty()) {
        fault(FaultKind::barrier,
              "this arrival may come before one of the barrier's round before, and be counted in its place: nothing orders the two",
              &warps_[static_cast<std::size_t>(mixed_->first)], 0, *mixed_->second);
    }
    if (early_ && outcome_.faults.empty()) {
        fault(FaultKind::barrier,
              "this may be counted in the mbarrier's phase before: the copy that ends that phase may be under way still, and nothing here "
              "knows "
              "that it has landed",
              &warps_[static_cast<std::size_t>(early_->first)], 0, *early_->second);
    }
    if (uncounted_ && outcome_.faults.empty()) {
        fault(FaultKind::barrier,
              "the mbarrier's phase may end before this is issued: it counts for nothing, and no arrival that counts knows of it",
              &warps_[static_cast<std::size_t>(uncounted_->first)], 0, *uncounted_->second);
    }
    if (overrun_ && outcome_.faults.empty()) {
        fault(FaultKind::phase, "an mbarrier's next phase may end before this wait has seen the one before: nothing orders the two",
              &warps_[static_cast<std::size_t>(overrun_->first)], 0, *overrun_->second);
    }
    if (stale_ && outcome_.faults.empty()) {
        fault(FaultKind::phase,
              "this wait may return two phases early: an older phase of the mbarrier has the same parity, and nothing shows that the one "
              "between them has ended",
              &warps_[static_cast<std::size_t>(stale_->first)], 0, *stale_->second);
    }
    // A block may not end while the copy engine still reads or writes its shared memory.
    for (const TmaTask& t : tma_) {
        if (t.kind == TmaTask::Kind::store && !t.read_done) {
            Access issue;
            issue.lane = no_lane;
            issue.snapshot = t.snapshot;
            issue.stmt = t.stmt;
            fault(FaultKind::in_flight,
                  "the block ends while a bulk store may still read its shared memory; wait for it (tma_store_wait(0))",
                  &warps_[static_cast<std::size_t>(t.warp)], 0, *t.stmt, nullptr, {}, &issue);
        }
    }
    check_exits();
}

bool Machine::known_in_block(std::size_t block, int actor, std::uint32_t time) const {
    const auto a = static_cast<std::size_t>(actor);
    return std::any_of(warps_.begin(), warps_.end(), [&](const Warp& w) {
        return static_cast<std::size_t>(w.block) == block &&
               (w.knows.order[a] >= time || (w.lane0_ahead && a < w.lane0.order.size() && w.lane0.order[a] >= time));
    });
}

bool Machine::all_ended(std::int64_t round) {
    if (round <= rounds_ended_) return true;
    // Warps without such a loop are done, or wait where the blocks of a cluster meet at the end.
    const Stmt* end = std::holds_alternative<ir::ClusterWait>(k_.body.back().op) ? &k_.body.back() : nullptr;
    if (!std::all_of(warps_.begin(), warps_.end(),
                     [&](const Warp& w) { return w.done || w.rounds >= round || (end && w.waiting_at == end); }))
        return false;
    rounds_ended_ = round;
    // A launch of so many iterations would end here. Where the blocks of a cluster meet before they end, all that their threads did is over
    // then.
    const bool meet = cluster_size_ > 1 && std::any_of(k_.body.begin(), k_.body.end(), [&](const Stmt& s) {
                          return std::holds_alternative<ir::ClusterWait>(s.op) && &s + 2 >= &k_.body.back();
                      });
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        for (const auto& [actor, visit] : blocks_[b].visits) {
            const bool by_thread = actor < static_cast<int>(warps_.size());
            outcome_.out_of_step |= !(by_thread && meet) && !known_in_block(b, actor, visit.time);
        }
    }
    return true;
}

// A block's shared memory is there until its last warp ends. Whatever reached into it must have happened before that: some warp
// of the block must know of it.
void Machine::check_exits() {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
        for (const auto& [actor, visit] : blocks_[b].visits) {
            if (known_in_block(b, actor, visit.time)) continue;
            const bool by_load = std::holds_alternative<ir::TmaLoad>(visit.stmt->op);
            fault({FaultKind::in_flight, by_load ? FaultCause::other : FaultCause::peer_ended},
                  by_load ? "the block ends while a TMA load may still write to its shared memory; wait for its mbarrier first"
                          : "block " + std::to_string(b) +
                                " of the cluster may end while this still reaches into its shared memory; a cluster barrier must follow "
                                "before the block ends",
                  &warps_[static_cast<std::size_t>(visit.warp)], 0, *visit.stmt);
            break;
        }
    }
}

// Lands pieces of boxes that are on their way: of one chosen at random, or, when nobody can go on without them, of each, and in
// a reversed schedule of the youngest only (loads on different barriers may overtake each other).
bool Machine::progress_async(bool all) {
    open_loads_.erase(std::remove_if(open_loads_.begin(), open_loads_.end(), [&](int i) { return tma_[static_cast<std::size_t>(i)].done; }),
                      open_loads_.end());
    if (open_loads_.empty()) return false;
    if (!all) {
        tma_load_piece(tma_[static_cast<std::size_t>(open_loads_[random_() % open_loads_.size()])]);
    } else if (options_.schedule.order == Schedule::Order::reverse) {
        tma_load_piece(tma_[static_cast<std::size_t>(open_loads_.back())]);
    } else {
        for (int i : open_loads_) tma_load_piece(tma_[static_cast<std::size_t>(i)]);
    }
    return true;
}

}  // namespace tw::emulate
