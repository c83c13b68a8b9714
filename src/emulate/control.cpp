// Control flow of a warp: expressions, frames, and which statement does what.
#include <algorithm>
#include <limits>
#include <utility>

#include "emulate/machine.h"

namespace tw::emulate {
namespace {

// Pre: from <= to. Their difference may be more than a signed integer holds.
std::uint64_t distance(std::int64_t from, std::int64_t to) { return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from); }

}  // namespace

std::optional<std::int64_t> Machine::value(const Warp& w, const ir::Expr& e, const Stmt& s) {
    const Block& b = blocks_[static_cast<std::size_t>(w.block)];
    return ir::evaluate(e, [&](const ir::ExprNode& n, const std::vector<std::int64_t>& args) -> std::optional<std::int64_t> {
        switch (n.kind) {
            case ir::ExprKind::size: return sizes_[static_cast<std::size_t>(n.id)];
            case ir::ExprKind::var:
                if (!w.var_set[static_cast<std::size_t>(n.id)]) return std::nullopt;
                return w.vars[static_cast<std::size_t>(n.id)];
            case ir::ExprKind::block_index: return b.index[n.id];
            case ir::ExprKind::grid_size: return grid_[n.id];
            case ir::ExprKind::cluster_rank: return w.block;
            case ir::ExprKind::element: {
                const TensorData& t = tensors_[static_cast<std::size_t>(n.id)];
                std::int64_t offset = 0;
                for (std::size_t i = 0; i < args.size(); ++i) {
                    if (args[i] < 0 || args[i] >= t.dims[i]) {
                        fault(FaultKind::out_of_bounds,
                              "index " + std::to_string(args[i]) + " of `" + k_.tensors[static_cast<std::size_t>(n.id)].name +
                                  "` is outside [0, " + std::to_string(t.dims[i]) + ")",
                              &w, 0, s);
                        return std::nullopt;
                    }
                    offset += args[i] * t.strides[i];
                }
                return static_cast<std::int64_t>(load_value(&t.bytes[static_cast<std::size_t>(offset * target::bytes(t.dtype))], t.dtype));
            }
            default: return std::nullopt;
        }
    });
}

std::int64_t Machine::must(const Warp& w, const ir::Expr& e, const Stmt& s) {
    const std::size_t before = outcome_.faults.size();
    auto v = value(w, e, s);
    if (v) return *v;
    if (outcome_.faults.size() == before) {
        fault(FaultKind::uninitialised,
              "the expression " + ir::to_string(e, ir::names_of(k_)) + " has no value here (unset variable, division by zero or overflow)",
              &w, 0, s);
    }
    return 0;
}

