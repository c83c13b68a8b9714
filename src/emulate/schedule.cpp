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
    tma_first_open_ = 0;
    cluster_barrier_ = {};
    actors_ = 4 * count * k_.warps + count * slots_;
    const std::int64_t clusters_x = grid_[0] / k_.cluster[0], clusters_y = grid_[1] / k_.cluster[1];
    const std::int64_t cx = cluster % clusters_x, cy = cluster / clusters_x % clusters_y, cz = cluster / clusters_x / clusters_y;
    for (int rank = 0; rank < count; ++rank) {
        Block& b = blocks_[static_cast<std::size_t>(rank)];
        b.index[0] = cx * k_.cluster[0] + rank % k_.cluster[0];
        b.index[1] = cy * k_.cluster[1] + rank / k_.cluster[0] % k_.cluster[1];
        b.index[2] = cz * k_.cluster[2] + rank / k_.cluster[0] / k_.cluster[1];
        const auto granules = static_cast<std::size_t>(k_.shared_bytes / granule_ + 1);
        if (options_.values) {
            b.arena.assign(static_cast<std::size_t>(k_.shared_bytes), 0xff);   // 0xff.. is NaN in every float type
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
            w.groups.push_back(group.get());
            Frame frame;
            frame.region = &k_.body;
            w.frames.push_back(frame);
            w.knows.order.assign(static_cast<std::size_t>(actors_), 0);
            w.knows.fenced.assign(static_cast<std::size_t>(actors_), 0);
            w.knows.order[static_cast<std::size_t>(w.number)] = 1;
            warps_.push_back(std::move(w));
        }
        groups_.push_back(std::move(group));
    }
    for (PagedShadow& shadow : global_shadow_) shadow.reset();
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
                for (int i = n - 1; i >= 0; --i) moved |= try_warp(i, 1 << 20);   // runs until it blocks
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
        // Nothing can move: say where everybody stands.
        std::string where;
        const Warp* first = nullptr;
        std::map<std::string, int> places;
        for (const Warp& w : warps_) {
            if (w.done || !w.waiting_at) continue;
            if (!first) first = &w;
            std::string place = "line " + std::to_string(w.waiting_at->loc.line) + ": " + ir::print(k_, *w.waiting_at);
            if (auto* bw = std::get_if<ir::BarrierWait>(&w.waiting_at->op)) {
                auto slot = value(w, bw->barrier.slot, *w.waiting_at);
                if (slot) {
                    const BarrierSlot& b = blocks_[static_cast<std::size_t>(w.block)].barriers[static_cast<std::size_t>(barrier_base_[static_cast<std::size_t>(bw->barrier.array)] + static_cast<int>(*slot))];
                    place += " (slot " + std::to_string(*slot) + ": " + std::to_string(b.phase) + " phases done, " + std::to_string(b.pending) +
                             " arrivals and " + std::to_string(b.tx) + " bytes outstanding)";
                }
            }
            ++places[place];
        }
        for (const auto& [place, count] : places) where += "\n    " + std::to_string(count) + " warp(s) wait at " + place;
        fault(FaultKind::deadlock, "no warp can go on:" + where, first, 0, first ? *first->waiting_at : k_.body.front());
        return;
    }
    if (stopped()) return;
    // A block may not end while the copy engine still reads or writes its shared memory.
    for (const TmaTask& t : tma_) {
        if (t.kind == TmaTask::Kind::store && !t.read_done) {
            fault(FaultKind::in_flight, "the block ends while a bulk store may still read its shared memory; wait for it (tma_store_wait(0))",
                  &warps_[static_cast<std::size_t>(t.warp)], 0, *t.stmt);
        }
    }
}

bool Machine::progress_async(bool all) {
    bool moved = false;
    while (tma_first_open_ < tma_.size() && tma_[tma_first_open_].done) ++tma_first_open_;
    for (std::size_t i = tma_first_open_; i < tma_.size(); ++i) {
        TmaTask& t = tma_[i];
        if (t.done) continue;
        if (t.kind == TmaTask::Kind::load) {
            if (!all && random_() % 2) continue;
            tma_load_now(t);
            moved = true;
            if (!all) return true;
        }
    }
    return moved;
}

}  // namespace tw::emulate
