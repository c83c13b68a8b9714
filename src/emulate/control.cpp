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
    if (e.kind() == ir::ExprKind::constant) return e->value;
    const Block& b = blocks_[static_cast<std::size_t>(w.block)];
    auto leaf = [&](const ir::ExprNode& n, const std::vector<std::int64_t>& args) -> std::optional<std::int64_t> {
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
    };
    return ir::evaluate(e, std::ref(leaf));  // by reference: a copy of the closure would be allocated for every expression
}

std::int64_t Machine::must(const Warp& w, const ir::Expr& e, const Stmt& s) {
    const std::size_t before = outcome_.faults.size();
    auto v = value(w, e, s);
    if (v) return *v;
    if (outcome_.faults.size() == before) {
        fault({FaultKind::uninitialised, FaultCause::unset_expression},
              "the expression " + ir::to_string(e, ir::names_of(k_)) + " has no value here (unset variable, division by zero or overflow)",
              &w, 0, s);
    }
    return 0;
}

bool Machine::leave_frames(Warp& w) {
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
    return true;
}

void Machine::end_warp(Warp& w) {
    w.done = true;
    w.knows.join_from(w.lane0);
    check_messages(w);
    // Copies that nobody waited for land sometime: not before anything that came after them.
    for (auto& group : w.copy_groups) land_copies(w, group, w.knows);
    land_copies(w, w.copies_open, w.knows);
    for (const auto& g : w.wgmma_groups) {
        for (const WgmmaTask& t : g)
            fault({FaultKind::in_flight, FaultCause::unfinished_wgmma}, "the kernel ends with an unfinished wgmma", &w, 0, *t.stmt);
    }
}

bool Machine::enter_loop(Warp& w, const Stmt& s, const ir::For& f) {
    Frame frame;
    frame.region = &f.body;
    frame.loop = &f;
    frame.index = must(w, f.lo, s);
    frame.hi = must(w, f.hi, s);
    frame.step = must(w, f.step, s);
    if (frame.step <= 0) {
        fault(FaultKind::launch, "the loop's step is not positive", &w, 0, s);
        return false;
    }
    if (options_.trips) {
        if (const auto n = options_.trips(f, w.rounds)) frame.hi = frame.index + *n * frame.step;
    }
    frame.in_step = options_.in_step.count(&f) != 0;
    if (frame.in_step && frame.index >= frame.hi) w.rounds = std::numeric_limits<std::int64_t>::max();
    // In the branch of a vote nothing has a part in the order of events: one iteration shows the registers that it touches.
    if (!options_.values && frame.index < frame.hi &&
        std::any_of(w.frames.begin(), w.frames.end(), [](const Frame& outer) { return outer.voted; }))
        frame.hi = frame.index + 1;
    const std::uint64_t trips =
        frame.index < frame.hi ? (distance(frame.index, frame.hi) - 1) / static_cast<std::uint64_t>(frame.step) + 1 : 0;
    if (!options_.values) {
        Coverage& c = outcome_.coverage[&s];
        c.most_trips =
            std::max(c.most_trips, static_cast<std::int64_t>(std::min<std::uint64_t>(trips, std::numeric_limits<std::int64_t>::max())));
    }
    if (trips > 0) {
        if (f.body.empty())
            frame.index +=
                static_cast<std::int64_t>((trips - 1) * static_cast<std::uint64_t>(frame.step));  // at once: there may be very many
        w.vars[static_cast<std::size_t>(f.var)] = frame.index;
        w.var_set[static_cast<std::size_t>(f.var)] = 1;
        if (!f.body.empty()) w.frames.push_back(frame);
        w.snapshot.reset();
    }
    return true;
}

void Machine::enter_branch(Warp& w, const Stmt& s, const ir::If& i) {
    bool taken = i.vote >= 0 ? vote(w, s, i.vote) : must(w, i.condition, s) != 0;
    int rank = w.block;  // of the block in its cluster
    for (const auto& [condition, way] : options_.forced) {
        if (!ir::same(condition, i.condition)) continue;
        taken = way;
        if (rank-- == 0) break;
    }
    if (!options_.values) (taken ? outcome_.coverage[&s].taken : outcome_.coverage[&s].passed) = true;
    Frame frame;
    frame.region = taken ? &i.then : &i.otherwise;
    frame.voted = i.vote >= 0;
    if (!frame.region->empty()) w.frames.push_back(frame);
}