bool Machine::step(Warp& w) {
    if (w.done) return false;
    if (++outcome_.steps > options_.step_limit) {
        if (!limit_hit_)
            fault(FaultKind::limit, "more than " + std::to_string(options_.step_limit) + " statements executed; the emulator gives up", &w,
                  0, k_.body.front());
        limit_hit_ = true;
        return false;
    }
    if ((outcome_.steps & 0x3ff) == 0) report_progress(cluster_);
    while (!w.frames.empty()) {
        Frame& f = w.frames.back();
        if (f.pc < f.region->size()) break;
        const bool again = f.loop && distance(f.index, f.hi) > static_cast<std::uint64_t>(f.step);
        if (f.in_step) {
            w.rounds = again ? f.round + 1 : std::numeric_limits<std::int64_t>::max();
            if (again && !all_ended(f.round + 1)) return false;
        }
        if (again) {
            f.index += f.step;
            ++f.round;
            f.pc = 0;
            w.vars[static_cast<std::size_t>(f.loop->var)] = f.index;
            w.snapshot.reset();
            break;
        }
        if (f.leaves_role) w.groups.pop_back();
        if (f.leaves_elect) leave_elect(w);
        if (f.loop) w.snapshot.reset();
        w.frames.pop_back();
    }
    if (w.frames.empty()) {
        w.done = true;
        w.knows.join_from(w.lane0);
        check_messages(w);
        // Copies that nobody waited for land sometime: not before anything that came after them.
        for (auto& group : w.copy_groups) land_copies(w, group, w.knows);
        land_copies(w, w.copies_open, w.knows);
        for (const auto& g : w.wgmma_groups) {
            for (const WgmmaTask& t : g) fault(FaultKind::in_flight, "the kernel ends with an unfinished wgmma", &w, 0, *t.stmt);
        }
        return true;
    }
    const Stmt& s = (*w.frames.back().region)[w.frames.back().pc];
    w.waiting_at = &s;
    ++w.serial;
    // Control statements push frames, so the program counter moves first.
    if (auto* f = std::get_if<ir::For>(&s.op)) {
        ++w.frames.back().pc;
        Frame frame;
        frame.region = &f->body;
        frame.loop = f;
        frame.index = must(w, f->lo, s);
        frame.hi = must(w, f->hi, s);
        frame.step = must(w, f->step, s);
        if (frame.step <= 0) {
            fault(FaultKind::launch, "the loop's step is not positive", &w, 0, s);
            return false;
        }
        if (options_.trips) {
            if (const auto n = options_.trips(*f, w.rounds)) frame.hi = frame.index + *n * frame.step;
        }
        frame.in_step = options_.in_step.count(f) != 0;
        if (frame.in_step && frame.index >= frame.hi) w.rounds = std::numeric_limits<std::int64_t>::max();
        // In the branch of a vote nothing has a part in the order of events: one iteration shows the registers that it touches.
        if (!options_.values && frame.index < frame.hi &&
            std::any_of(w.frames.begin(), w.frames.end(), [](const Frame& f) { return f.voted; }))
            frame.hi = frame.index + 1;
        const std::uint64_t trips =
            frame.index < frame.hi ? (distance(frame.index, frame.hi) - 1) / static_cast<std::uint64_t>(frame.step) + 1 : 0;
        if (!options_.values) {
            Coverage& c = outcome_.coverage[&s];
            c.most_trips =
                std::max(c.most_trips, static_cast<std::int64_t>(std::min<std::uint64_t>(trips, std::numeric_limits<std::int64_t>::max())));
        }
        if (trips > 0) {
            if (f->body.empty())
                frame.index +=
                    static_cast<std::int64_t>((trips - 1) * static_cast<std::uint64_t>(frame.step));  // at once: there may be very many
            w.vars[static_cast<std::size_t>(f->var)] = frame.index;
            w.var_set[static_cast<std::size_t>(f->var)] = 1;
            if (!f->body.empty()) w.frames.push_back(frame);
            w.snapshot.reset();
        }
        return true;
    }
    if (auto* i = std::get_if<ir::If>(&s.op)) {
        ++w.frames.back().pc;
        bool taken = i->vote >= 0 ? vote(w, s, i->vote) : must(w, i->condition, s) != 0;
        for (const auto& [condition, way] : options_.forced) {
            if (ir::same(condition, i->condition)) taken = way;
        }
        if (!options_.values) (taken ? outcome_.coverage[&s].taken : outcome_.coverage[&s].passed) = true;
        Frame frame;
        frame.region = taken ? &i->then : &i->otherwise;
        frame.voted = i->vote >= 0;
        if (!frame.region->empty()) w.frames.push_back(frame);
        return true;
    }
    if (auto* r = std::get_if<ir::Role>(&s.op)) {
        ++w.frames.back().pc;
        const int offset = w.index - r->first_warp;
        if (offset < 0 || offset >= r->warps_per_instance * r->instances) return true;
        const int instance = offset / r->warps_per_instance;
        Group* group = nullptr;
        for (auto& g : groups_) {
            if (g->region == r && g->block == w.block && g->instance == instance) group = g.get();
        }
        if (!group) {
            auto made = std::make_unique<Group>();
            made->block = w.block;
            made->first_warp = r->first_warp + instance * r->warps_per_instance;
            made->warps = r->warps_per_instance;
            made->instance = instance;
            made->region = r;
            made->fragments.resize(k_.fragments.size());
            group = made.get();
            groups_.push_back(std::move(made));
        }
        w.groups.push_back(group);
        if (r->instance_var >= 0) {
            w.vars[static_cast<std::size_t>(r->instance_var)] = instance;
            w.var_set[static_cast<std::size_t>(r->instance_var)] = 1;
            w.snapshot.reset();
        }
        Frame frame;
        frame.region = &r->body;
        frame.leaves_role = true;
        w.frames.push_back(frame);
        return true;
    }
    if (auto* e = std::get_if<ir::Elect>(&s.op)) {
        ++w.frames.back().pc;
        if (w.single || w.index != group_of(w).first_warp) {
            if (!w.single) return true;
            Frame nested;
            nested.region = &e->body;
            w.frames.push_back(nested);
            return true;
        }
        enter_elect(w);
        Frame frame;
        frame.region = &e->body;
        frame.leaves_elect = true;
        w.frames.push_back(frame);
        return true;
    }
    if (options_.history && !w.event_open) begin_event(w, s);
    if (!execute(w, s)) return false;
    w.event_open = false;
    ++w.frames.back().pc;
    return true;
}

