// Waits for asynchronous work, fences, and the barrier of the cluster.
#include <algorithm>
#include <utility>

#include "emulate/machine.h"

namespace tw::emulate {

void Machine::wait_for_copies(Warp& w, int pending) {
    while (static_cast<int>(w.copy_groups.size()) > pending) {
        land_copies(w, w.copy_groups.front(), w.knows);
        for (const CopyTask& t : w.copy_groups.front()) w.own_copies = std::max(w.own_copies, t.time);
        w.copy_groups.pop_front();
    }
}

void Machine::arrive_with_copies(Warp& w, const Stmt& s, const ir::CpAsyncArrive& op) {
    // The arrive happens when all of this thread's earlier cp.async have landed.
    for (auto& g : w.copy_groups) {
        land_copies(w, g, w.knows);
    }
    land_copies(w, w.copies_open, w.knows);
    auto place = barrier_slot(w, s, op.barrier);
    if (!place) return;
    BarrierSlot& slot = blocks_[static_cast<std::size_t>(place->first)].barriers[static_cast<std::size_t>(place->second)];
    Knowledge copies = w.knows;
    copies.order[static_cast<std::size_t>(actor_copies(w.number))] = w.copy_time;
    if (!op.noinc && !options_.values) slot.uncounted.emplace_back(w.number, w.knows.order[static_cast<std::size_t>(w.number)], &s);
    if (!options_.values) slot.landing.emplace_back(actor_copies(w.number), w.copy_time);
    slot.gathering.all.join_from(copies);
    if (cluster_size_ > 1) slot.gathering.near.join_from(copies);
    barrier_arrive(w, s, op.barrier, ir::Scope::block, op.noinc ? 1 : 0, 0);
}

void Machine::wait_for_bulk(Warp& w, int pending) {
    const std::size_t covered = w.bulk_groups.size() - std::min(w.bulk_groups.size(), static_cast<std::size_t>(pending));
    // Groups belong to the thread that committed them: lane 0, whoever else executes the wait.
    Knowledge& lane0 = w.single ? w.knows : w.lane0;
    if (!w.single && covered > 0) {
        lane0.order.resize(static_cast<std::size_t>(actors_), 0);
        w.lane0_ahead = true;
    }
    for (std::size_t g = 0; g < covered; ++g) {
        for (int id : w.bulk_groups[g]) {
            TmaTask& t = tma_[static_cast<std::size_t>(id)];
            tma_store_read(t);
            auto& c = lane0.order[static_cast<std::size_t>(actor_bulk(w.number))];
            c = std::max(c, t.time);
        }
    }
    w.bulk_groups.erase(w.bulk_groups.begin(), w.bulk_groups.begin() + static_cast<std::ptrdiff_t>(covered));
}

void Machine::init_barrier(Warp& w, const Stmt& s, const ir::BarrierInit& op) {
    auto place = barrier_slot(w, s, op.barrier);
    if (!place) return;
    BarrierSlot& slot = blocks_[static_cast<std::size_t>(place->first)].barriers[static_cast<std::size_t>(place->second)];
    slot = BarrierSlot{};
    slot.initialised = true;
    slot.state = target::mbarrier_init(op.arrivals);
    slot.initialiser = w.number;
    slot.init_time = w.knows.order[static_cast<std::size_t>(w.number)];
    if (op.arrivals < 1) fault(FaultKind::barrier, "an mbarrier must expect at least one arrival", &w, 0, s);
}

void Machine::cluster_arrive(Warp& w, const Stmt& s, bool relaxed) {
    share_own_copies(w);
    const Stmt* before = std::exchange(w.at_cluster_barrier, &s);
    if (before) {
        fault({FaultKind::barrier, FaultCause::cluster_barrier},
              s.loc.line ? "this is the second arrival at the cluster barrier with no wait between"
                         : "the wait for this arrival at the cluster barrier is missing: the kernel's end arrives there too",
              &w, 0, s.loc.line ? s : *before);
        return;
    }
    count_arrival(w, s, cluster_barrier_.released);
    // .relaxed counts like any arrival and passes nothing on but that this warp has started.
    Knowledge& gathering = cluster_barrier_.gathering;
    if (!relaxed) pass_on(w, gathering);
    join(gathering.waits, w.knows.waits);
    gathering.order.resize(static_cast<std::size_t>(actors_), 0);
    auto& started = gathering.order[static_cast<std::size_t>(w.number)];
    started = std::max(started, 1u);
    tick(w);
    w.wait_generation = cluster_barrier_.generation;
    if (++cluster_barrier_.arrived == static_cast<int>(warps_.size())) {
        cluster_barrier_.released = std::move(cluster_barrier_.gathering);
        cluster_barrier_.gathering = {};
        cluster_barrier_.arrived = 0;
        ++cluster_barrier_.generation;
    }
}

bool Machine::cluster_wait(Warp& w, const Stmt& s) {
    if (!w.at_cluster_barrier) {
        fault({FaultKind::barrier, FaultCause::cluster_barrier}, "this wait at the cluster barrier has no arrival before it", &w, 0, s);
        return true;
    }
    if (cluster_barrier_.generation == w.wait_generation) return false;
    w.at_cluster_barrier = nullptr;
    w.knows.join_from(cluster_barrier_.released);
    warp_barrier(w);
    return true;
}

void Machine::proxy_fence(Warp& w) {
    // The fence covers what this warp wrote before it, and where every lane executes it, what each lane has read and the copies (cp.async
    // writes through the generic proxy) that it has waited for.
    auto n = static_cast<std::size_t>(w.number);
    w.knows.fenced[n] = w.knows.order[n];
    if (!w.single) {
        auto& copies = w.knows.fenced[static_cast<std::size_t>(actor_copies(w.number))];
        copies = std::max(copies, w.own_copies);
        if (!w.knows.read.empty()) w.knows.read[n] = w.knows.order[n];
    }
    tick(w);
}

bool Machine::wait_for_wgmma(Warp& w, int pending) {
    // A wgmma is one operation of the whole warpgroup: it is complete for a warp when it is complete for all four.
    const Group& g = group_of(w);
    const int first = w.number - warp_in_group(w);
    const std::size_t covered = w.wgmma_groups.size() - std::min(w.wgmma_groups.size(), static_cast<std::size_t>(pending));
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < covered; ++i) {
        for (const WgmmaTask& t : w.wgmma_groups[i]) last = std::max(last, t.time);
    }
    for (int i = 0; i < g.warps; ++i) {
        if (warps_[static_cast<std::size_t>(first + i)].wgmma_time < last) return false;
    }
    for (int i = 0; i < g.warps && last > 0; ++i) {
        Warp& peer = warps_[static_cast<std::size_t>(first + i)];
        for (auto& list : peer.wgmma_groups) {
            for (WgmmaTask& t : list) {
                if (t.time <= last) finish_wgmma(peer, t);
            }
        }
        for (WgmmaTask& t : peer.wgmma_open) {
            if (t.time <= last) finish_wgmma(peer, t);
        }
        if (!options_.values) {  // the peer took part, so it was past its waits by then
            auto& passed = w.knows.waits[static_cast<std::size_t>(peer.number)];
            passed = std::max(passed, peer.waits_at_wgmma[last - 1]);
        }
        auto& c = w.knows.order[static_cast<std::size_t>(actor_wgmma(peer.number))];
        c = std::max(c, last);
    }
    for (std::size_t i = 0; i < covered; ++i) {
        for (WgmmaTask& t : w.wgmma_groups.front()) release_fragments(w, t);
        w.wgmma_groups.pop_front();
    }
    return true;
}

}  // namespace tw::emulate