void Machine::enter_role(Warp& w, const ir::Role& r) {
    const int offset = w.index - r.first_warp;
    if (offset < 0 || offset >= r.warps_per_instance * r.instances) return;
    const int instance = offset / r.warps_per_instance;
    Group* group = nullptr;
    for (auto& g : groups_) {
        if (g->region == &r && g->block == w.block && g->instance == instance) group = g.get();
    }
    if (!group) {
        auto made = std::make_unique<Group>();
        made->block = w.block;
        made->first_warp = r.first_warp + instance * r.warps_per_instance;
        made->warps = r.warps_per_instance;
        made->instance = instance;
        made->region = &r;
        made->fragments.resize(k_.fragments.size());
        group = made.get();
        groups_.push_back(std::move(made));
    }
    w.groups.push_back(group);
    if (r.instance_var >= 0) {
        w.vars[static_cast<std::size_t>(r.instance_var)] = instance;
        w.var_set[static_cast<std::size_t>(r.instance_var)] = 1;
        w.snapshot.reset();
    }
    Frame frame;
    frame.region = &r.body;
    frame.leaves_role = true;
    w.frames.push_back(frame);
}

void Machine::enter_elected(Warp& w, const ir::Elect& e) {
    if (w.single || w.index != group_of(w).first_warp) {
        if (!w.single) return;
        Frame nested;
        nested.region = &e.body;
        w.frames.push_back(nested);
        return;
    }
    enter_elect(w);
    Frame frame;
    frame.region = &e.body;
    frame.leaves_elect = true;
    w.frames.push_back(frame);
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
    if (!leave_frames(w)) return false;
    if (w.frames.empty()) {
        end_warp(w);
        return true;
    }
    const Stmt& s = (*w.frames.back().region)[w.frames.back().pc];
    w.waiting_at = &s;
    ++w.serial;
    // Control statements push frames, so the program counter moves first.
    if (auto* f = std::get_if<ir::For>(&s.op)) return ++w.frames.back().pc, enter_loop(w, s, *f);
    if (auto* i = std::get_if<ir::If>(&s.op)) return ++w.frames.back().pc, enter_branch(w, s, *i), true;
    if (auto* r = std::get_if<ir::Role>(&s.op)) return ++w.frames.back().pc, enter_role(w, *r), true;
    if (auto* e = std::get_if<ir::Elect>(&s.op)) return ++w.frames.back().pc, enter_elected(w, *e), true;
    if (options_.history && !w.event_open) begin_event(w, s);
    if (!execute(w, s)) return false;
    w.event_open = false;
    ++w.frames.back().pc;
    return true;
}

void Machine::assign(Warp& w, const Stmt& s, const ir::Assign& op) {
    const std::int64_t v = must(w, op.value, s);
    w.vars[static_cast<std::size_t>(op.var)] = v;
    w.var_set[static_cast<std::size_t>(op.var)] = 1;
    if (s.device && s.device->ring) count_ring(w, op, *s.device->ring);
}