bool Machine::execute(Warp& w, const Stmt& s) {
    // Work on fragments belongs to a whole group; one elected thread has none.
    struct Visitor {
        Machine& m;
        Warp& w;
        const Stmt& s;
        bool operator()(const ir::For&) { return true; }
        bool operator()(const ir::If&) { return true; }
        bool operator()(const ir::Role&) { return true; }
        bool operator()(const ir::Elect&) { return true; }
        bool operator()(const ir::Expect& e) {
            m.expect(w, s, e);
            return true;
        }
        bool operator()(const ir::Sugar&) {
            m.fault(FaultKind::launch, "not the last form: a sugar statement is left", &w, 0, s);
            return true;
        }
        bool operator()(const ir::SetMaxRegisters&) { return true; }
        bool operator()(const ir::GridWait&) { return true; }  // one launch is emulated: nothing runs before it
        bool operator()(const ir::GridLaunch&) { return true; }
        bool operator()(const ir::Assign& a) {
            const std::int64_t v = m.must(w, a.value, s);
            w.vars[static_cast<std::size_t>(a.var)] = v;
            w.var_set[static_cast<std::size_t>(a.var)] = 1;
            if (s.device && s.device->ring) Machine::count_ring(w, a, *s.device->ring);
            return true;
        }
        bool operator()(const ir::TeamSend& op) {
            m.team_send(w, s, op);
            return true;
        }
        bool operator()(const ir::TeamReceive& op) {
            m.team_receive(w, s, op);
            return true;
        }
        bool operator()(const ir::Compute& op) {
            m.compute(w, s, op);
            return true;
        }
        bool operator()(const ir::Reduce& op) {
            m.reduce(w, s, op);
            return true;
        }
        bool operator()(const ir::Scan& op) {
            m.scan(w, s, op);
            return true;
        }
        bool operator()(const ir::Shuffle& op) {
            m.shuffle(w, s, op);
            return true;
        }
        bool operator()(const ir::LoadGlobal& op) {
            m.load_global(w, s, op);
            return true;
        }
        bool operator()(const ir::StoreGlobal& op) {
            m.store_global(w, s, op.dst, op.src, op.vector_bytes, false);
            return true;
        }
        bool operator()(const ir::AtomicAdd& op) {
            m.store_global(w, s, op.dst, op.src, op.vector_bytes, true);
            return true;
        }
        bool operator()(const ir::LoadShared& op) {
            m.load_shared(w, s, op);
            return true;
        }
        bool operator()(const ir::StoreShared& op) {
            m.store_shared(w, s, op);
            return true;
        }
        bool operator()(const ir::Mma& op) {
            m.mma(w, s, op);
            return true;
        }
        bool operator()(const ir::CpAsync& op) {
            m.cp_async(w, s, op);
            return true;
        }
        bool operator()(const ir::CpAsyncCommit&) {
            w.copy_groups.push_back(std::move(w.copies_open));
            w.copies_open.clear();
            return true;
        }
        bool operator()(const ir::CpAsyncWait& op) {
            while (static_cast<int>(w.copy_groups.size()) > op.pending) {
                m.land_copies(w, w.copy_groups.front(), w.knows);
                for (const CopyTask& t : w.copy_groups.front()) w.own_copies = std::max(w.own_copies, t.time);
                w.copy_groups.pop_front();
            }
            return true;
        }
        bool operator()(const ir::CpAsyncArrive& op) {
            // The arrive happens when all of this thread's earlier cp.async have landed.
            for (auto& g : w.copy_groups) {
                m.land_copies(w, g, w.knows);
            }
            m.land_copies(w, w.copies_open, w.knows);
            auto place = m.barrier_slot(w, s, op.barrier);
            if (!place) return true;
            BarrierSlot& slot = m.blocks_[static_cast<std::size_t>(place->first)].barriers[static_cast<std::size_t>(place->second)];
            Knowledge copies = w.knows;
            copies.order[static_cast<std::size_t>(m.actor_copies(w.number))] = w.copy_time;
            if (!op.noinc && !m.options_.values)
                slot.uncounted.emplace_back(w.number, w.knows.order[static_cast<std::size_t>(w.number)], &s);
            slot.gathering.all.join_from(copies);
            if (m.cluster_size_ > 1) slot.gathering.near.join_from(copies);
            m.barrier_arrive(w, s, op.barrier, ir::Scope::block, op.noinc ? 1 : 0, 0);
            return true;
        }
        bool operator()(const ir::TmaLoad&) {
            m.tma_issue(w, s);
            return true;
        }
        bool operator()(const ir::TmaStore&) {
            m.tma_issue(w, s);
            return true;
        }
        bool operator()(const ir::BulkCommit&) {
            w.bulk_groups.push_back(std::move(w.bulk_open));
            w.bulk_open.clear();
            return true;
        }
        bool operator()(const ir::BulkWait& op) {
            const std::size_t covered = w.bulk_groups.size() - std::min(w.bulk_groups.size(), static_cast<std::size_t>(op.pending));
            // Groups belong to the thread that committed them: lane 0, whoever else executes the wait.
            Knowledge& lane0 = w.single ? w.knows : w.lane0;
            if (!w.single && covered > 0) {
                lane0.order.resize(static_cast<std::size_t>(m.actors_), 0);
                w.lane0_ahead = true;
            }
            for (std::size_t g = 0; g < covered; ++g) {
                for (int id : w.bulk_groups[g]) {
                    TmaTask& t = m.tma_[static_cast<std::size_t>(id)];
                    m.tma_store_read(t);
                    auto& c = lane0.order[static_cast<std::size_t>(m.actor_bulk(w.number))];
                    c = std::max(c, t.time);
                }
            }
            w.bulk_groups.erase(w.bulk_groups.begin(), w.bulk_groups.begin() + static_cast<std::ptrdiff_t>(covered));
            return true;
        }
        bool operator()(const ir::BarrierInit& op) {
            auto place = m.barrier_slot(w, s, op.barrier);
            if (!place) return true;
            BarrierSlot& slot = m.blocks_[static_cast<std::size_t>(place->first)].barriers[static_cast<std::size_t>(place->second)];
            slot = BarrierSlot{};
            slot.initialised = true;
            slot.arrivals = slot.pending = op.arrivals;
            slot.initialiser = w.number;
            slot.init_time = w.knows.order[static_cast<std::size_t>(w.number)];
            if (op.arrivals < 1) m.fault(FaultKind::barrier, "an mbarrier must expect at least one arrival", &w, 0, s);
            return true;
        }
        bool operator()(const ir::BarrierInitFence&) {
            // Makes initialisations visible to the async proxy and the cluster: recorded like a proxy fence.
            w.knows.fenced[static_cast<std::size_t>(w.number)] = w.knows.order[static_cast<std::size_t>(w.number)];
            return true;
        }
        bool operator()(const ir::BarrierArrive& op) {
            m.barrier_arrive(w, s, op.barrier, op.release, op.count, 0);
            return true;
        }
        bool operator()(const ir::BarrierExpect& op) {
            m.barrier_arrive(w, s, op.barrier, ir::Scope::block, 1, m.must(w, op.bytes, s));
            return true;
        }
        bool operator()(const ir::BarrierWait& op) { return m.barrier_wait(w, s, op); }
        bool operator()(const ir::BlockFence&) {
            m.block_fence(w);
            return true;
        }
        bool operator()(const ir::Pin&) { return true; }  // for the compiler of the text
        bool operator()(const ir::BlockSync&) {
            if (w.single) {
                m.fault(FaultKind::divergence, "one elected thread cannot take part in a block-wide barrier: the others never arrive", &w,
                        0, s);
                return true;
            }
            return m.named_sync(w, s, 0, 32 * m.k_.warps, true);
        }
        bool operator()(const ir::NamedSync& op) { return m.named_sync(w, s, m.must(w, op.id, s), op.threads, true); }
        bool operator()(const ir::NamedArrive& op) { return m.named_sync(w, s, m.must(w, op.id, s), op.threads, false); }
        bool operator()(const ir::WarpSync&) {
            m.share_own_copies(w);
            m.warp_barrier(w);
            return true;
        }
        bool operator()(const ir::ClusterArrive& op) {
            m.share_own_copies(w);
            const Stmt* before = std::exchange(w.at_cluster_barrier, &s);
            if (before) {
                m.fault(FaultKind::barrier,
                        s.loc.line ? "this is the second arrival at the cluster barrier with no wait between"
                                   : "the wait for this arrival at the cluster barrier is missing: the kernel's end arrives there too",
                        &w, 0, s.loc.line ? s : *before);
                return true;
            }
            m.count_arrival(w, s, m.cluster_barrier_.released);
            // .relaxed counts like any arrival and passes nothing on but that this warp has started.
            Knowledge& gathering = m.cluster_barrier_.gathering;
            if (!op.relaxed) m.pass_on(w, gathering);
            join(gathering.waits, w.knows.waits);
            gathering.order.resize(static_cast<std::size_t>(m.actors_), 0);
            auto& started = gathering.order[static_cast<std::size_t>(w.number)];
            started = std::max(started, 1u);
            m.tick(w);
            w.wait_generation = m.cluster_barrier_.generation;
            if (++m.cluster_barrier_.arrived == static_cast<int>(m.warps_.size())) {
                m.cluster_barrier_.released = std::move(m.cluster_barrier_.gathering);
                m.cluster_barrier_.gathering = {};
                m.cluster_barrier_.arrived = 0;
                ++m.cluster_barrier_.generation;
            }
            return true;
        }
        bool operator()(const ir::ClusterWait&) {
            if (!w.at_cluster_barrier) {
                m.fault(FaultKind::barrier, "this wait at the cluster barrier has no arrival before it", &w, 0, s);
                return true;
            }
            if (m.cluster_barrier_.generation == w.wait_generation) return false;
            w.at_cluster_barrier = nullptr;
            w.knows.join_from(m.cluster_barrier_.released);
            m.warp_barrier(w);
            return true;
        }
        bool operator()(const ir::ProxyFence&) {
            // The fence covers what this warp wrote before it, and where every lane executes it, the copies (cp.async writes
            // through the generic proxy) that each lane has waited for.
            auto n = static_cast<std::size_t>(w.number);
            w.knows.fenced[n] = w.knows.order[n];
            if (!w.single) {
                auto& copies = w.knows.fenced[static_cast<std::size_t>(m.actor_copies(w.number))];
                copies = std::max(copies, w.own_copies);
            }
            m.tick(w);
            return true;
        }
        bool operator()(const ir::Wgmma& op) {
            m.issue_wgmma(w, s, op);
            return true;
        }
        bool operator()(const ir::WgmmaFence&) {
            const int i = m.warp_in_group(w);
            for (FragmentState& f : m.group_of(w).fragments) {
                if (!f.touched.empty()) f.touched[static_cast<std::size_t>(i)] = 0;
            }
            return true;
        }
        bool operator()(const ir::WgmmaCommit&) {
            w.wgmma_groups.push_back(std::move(w.wgmma_open));
            w.wgmma_open.clear();
            return true;
        }
        bool operator()(const ir::WgmmaWait& op) {
            // A wgmma is one operation of the whole warpgroup: it is complete for a warp when it is complete for all four.
            const Group& g = m.group_of(w);
            const int first = w.number - m.warp_in_group(w);
            const std::size_t covered = w.wgmma_groups.size() - std::min(w.wgmma_groups.size(), static_cast<std::size_t>(op.pending));
            std::uint32_t last = 0;
            for (std::size_t i = 0; i < covered; ++i) {
                for (const WgmmaTask& t : w.wgmma_groups[i]) last = std::max(last, t.time);
            }
            for (int i = 0; i < g.warps; ++i) {
                if (m.warps_[static_cast<std::size_t>(first + i)].wgmma_time < last) return false;
            }
            for (int i = 0; i < g.warps && last > 0; ++i) {
                Warp& peer = m.warps_[static_cast<std::size_t>(first + i)];
                for (auto& list : peer.wgmma_groups) {
                    for (WgmmaTask& t : list) {
                        if (t.time <= last) m.finish_wgmma(peer, t);
                    }
                }
                for (WgmmaTask& t : peer.wgmma_open) {
                    if (t.time <= last) m.finish_wgmma(peer, t);
                }
                if (!m.options_.values) {  // the peer took part, so it was past its waits by then
                    auto& passed = w.knows.waits[static_cast<std::size_t>(peer.number)];
                    passed = std::max(passed, peer.waits_at_wgmma[last - 1]);
                }
                auto& c = w.knows.order[static_cast<std::size_t>(m.actor_wgmma(peer.number))];
                c = std::max(c, last);
            }
            for (std::size_t i = 0; i < covered; ++i) {
                for (WgmmaTask& t : w.wgmma_groups.front()) m.release_fragments(w, t);
                w.wgmma_groups.pop_front();
            }
            return true;
        }
    };
    return std::visit(Visitor{*this, w, s}, s.op);
}

