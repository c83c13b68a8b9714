// Barriers: mbarriers, named barriers, the block barrier.
#include <algorithm>
#include <utility>

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
                fault({FaultKind::proxy, FaultCause::initialisation},
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

// What counts for a phase of an mbarrier must come after the end of the one before. Asynchronous work that ends that one is an event of
// its own: who issued it, or saw it issued, does not know it has landed.
void Machine::count_in_phase(Warp& w, const Stmt& s, const BarrierSlot& b) {
    if (options_.values || early_) return;
    for (const auto& [actor, time] : b.landed)
        if (w.knows.order[at(actor)] < time) early_ = {w.number, &s};  // told at the end, where nothing worse was found
}

// A wait returns at once where the phase before the last one has not ended yet: the one before that had the same parity. Who waits must
// know that it has; otherwise which phase it sees hangs on the schedule.
void Machine::wait_in_phase(Warp& w, const Stmt& s, const BarrierSlot& b) {
    if (options_.values || stale_) return;
    bool known = covers(w.knows.waits, b.ended_before);
    for (const auto& [actor, time] : b.landed_before) known = known && w.knows.order[at(actor)] >= time;
    if (!known) stale_ = {w.number, &s};  // told at the end, where nothing worse was found
}

void Machine::advance_barrier(BarrierSlot& b, const target::MbarrierStep& step) {
    b.state = step.state;
    if (step.phase_completed) end_phase(b);
}

void Machine::end_phase(BarrierSlot& b) {
    // A parity tells two phases apart. Who waits for one must be known to have passed before the next one ends, or a later comer
    // finds the parity come round again and waits for ever: that the other schedules end as this one does stands on it.
    for (const auto& [warp, wait] : b.waited) {
        const auto n = static_cast<std::size_t>(warp);
        if (const Clock& waits = b.gathering.all.waits; n < waits.size() && waits[n] >= wait.first) continue;
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
    b.ended_before = std::move(b.released.all.waits);
    b.landed_before = std::exchange(b.landed, std::exchange(b.landing, {}));
    b.released = std::move(b.gathering);
    b.gathering = {};
    b.tma_time += 1;
}

// Of what a thread knows, what needs no fence to be passed on: that warps run, and asynchronous work that is complete.
Knowledge Machine::without_ordinary(Knowledge k) const {
    const std::size_t warps = warps_.size();
    for (std::size_t n = 0; n < 2 * warps; ++n) {  // the warps, and the copies of their threads
        if (n < k.order.size()) k.order[n] = n < warps ? std::min(k.order[n], 1u) : 0;
        if (n < k.fenced.size()) k.fenced[n] = 0;
    }
    std::fill(k.read.begin(), k.read.end(), 0);
    return k;
}

// An arrival and a wait order ordinary accesses where the scope of each includes the other's thread.
void Machine::pass_to(BarrierSlot& b, bool same_block, ir::Scope release, const Knowledge& known, const Warp& w) const {
    BarrierSlot::Passed& to = b.gathering;
    join(to.all.waits, known.waits);
    if (same_block && release != ir::Scope::none) to.all.join_from(known);
    if (cluster_size_ == 1 && release != ir::Scope::none) return;
    to.weak.join_from(without_ordinary(known));
    if (same_block) to.near.join_from(release == ir::Scope::none ? w.before_fence : known);
    else if (release == ir::Scope::cluster) to.far.join_from(known);
}

void Machine::learn_from(Warp& w, const BarrierSlot& b, ir::Scope acquire) {
    const BarrierSlot::Passed& from = b.released;
    join(w.knows.waits, from.all.waits);
    w.knows.join_from(from.weak);
    if (acquire == ir::Scope::none) return w.after_wait.join_from(from.near);
    w.knows.join_from(from.all);
    w.knows.join_from(from.near);
    if (acquire == ir::Scope::cluster) w.knows.join_from(from.far);
}

void Machine::block_fence(Warp& w) {
    w.knows.join_from(std::exchange(w.after_wait, {}));
    w.before_fence = known_to_one_thread(w);
    if (!w.single && w.lane0_ahead) w.before_fence.join_from(w.lane0);
    tick(w);
}

void Machine::barrier_arrive(Warp& w, const Stmt& s, const ir::BarrierRef& ref, ir::Scope release, int count, std::int64_t bytes) {
    auto place = barrier_slot(w, s, ref);
    if (!place) return;
    BarrierSlot& b = blocks_[at(place->first)].barriers[at(place->second)];
    count_arrival(w, s, b.released.all);
    count_in_phase(w, s, b);
    const int copies = w.single ? 1 : 32;
    note_arrival(place->first, place->second, w.event, count * copies, bytes * copies, 0);
    Knowledge passed_on = known_to_one_thread(w);
    if (place->first != w.block) visit_peer(place->first, w, passed_on.order[at(w.number)], s);
    if (count > 0 && !options_.values) join(b.counted, passed_on.order);
    if (!w.single && w.lane0_ahead) passed_on.join_from(w.lane0);
    pass_to(b, place->first == w.block, release, passed_on, w);
    tick(w);
    for (int i = 0; i < count * copies; ++i) {
        const auto step = bytes ? target::mbarrier_arrive_expect_tx(b.state, bytes) : target::mbarrier_arrive(b.state);
        if (!step.legal) {
            const std::string name = "mbarrier `" + k_.barriers[at(ref.array)].name + "`";
            if (b.state.pending > 0) return fault(FaultKind::byte_count, name + ": " + step.legal.reason, &w, 0, s);
            return fault({FaultKind::barrier, FaultCause::too_many_arrivals},
                         name + " gets more arrivals in a phase than the " + std::to_string(b.state.expected) + " it expects", &w, 0, s);
        }
        advance_barrier(b, step);
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
    if (!target::mbarrier_wait_parity(b.state, static_cast<int>(parity))) return false;
    wait_in_phase(w, s, b);
    // No new epoch: a wait orders each lane after the arrivals, not the warp's lanes among themselves.
    learn_from(w, b, op.acquire);
    // Where all lanes arrived there themselves, each knows now what the others did before.
    if (const Clock& known = b.released.all.order; !w.single && op.acquire != ir::Scope::none && at(w.number) < known.size())
        w.lanes_clock = std::max(w.lanes_clock, known[at(w.number)]);
    if (const Clock& known = b.released.all.read; !w.single && op.acquire != ir::Scope::none && at(w.number) < known.size())
        w.lanes_read = std::max(w.lanes_read, known[at(w.number)]);
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
