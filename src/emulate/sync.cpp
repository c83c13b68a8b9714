// Barriers: mbarriers, named barriers, the block barrier.
#include "base/index.h"
#include "emulate/machine.h"

namespace tw::emulate {
namespace {}  // namespace

std::optional<std::pair<int, int>> Machine::barrier_slot(Warp& w, const Stmt& s, const ir::BarrierRef& ref) {
    const std::int64_t slot = must(w, ref.slot, s);
    const ir::BarrierArray& array = k_.barriers[at(ref.array)];
    if (slot < 0 || slot >= array.slots) {
        fault(FaultKind::out_of_bounds,
              "slot " + std::to_string(slot) + " of mbarrier array `" + array.name + "` does not exist (it has " +
                  std::to_string(array.slots) + ")",
              &w, 0, s);
        return std::nullopt;
    }
    int block = w.block;
    if (ref.cluster_rank) {
        const std::int64_t rank = must(w, *ref.cluster_rank, s);
        if (rank < 0 || rank >= cluster_size_) {
            fault(FaultKind::out_of_bounds, "cluster rank " + std::to_string(rank) + " does not exist", &w, 0, s);
            return std::nullopt;
        }
        block = static_cast<int>(rank);
    }
    const int number = barrier_base_[at(ref.array)] + static_cast<int>(slot);
    const BarrierSlot& b = blocks_[at(block)].barriers[at(number)];
    if (!std::holds_alternative<ir::BarrierInit>(s.op)) {
        if (!b.initialised) {
            fault(FaultKind::barrier, "mbarrier `" + array.name + "[" + std::to_string(slot) + "]` is used before it is initialised", &w, 0,
                  s);
            return std::nullopt;
        }
        if (b.initialiser != w.number) {
            const auto who = static_cast<std::size_t>(b.initialiser);
            if (w.knows.order[who] < b.init_time) {
                fault(FaultKind::race,
                      "the initialisation of mbarrier `" + array.name + "` is not ordered before its use (a barrier is missing)", &w, 0, s);
                return std::nullopt;
            }
        }
        // The copy engine completes on it from another proxy, whoever initialised it.
        if (b.initialiser != w.number || std::holds_alternative<ir::TmaLoad>(s.op)) {
            if (w.knows.fenced[static_cast<std::size_t>(b.initialiser)] < b.init_time) {
                fault(FaultKind::proxy,
                      "the initialisation of mbarrier `" + array.name + "` was not fenced (fence.mbarrier_init) before its use", &w, 0, s);
                return std::nullopt;
            }
        }
    }
    return std::make_pair(block, number);
}

// An arrival that may come before one of the round before would be counted in that one's place: who meets whom would hang on the schedule.
void Machine::count_arrival(Warp& w, const Stmt& s, const Knowledge& round_before) {
    if (options_.values) return;
    if (!mixed_ && !covers(w.knows.waits, round_before.waits)) mixed_ = {w.number, &s};  // told at the end, where nothing worse was found
    ++w.knows.waits[at(w.number)];
}

void Machine::complete_phase_if_ready(int block, int number) {
    BarrierSlot& b = blocks_[at(block)].barriers[at(number)];
    if (b.pending != 0 || b.tx != 0) return;
    // A parity tells two phases apart. Who waits for one must be known to have passed before the next one ends, or a later comer
    // finds the parity come round again and waits for ever: that the other schedules end as this one does stands on it.
    for (const auto& [warp, wait] : b.waited) {
        const auto n = static_cast<std::size_t>(warp);
        if (n < b.gathering.waits.size() && b.gathering.waits[n] >= wait.first) continue;
        if (!overrun_) overrun_ = {warp, wait.second};  // told at the end, where nothing worse was found
        break;
    }
    b.waited.clear();
    for (const auto& [warp, time, stmt] : b.uncounted) {
        const auto n = static_cast<std::size_t>(warp);
        if (n < b.counted.size() && b.counted[n] >= time) continue;
        if (!uncounted_) uncounted_ = {warp, stmt};
    }
    b.uncounted.clear();
    b.counted.clear();
    ++b.phase;
    b.pending = b.arrivals;
    b.released = std::move(b.gathering);
    b.gathering = {};
    b.tma_time += 1;
}

void Machine::barrier_arrive(Warp& w, const Stmt& s, const ir::BarrierRef& ref, int count, std::int64_t bytes) {
    auto place = barrier_slot(w, s, ref);
    if (!place) return;
    BarrierSlot& b = blocks_[at(place->first)].barriers[at(place->second)];
    count_arrival(w, s, b.released);
    const int copies = w.single ? 1 : 32;
    note_arrival(place->first, place->second, w.event, count * copies, bytes * copies, 0);
    b.tx += bytes * copies;
    Knowledge passed_on = known_to_one_thread(w);
    if (place->first != w.block) {
        visit_peer(place->first, w, passed_on.order[at(w.number)], s);
        // Relaxed (ir/handover.h): a block learns nothing of its own warps' doing by way of another, but that they run.
        for (int n = place->first * k_.warps; handover_ != ir::Handover::cluster && n < (place->first + 1) * k_.warps; ++n) {
            if (at(n) < passed_on.order.size()) passed_on.order[at(n)] = std::min(passed_on.order[at(n)], 1u);
            if (at(n) < passed_on.fenced.size()) passed_on.fenced[at(n)] = 0;
        }
    }
    b.gathering.join_from(passed_on);
    if (!w.single && w.lane0_ahead) b.gathering.join_from(w.lane0);
    if (count > 0 && !options_.values) join(b.counted, passed_on.order);
    tick(w);
    for (int i = 0; i < count * copies; ++i) {
        if (b.pending == 0) {
            fault(FaultKind::barrier,
                  "mbarrier `" + k_.barriers[at(ref.array)].name + "` gets more arrivals in a phase than the " +
                      std::to_string(b.arrivals) + " it expects",
                  &w, 0, s);
            return;
        }
        --b.pending;
        complete_phase_if_ready(place->first, place->second);
    }
}

bool Machine::barrier_wait(Warp& w, const Stmt& s, const ir::BarrierWait& op) {
    auto place = barrier_slot(w, s, op.barrier);
    if (!place) return true;
    const std::int64_t parity = must(w, op.parity, s);
    if (parity != 0 && parity != 1) {
        fault(FaultKind::phase, "the parity of an mbarrier wait is " + std::to_string(parity), &w, 0, s);
        return true;
    }
    BarrierSlot& b = blocks_[at(place->first)].barriers[at(place->second)];
    if (static_cast<std::int64_t>(b.phase & 1) == parity) return false;
    // No new epoch: a wait orders each lane after the arrivals, not the warp's lanes among themselves.
    w.knows.join_from(b.released);
    // Where all lanes arrived there themselves, each knows now what the others did before.
    if (const auto n = at(w.number); !w.single && n < b.released.order.size()) w.lanes_clock = std::max(w.lanes_clock, b.released.order[n]);
    if (!options_.values) b.waited[w.number] = {++w.knows.waits[at(w.number)], &s};
    return true;
}

bool Machine::named_sync(Warp& w, const Stmt& s, std::int64_t id, int threads, bool wait) {
    NamedBarrier& b = blocks_[at(w.block)].named[id];
    if (w.joined) {
        if (b.generation == w.wait_generation) return false;
        w.joined = false;
        w.knows.join_from(b.released);
        warp_barrier(w);
        return true;
    }
    if (!w.single) share_own_copies(w);
    if (w.single) {
        fault(FaultKind::divergence, "one elected thread executes a barrier that counts whole warps", &w, 0, s);
        return true;
    }
    if (id < 0 || id > 15) {
        fault(FaultKind::barrier, "named barrier " + std::to_string(id) + " does not exist (0 to 15)", &w, 0, s);
        return true;
    }
    if (b.arrived > 0 && b.expected != threads) {
        fault(FaultKind::barrier,
              "named barrier " + std::to_string(id) + " is used with " + std::to_string(threads) + " and " + std::to_string(b.expected) +
                  " threads at the same time",
              &w, 0, s);
        return true;
    }
    count_arrival(w, s, b.released);
    b.expected = threads;
    b.arrived += 32;
    pass_on(w, b.gathering);
    tick(w);
    w.wait_generation = b.generation;
    if (b.arrived > threads) {
        fault(FaultKind::barrier,
              "named barrier " + std::to_string(id) + " gets more threads than the " + std::to_string(threads) + " it expects", &w, 0, s);
        return true;
    }
    if (b.arrived == threads) {
        b.released = std::move(b.gathering);
        b.gathering = {};
        b.arrived = 0;
        ++b.generation;
    }
    if (!wait) return true;
    w.joined = true;
    return named_sync(w, s, id, threads, true);
}

}  // namespace tw::emulate