void Machine::warp_barrier(Warp& w) {
    if (w.lane0_ahead) {
        w.knows.join_from(w.lane0);
        w.lane0_ahead = false;
    }
    ++w.epoch;
    w.lanes_clock = w.knows.order[static_cast<std::size_t>(w.number)];
    w.touched_shared = false;
    tick(w);
}

// What lane 0 learns from a wait in here, the other lanes do not know until the warp meets at a barrier.
void Machine::enter_elect(Warp& w) {
    w.single = true;
    w.outside = w.knows;
    if (w.lane0_ahead) w.knows.join_from(w.lane0);
}

void Machine::leave_elect(Warp& w) {
    w.single = false;
    const auto n = static_cast<std::size_t>(w.number);
    w.outside.order[n] = w.knows.order[n];  // the clock is the warp's
    if (!w.knows.waits.empty()) w.outside.waits[n] = w.knows.waits[n];
    w.lane0 = std::move(w.knows);
    w.knows = std::move(w.outside);
    w.lane0_ahead = true;
}

Knowledge Machine::known_to_one_thread(const Warp& w) const {
    Knowledge k = w.knows;
    if (w.single && w.touched_shared) {
        const auto n = static_cast<std::size_t>(w.number);
        k.order[n] = std::min(k.order[n], w.lanes_clock);
        k.fenced[n] = std::min(k.fenced[n], w.lanes_clock);
    }
    return k;
}

void Machine::tick(Warp& w) { ++w.knows.order[static_cast<std::size_t>(w.number)]; }

Access Machine::access_of(const Warp& w, int lane, const Stmt& s) const {
    Access a;
    a.actor = static_cast<std::uint16_t>(w.number);
    a.lane = static_cast<std::uint8_t>(lane);
    a.time = w.knows.order[static_cast<std::size_t>(w.number)];
    a.warp_epoch = w.epoch;
    a.lanes_clock = w.lanes_clock;
    a.serial = w.serial;
    a.copies_actor = static_cast<std::uint16_t>(actor_copies(w.number));
    a.own_copies = w.own_copies;
    a.stmt = &s;
    a.snapshot = w.event;
    return a;
}

}  // namespace tw::emulate