// One line for each statement: what it does is a function of its own.
bool Machine::execute(Warp& w, const Stmt& s) {
    struct Visitor {
        Machine& m;
        Warp& w;
        const Stmt& s;
        // control, done by `step`
        bool operator()(const ir::For&) { return true; }
        bool operator()(const ir::If&) { return true; }
        bool operator()(const ir::Role&) { return true; }
        bool operator()(const ir::Elect&) { return true; }
        bool operator()(const ir::Sugar&) {
            return m.fault(FaultKind::launch, "not the last form: a sugar statement is left", &w, 0, s), true;
        }
        bool operator()(const ir::Expect& e) { return m.expect(w, s, e), true; }
        bool operator()(const ir::Assign& a) { return m.assign(w, s, a), true; }
        // nothing that one launch could see
        bool operator()(const ir::SetMaxRegisters&) { return true; }
        bool operator()(const ir::GridWait&) { return true; }
        bool operator()(const ir::GridLaunch&) { return true; }
        bool operator()(const ir::Pin&) { return true; }
        // registers and memory. Work on fragments belongs to a whole group; one elected thread has none.
        bool operator()(const ir::Compute& op) { return m.compute(w, s, op), true; }
        bool operator()(const ir::Reduce& op) { return m.reduce(w, s, op), true; }
        bool operator()(const ir::Scan& op) { return m.scan(w, s, op), true; }
        bool operator()(const ir::Shuffle& op) { return m.shuffle(w, s, op), true; }
        bool operator()(const ir::Mma& op) { return m.mma(w, s, op), true; }
        bool operator()(const ir::LoadGlobal& op) { return m.load_global(w, s, op), true; }
        bool operator()(const ir::StoreGlobal& op) { return m.store_global(w, s, op.dst, op.src, op.vector_bytes, false), true; }
        bool operator()(const ir::AtomicAdd& op) { return m.store_global(w, s, op.dst, op.src, op.vector_bytes, true), true; }
        bool operator()(const ir::LoadShared& op) { return m.load_shared(w, s, op), true; }
        bool operator()(const ir::StoreShared& op) { return m.store_shared(w, s, op), true; }
        // asynchronous work and what completes it
        bool operator()(const ir::CpAsync& op) { return m.cp_async(w, s, op), true; }
        bool operator()(const ir::CpAsyncCommit&) { return w.copy_groups.push_back(std::exchange(w.copies_open, {})), true; }
        bool operator()(const ir::CpAsyncWait& op) { return m.wait_for_copies(w, op.pending), true; }
        bool operator()(const ir::CpAsyncArrive& op) { return m.arrive_with_copies(w, s, op), true; }
        bool operator()(const ir::TmaLoad&) { return m.tma_issue(w, s), true; }
        bool operator()(const ir::TmaStore&) { return m.tma_issue(w, s), true; }
        bool operator()(const ir::BulkCommit&) { return w.bulk_groups.push_back(std::exchange(w.bulk_open, {})), true; }
        bool operator()(const ir::BulkWait& op) { return m.wait_for_bulk(w, op.pending), true; }
        bool operator()(const ir::Wgmma& op) { return m.issue_wgmma(w, s, op), true; }
        bool operator()(const ir::WgmmaFence&) {
            const auto i = static_cast<std::size_t>(m.warp_in_group(w));
            for (FragmentState& f : m.group_of(w).fragments) {
                if (!f.touched.empty()) f.touched[i] = 0;
            }
            return true;
        }
        bool operator()(const ir::WgmmaCommit&) { return w.wgmma_groups.push_back(std::exchange(w.wgmma_open, {})), true; }
        bool operator()(const ir::WgmmaWait& op) { return m.wait_for_wgmma(w, op.pending); }
        // barriers and fences
        bool operator()(const ir::BarrierInit& op) { return m.init_barrier(w, s, op), true; }
        bool operator()(const ir::BarrierInitFence&) {
            // Makes initialisations visible to the async proxy and the cluster: recorded like a proxy fence.
            w.knows.fenced[static_cast<std::size_t>(w.number)] = w.knows.order[static_cast<std::size_t>(w.number)];
            return true;
        }
        bool operator()(const ir::BarrierArrive& op) { return m.barrier_arrive(w, s, op.barrier, op.release, op.count, 0), true; }
        bool operator()(const ir::BarrierExpect& op) {
            return m.barrier_arrive(w, s, op.barrier, ir::Scope::block, 1, m.must(w, op.bytes, s)), true;
        }
        bool operator()(const ir::BarrierWait& op) { return m.barrier_wait(w, s, op); }
        bool operator()(const ir::BlockFence&) { return m.block_fence(w), true; }
        bool operator()(const ir::BlockSync&) {
            if (!w.single) return m.named_sync(w, s, 0, 32 * m.k_.warps, true);
            m.fault(FaultKind::divergence, "one elected thread cannot take part in a block-wide barrier: the others never arrive", &w, 0,
                    s);
            return true;
        }
        bool operator()(const ir::NamedSync& op) { return m.named_sync(w, s, m.must(w, op.id, s), op.threads, true); }
        bool operator()(const ir::NamedArrive& op) { return m.named_sync(w, s, m.must(w, op.id, s), op.threads, false); }
        bool operator()(const ir::WarpSync&) { return m.share_own_copies(w), m.warp_barrier(w), true; }
        bool operator()(const ir::ClusterArrive& op) { return m.cluster_arrive(w, s, op.relaxed), true; }
        bool operator()(const ir::ClusterWait&) { return m.cluster_wait(w, s); }
        bool operator()(const ir::ProxyFence&) { return m.proxy_fence(w), true; }
        // messages of a team
        bool operator()(const ir::TeamSend& op) { return m.team_send(w, s, op), true; }
        bool operator()(const ir::TeamReceive& op) { return m.team_receive(w, s, op), true; }
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
    if (!w.knows.read.empty()) w.lanes_read = w.knows.read[static_cast<std::size_t>(w.number)];
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
    // Each lane's fence ends its own loads: of the others' fences an elected thread knows from a barrier of the warp.
    if (w.single && !k.read.empty()) k.read[static_cast<std::size_t>(w.number)] = w.lanes_read;
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
