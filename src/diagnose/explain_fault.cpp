// Who collides with whom, and what order is missing; who waits for what, and who should have arrived.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/explain.h"

namespace tw::diagnose {

using emulate::Event;
using emulate::Fault;
using emulate::FaultKind;

std::string arena_text(const ir::Kernel& k, std::int64_t address, int buffer) {
    const ir::SharedBuffer* best = buffer >= 0 ? &k.buffers[static_cast<std::size_t>(buffer)] : nullptr;
    for (const ir::SharedBuffer& b : k.buffers) {
        if (address >= b.byte_offset && address < b.byte_offset + b.bytes && !best) best = &b;
    }
    if (!best) return fmt::format("shared byte {}", address);
    std::string text = fmt::format("`{}` byte {}", best->name, address - best->byte_offset);
    // Which element lies there: swizzles make it a search.
    const int size = target::bytes(best->dtype);
    std::vector<int> at(best->dims.size(), 0);
    std::int64_t count = 1;
    for (int d = 0; d < best->rank(); ++d) count *= best->extent(d);
    for (std::int64_t n = 0; n < count && best->rank() > 1; ++n) {
        std::int64_t rest = n;
        for (std::size_t d = at.size(); d-- > 0;) at[d] = static_cast<int>(rest % best->extent(static_cast<int>(d))), rest /= best->extent(static_cast<int>(d));
        const int here = ir::shared_address(*best, at);
        if (address < here || address >= here + size) continue;
        text += " (";
        for (std::size_t d = 0; d < at.size(); ++d) text += (d ? ", " : "") + std::to_string(at[d]);
        return text + ")";
    }
    return text;
}

std::string source_name(const ir::Kernel& k, int variable) {
    const std::string& name = k.vars[static_cast<std::size_t>(variable)].name;
    // Two loops over `kt` are kt and kt_2 in the IR.
    const auto at = name.rfind('_');
    if (at == std::string::npos || at == 0 || at + 1 == name.size() || name.find_first_not_of("0123456789", at + 1) != std::string::npos) return name;
    const std::string base = name.substr(0, at);
    for (const ir::Variable& v : k.vars) {
        if (v.name == base) return base;
    }
    return name;
}

TraceStep step_of(const ir::Kernel& k, const Event& e, int thread, bool by_engine) {
    TraceStep s;
    if (!e.stmt) return s;
    s.loc = e.stmt->loc;
    s.statement = ir::print(k, *e.stmt);
    for (int i = 0; i < 3; ++i) s.block[i] = static_cast<int>(e.block[i]);
    s.thread = thread;
    if (e.role) s.role = e.role->instances > 1 ? fmt::format("{} {}", e.role->name, e.instance) : e.role->name;
    for (const auto& [var, at] : e.loops) s.iteration.emplace_back(source_name(k, var), at);
    const bool tensor_core = std::holds_alternative<ir::Wgmma>(e.stmt->op);
    std::string who;
    if (by_engine) who = tensor_core ? "tensor cores" : "copy engine";
    auto add = [&](const std::string& t) { who += (who.empty() ? "" : ", ") + t; };
    if (!s.role.empty()) add(by_engine ? "for " + s.role : s.role);
    if (thread >= 0) add(fmt::format("thread {}", thread));
    else if (!by_engine) add(e.elected ? fmt::format("one thread of warp {}", e.warp) : fmt::format("warp {}", e.warp));
    for (const auto& [name, at] : s.iteration) add(fmt::format("{}={}", name, at));
    s.who = who;
    return s;
}

namespace {

// What a statement does to the place that two accesses share.
enum class Touch { load, store, cp_async, tma_load, tma_store, wgmma, global_load, global_store, atomic, registers, other };
Touch touch_of(const ir::Stmt* s) {
    if (!s) return Touch::other;
    if (std::holds_alternative<ir::LoadShared>(s->op)) return Touch::load;
    if (std::holds_alternative<ir::StoreShared>(s->op)) return Touch::store;
    if (std::holds_alternative<ir::CpAsync>(s->op)) return Touch::cp_async;
    if (std::holds_alternative<ir::TmaLoad>(s->op)) return Touch::tma_load;
    if (std::holds_alternative<ir::TmaStore>(s->op)) return Touch::tma_store;
    if (std::holds_alternative<ir::Wgmma>(s->op)) return Touch::wgmma;
    if (std::holds_alternative<ir::LoadGlobal>(s->op)) return Touch::global_load;
    if (std::holds_alternative<ir::StoreGlobal>(s->op)) return Touch::global_store;
    if (std::holds_alternative<ir::AtomicAdd>(s->op)) return Touch::atomic;
    return Touch::other;
}
const char* words(Touch t) {
    switch (t) {
        case Touch::load: return "reads";
        case Touch::store: return "writes";
        case Touch::cp_async: return "cp.async writes";
        case Touch::tma_load: return "TMA writes";
        case Touch::tma_store: return "TMA reads";
        case Touch::wgmma: return "wgmma reads";
        case Touch::global_load: return "reads";
        case Touch::global_store: return "writes";
        case Touch::atomic: return "adds to";
        default: return "touches";
    }
}
bool writes(Touch t) { return t == Touch::store || t == Touch::cp_async || t == Touch::tma_load || t == Touch::global_store || t == Touch::atomic; }

bool multicasts(const Event& e) {
    auto* load = std::get_if<ir::TmaLoad>(&e.stmt->op);
    return load && load->multicast_mask;
}

struct Advice {
    std::string missing, hint;
};

// Two accesses to shared memory without an order between them, `before` first in this run.
Advice order_advice(const ir::Kernel& k, Touch before, Touch now, const Event& first, const Event& second, bool has_ring) {
    // The reader is in the same round of its loop as the load that fills the slot: it did not wait for it.
    const bool same_round = !first.loops.empty() && !second.loops.empty() && first.loops.back().second == second.loops.back().second && first.role != second.role &&
                            source_name(k, first.loops.back().first) == source_name(k, second.loops.back().first);
    const bool same_warp = first.warp == second.warp && first.rank == second.rank;
    const bool same_role = first.role == second.role && first.instance == second.instance;
    const bool other_block = first.rank != second.rank;
    if (other_block) {
        return {"nothing orders the two blocks of the cluster here",
                "a block may write a peer's shared memory, or multicast into it, only after that peer has released the slot: let every block of the cluster arrive at the writer's empty barrier "
                "(arrivals = consumers of all blocks, bars[i].arrive(rank=r)), or put tw.cluster_sync() between"};
    }
    switch (before) {
        case Touch::wgmma:
            return {"the wgmma may still be reading: nothing waits for its group before the slot is given back",
                    "tw.wgmma_wait(n) before the release, with n small enough to cover the wgmma of the slot that is released (release one iteration later, or wait for 0); "
                    "with several consumer groups, each must release after its own wait, and the empty barrier must count them all"};
        case Touch::tma_store:
            return {"the copy engine may still be reading the source of the TMA store",
                    "tw.tma_store_commit() and tw.tma_store_wait(0, read=True) by the thread that issued the store, then a barrier, before the source is written again"};
        case Touch::cp_async:
            if (writes(now)) return {"the cp.async before may land after the other write", "wait for the copy (tw.cp_async_wait) and pass a barrier before its place is used for something else"};
            return {same_warp ? "a wait for cp.async covers a thread's own copies; those of other lanes need a barrier" : "the copy is not known to have landed for the thread that reads it",
                    "first tw.cp_async_wait(n) in the threads that copied, then tw.sync() (or the group's barrier), then the reads"};
        case Touch::tma_load:
            if (now == Touch::tma_load) {
                if (multicasts(first) || multicasts(second)) {
                    return {"two TMA loads fill the same bytes of a block, and nothing orders them",
                            "a multicast slot is filled again only after every block that receives it has released it: let every block of the cluster arrive at the writer's empty barrier "
                            "(an mbarrier that counts them all), and let no two blocks multicast to the same bytes"};
                }
                return {"two TMA loads fill the same bytes and nothing is waited for between them",
                        "a slot is filled again only after it was released: as many slots in the buffer as the ring has stages (index it with the ring's slot, not with another modulus), and a wait for empty before each fill"};
            }
            return {"the TMA load is not known to be complete, or belongs to another phase",
                    "wait on the mbarrier that the load completes on, with the parity of this round ((iteration // stages) % 2), before the data are used; and let a slot be refilled only after all its readers arrived at empty"};
        case Touch::load:
            if ((now == Touch::tma_load || now == Touch::cp_async) && same_round) {
                return {"the reader did not wait for this round's data: its wait passed on the parity of an earlier phase, and the load comes after the read",
                        "the parity of the wait for full is (iteration // stages) % 2: it must change every time the ring comes round"};
            }
            if (now == Touch::tma_load || now == Touch::cp_async) {
                return {same_warp ? "the lanes of the warp are not known to have read when one of them gives the slot back" : "the slot is refilled while it may still be read",
                        has_ring ? "all readers arrive at the empty barrier after their last read (the group's barrier, then one arrival; or one arrival per thread counted in `arrivals=`), and the refill waits for that phase: check the parity and the iteration of the wait"
                                 : "tw.sync() (or the readers' barrier) between the last read of a slot and the copy that fills it again; keep the distance between copy and use smaller than the number of slots"};
            }
            return {"the place is written again while other threads may still read it", same_warp ? "a barrier of the group between the reads and the next write"
                    : same_role ? "tw.sync() (or the group's named barrier) between the last read and the next write"
                                : "the readers meet at a barrier of their own (tw.sync(), a named barrier) before one of them gives the place back (ring.release() and an arrival are one thread's), and the writer waits for that"};
        case Touch::store:
            if (now == Touch::load || writes(now)) {
                return {same_warp ? "threads of one warp exchange data with no warp-level barrier between" : (same_role ? "threads exchange data with no barrier between" : "two roles exchange data with no barrier between"),
                        same_role ? "tw.sync(), or a named barrier of exactly these threads (a number of its own for each group, the right count), between the write and the read; an mbarrier wait orders a thread with the arrivals, not the lanes of a warp among themselves"
                                  : "hand the data over: the writers arrive at a barrier after their stores, the readers wait at it"};
            }
            if (now == Touch::wgmma && !(first.role == second.role && first.instance == second.instance)) {
                return {"the buffer is an operand of another warpgroup's wgmma, which may not be done (or not even issued) when it is overwritten",
                        "every warpgroup that multiplies with the buffer waits for its own wgmma (tw.wgmma_wait(0)), then all of them meet at one barrier, then it may be written"};
            }
            return {"the stores are not known to have happened", "a barrier between the ordinary stores and the asynchronous work that reads them"};
        default: break;
    }
    return {"no barrier orders the two", "order the two accesses: a barrier between them, or wait for the asynchronous work before the slot is released or reused"};
}

std::string role_of(const ir::Kernel& k, const Event& e) {
    (void)k;
    return e.role ? (e.role->instances > 1 ? fmt::format("{} {}", e.role->name, e.instance) : e.role->name) : "the block";
}

// Every statement that may arrive at a barrier array.
std::vector<const ir::Stmt*> arrivers(const ir::Kernel& k, int array) {
    std::vector<const ir::Stmt*> list;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* a = std::get_if<ir::BarrierArrive>(&s.op); a && a->barrier.array == array) list.push_back(&s);
        if (auto* a = std::get_if<ir::BarrierExpect>(&s.op); a && a->barrier.array == array) list.push_back(&s);
        if (auto* a = std::get_if<ir::CpAsyncArrive>(&s.op); a && a->barrier.array == array) list.push_back(&s);
    });
    return list;
}

void explain_deadlock(Counterexample& c, const Replay& r, const Fault& f) {
    const ir::Kernel& k = r.kernel;
    std::vector<int> base;
    int slots = 0;
    for (const ir::BarrierArray& b : k.barriers) base.push_back(slots), slots += b.slots;
    // The wait to blame: one for which bytes or arrivals do not add up, else the first.
    const emulate::StuckWarps* worst = nullptr;
    int worst_score = -1;
    for (const emulate::StuckWarps& w : f.stuck) {
        const Event& e = r.history.events[w.event];
        TraceStep s = step_of(k, e, -1, false);
        if (w.barrier >= 0) {
            const ir::BarrierArray& b = k.barriers[static_cast<std::size_t>(w.barrier)];
            s.action = fmt::format("waits for `{}[{}]`,", b.name, w.slot);
            s.detail = fmt::format("phase {} (parity {}): ", w.phase, w.parity);
            if (w.arrivals) s.detail += fmt::format("{} of {} arrivals outstanding", w.arrivals, b.arrivals);
            if (w.bytes > 0) s.detail += fmt::format("{}{} bytes announced that have not come", w.arrivals ? ", " : "", w.bytes);
            if (w.bytes < 0) s.detail += fmt::format("{}{} bytes more came than were announced", w.arrivals ? ", " : "", -w.bytes);
            std::set<int> lines;
            const auto log = r.history.arrivals.find({w.rank, base[static_cast<std::size_t>(w.barrier)] + static_cast<int>(w.slot)});
            int got = 0;
            if (log != r.history.arrivals.end()) {
                for (const emulate::Arrival& a : log->second) {
                    if (a.phase != w.phase) continue;
                    got += a.arrivals;
                    if (a.event) lines.insert(r.history.events[a.event].stmt->loc.line);
                }
            }
            if (!lines.empty()) {
                s.detail += "; so far from line";
                for (int l : lines) s.detail += " " + std::to_string(l);
            }
            const int score = w.bytes != 0 && !w.arrivals ? 3 : got > 0 && w.arrivals ? 2 : 1;
            if (score > worst_score) worst = &w, worst_score = score;
        } else if (w.named >= 0) {
            s.action = w.named == 0 && std::holds_alternative<ir::BlockSync>(w.stmt->op) ? "waits at the block's barrier:" : fmt::format("waits at named barrier {}:", w.named);
            s.detail = fmt::format("{} of {} threads are there", w.arrived, w.expected);
            if (worst_score < 2) worst = &w, worst_score = 2;
        } else {
            s.action = std::holds_alternative<ir::ClusterWait>(w.stmt->op) ? "waits for the cluster" : std::holds_alternative<ir::WgmmaWait>(w.stmt->op) ? "waits for the warpgroup's wgmma" : "waits";
            if (worst_score < 0) worst = &w, worst_score = 0;
        }
        if (w.warps > 1) s.who = fmt::format("{} warps of {}", w.warps, role_of(k, e)) + (s.iteration.empty() ? "" : ", ");
        else s.who = fmt::format("1 warp of {}", role_of(k, e)) + (s.iteration.empty() ? "" : ", ");
        for (std::size_t i = 0; i < s.iteration.size(); ++i) s.who += fmt::format("{}{}={}", i ? ", " : "", s.iteration[i].first, s.iteration[i].second);
        c.trace.push_back(std::move(s));
    }
    if (!worst) return;
    const Event& e = r.history.events[worst->event];
    c.loc = worst->stmt->loc;
    c.statement = ir::print(k, *worst->stmt);
    c.message = fmt::format("deadlock: {} waits for ever", role_of(k, e));
    if (worst->barrier >= 0) {
        const ir::BarrierArray& b = k.barriers[static_cast<std::size_t>(worst->barrier)];
        const std::string name = fmt::format("`{}[{}]`", b.name, worst->slot);
        c.message = fmt::format("deadlock: {} waits for ever at mbarrier {}", role_of(k, e), name);
        std::string lines;
        for (const ir::Stmt* s : arrivers(k, worst->barrier)) lines += (lines.empty() ? "line " : ", line ") + std::to_string(s->loc.line);
        if (worst->bytes > 0 && !worst->arrivals) {
            c.missing = fmt::format("all arrivals of this phase came, but {} of the announced bytes never land", worst->bytes);
            c.hint = fmt::format("announce exactly the bytes of the copies that complete on the barrier in one phase ({}): rows * columns * bytes per element of every box, out-of-bounds parts included", lines);
        } else if (worst->bytes < 0 && !worst->arrivals) {
            c.missing = fmt::format("{} bytes more landed than were announced, so the count never reaches zero", -worst->bytes);
            c.hint = fmt::format("announce exactly the bytes of the copies that complete on the barrier in one phase ({})", lines);
        } else {
            const auto log = r.history.arrivals.find({worst->rank, base[static_cast<std::size_t>(worst->barrier)] + static_cast<int>(worst->slot)});
            int got = 0, all = 0;
            if (log != r.history.arrivals.end()) {
                for (const emulate::Arrival& a : log->second) all += a.arrivals, got += a.phase == worst->phase ? a.arrivals : 0;
            }
            if (lines.empty()) {
                c.missing = "no statement of the kernel ever arrives at it";
                c.hint = fmt::format("let whoever makes the wait come true arrive at `{}`", b.name);
            } else if (got > 0) {
                c.missing = fmt::format("it expects {} arrivals a phase and gets {}", b.arrivals, got);
                c.hint = fmt::format("make the count of the barrier (arrivals={}) equal to the arrivals of one phase: those of {}", b.arrivals, lines);
            } else if (worst->phase >= 2 && all > 0 && worst->phase > static_cast<std::uint64_t>(std::max<std::int64_t>(1, e.loops.empty() ? 1 : e.loops.back().second / std::max(1, b.slots)))) {
                c.missing = fmt::format("the barrier has already completed {} phases: it got more arrivals than rounds were run, so the parity that is waited for is not the next one", worst->phase);
                c.hint = fmt::format("arrive once per round: {} arrives too often (twice in an iteration, or once more after the loop)", lines);
            } else {
                bool ended = true;
                std::string who;
                for (const emulate::StuckWarps& w : f.stuck) {
                    if (&w == worst) continue;
                    ended = false;
                    who = role_of(k, r.history.events[w.event]);
                }
                c.missing = fmt::format("nobody arrives for this phase; arrivals are made at {} ({} so far on this slot){}", lines, all,
                                        ended ? ", and everybody else has ended" : ", and " + who + " waits too");
                c.hint = ended ? "both sides must run the same number of rounds, also for one iteration and for none: compare the loops' bounds (tw.cdiv or //), peeled first and last steps, and waits after the loop"
                               : "two sides wait for each other: check who may go first (the first wait for an empty slot must pass: parity 1), the count of arrivals, and the parity of each wait";
            }
        }
    } else if (worst->named >= 0) {
        c.missing = fmt::format("{} threads never come", worst->expected - worst->arrived);
        // Another group waits there too: arrivals of both were counted together.
        for (const emulate::StuckWarps& w : f.stuck) {
            const std::string here = role_of(k, r.history.events[worst->event]), there = role_of(k, r.history.events[w.event]);
            if (w.named != worst->named || w.rank != worst->rank || here == there || worst->named == 0) continue;
            c.hint = fmt::format("{} and {} both count at named barrier {}, so that one group's threads complete the other's round: a number of its own for each group (tw.named_barrier(1 + w, ...) in a role of several instances)", here, there, worst->named);
            return;
        }
        c.hint = std::holds_alternative<ir::BlockSync>(worst->stmt->op) ? "tw.sync() counts every thread of the block: roles that have ended or wait elsewhere never reach it; use a named barrier for those that do"
                                                                       : "the number of threads of a named barrier is that of the warps that reach it: count those (128 for one warpgroup), or let the others arrive too";
    } else {
        c.hint = "all threads that the barrier counts must reach it in every case";
    }
}

}  // namespace

void explain_fault(Counterexample& c, const Replay& r, const Fault& f) {
    const ir::Kernel& k = r.kernel;
    if (f.kind == FaultKind::deadlock) return explain_deadlock(c, r, f);
    const std::vector<Event>& events = r.history.events;
    // In the order in which the two were issued: asynchronous work may take place later than what was issued after it.
    const bool late = f.event && f.other_event && f.event < f.other_event && f.kind == FaultKind::race;
    const std::uint32_t second = late ? f.other_event : f.event, first = late ? f.event : f.other_event;
    auto asynchronous = [](Touch t) { return t == Touch::tma_load || t == Touch::tma_store || t == Touch::wgmma; };
    const Event& now = events[second];
    const Event& before = events[first];
    const Touch touch = touch_of(now.stmt), touched = touch_of(before.stmt);
    const int now_thread = late ? f.other_thread : f.by_engine ? -1 : f.thread, before_thread = late ? (f.by_engine ? -1 : f.thread) : f.other_thread;
    if (late) {
        std::swap(c.loc, c.other);
        std::swap(c.statement, c.other_statement);
        c.thread = now_thread >= 0 ? now_thread : now.warp * 32;
    }
    if (const auto byte = c.element.find("` byte "); byte != std::string::npos && c.element[0] == '`') {
        const std::string name = c.element.substr(1, byte - 1);
        for (std::size_t i = 0; i < k.buffers.size(); ++i) {
            if (k.buffers[i].name == name) c.element = arena_text(k, k.buffers[i].byte_offset + std::stoll(c.element.substr(byte + 7)), static_cast<int>(i));
        }
    }
    if (f.other_event) {
        TraceStep s = step_of(k, before, before_thread, before_thread < 0 && asynchronous(touched));
        s.action = words(touched);
        s.detail = c.element;
        c.trace.push_back(std::move(s));
    }
    if (f.event) {
        TraceStep s = step_of(k, now, now_thread, now_thread < 0 && asynchronous(touch));
        s.action = touch == Touch::tma_store && f.kind == FaultKind::in_flight ? "TMA store is issued" : f.kind == FaultKind::in_flight ? "touches it" : touch == Touch::other ? "arrives" : words(touch);
        if (f.kind == FaultKind::in_flight && f.other_event) c.trace.back().action = "wgmma takes the registers of its accumulator and operands";
        s.detail = c.element;
        c.trace.push_back(std::move(s));
    }
    if (f.kind == FaultKind::race && f.other_event) {
        const bool global = touch == Touch::global_load || touch == Touch::global_store || touch == Touch::atomic || touched == Touch::global_load || touched == Touch::global_store ||
                            (c.element.find('[') != std::string::npos);
        const bool blocks = now.rank != before.rank || !std::equal(now.block, now.block + 3, before.block);
        if (global && blocks) {
            c.message = fmt::format("two blocks touch {} and at least one writes it", c.element);
            c.missing = fmt::format("blocks ({}, {}, {}) and ({}, {}, {}) of one launch have no order", before.block[0], before.block[1], before.block[2], now.block[0], now.block[1], now.block[2]);
            c.hint = writes(touch) && writes(touched)
                         ? "tiles of different blocks must not overlap: step by the tile's width, stop a ragged group at its end (mask the store with the group's limit), or use tw.atomic_add into a zeroed tensor where blocks add up one result"
                         : "a block cannot read what another block of the same launch writes: use another launch, or keep the data in the block";
            return;
        }
        if (global) {
            c.missing = "no barrier orders the two";
            c.hint = "two threads touch one element of global memory: give each element to one thread, or put a barrier between";
            return;
        }
        const Advice a = order_advice(k, touched, touch, before, now, !k.barriers.empty());
        c.message = fmt::format("{} {} while {} {} it, and nothing orders the two", c.element, touch == Touch::tma_load || touch == Touch::cp_async || touch == Touch::store ? "is written" : "is read",
                                touched == Touch::tma_load || touched == Touch::tma_store ? "TMA" : touched == Touch::wgmma ? "wgmma" : touched == Touch::cp_async ? "cp.async" : "another access", writes(touched) ? "writes" : "reads");
        c.missing = a.missing;
        c.hint = a.hint;
        return;
    }
    if (f.kind == FaultKind::race && f.message.find("known to have started") != std::string::npos) {
        c.missing = "a cluster barrier before the first access to a peer's shared memory";
        c.hint = "tw.cluster_sync() at the start: a peer's shared memory, and its barriers, exist only once that block runs";
        return;
    }
    if (f.kind == FaultKind::race) {
        c.missing = "no barrier orders the two";
        return;
    }
    if (f.kind == FaultKind::proxy) {
        const bool init = f.message.find("initialis") != std::string::npos;
        c.missing = init ? "the fence that makes the initialisation visible to the asynchronous proxy" : "a proxy fence by the threads that wrote, after their stores and before the barrier";
        if (!init) c.hint = "tw.fence_async() in the threads that stored, then the barrier, then the TMA or wgmma: a fence after the barrier, or in the issuing thread alone, does not cover other threads' stores";
        return;
    }
    if (f.kind == FaultKind::in_flight) {
        if (f.message.find("reaches into its shared memory") != std::string::npos) {
            c.missing = "a cluster barrier between this access and the end of the block whose shared memory it reaches into";
            c.hint = "no block may leave while a peer still reads, writes or arrives in its shared memory: tw.cluster_sync() after the last such access, reached by every thread of every block (no early return)";
        } else if (touch == Touch::tma_load) {
            c.missing = "a wait for the load's mbarrier before the block ends";
            c.hint = "every TMA load that is issued must be waited for, also one that was prefetched for an iteration that does not come";
        } else if (touch == Touch::tma_store) {
            c.missing = "a wait for the bulk store before the block ends";
            c.hint = "tw.tma_store_commit() and tw.tma_store_wait(0) by the thread that issued it, after the last store";
        } else if (f.message.find("no wgmma fence") != std::string::npos) {
            c.missing = "a wgmma fence between the ordinary instructions and the wgmma";
        } else if (f.message.find("unfinished wgmma") != std::string::npos) {
            c.missing = "a wait for the last wgmma";
            c.hint = "tw.wgmma_wait(0) after the loop, before the accumulator is used or the role ends";
        } else if (before.stmt && touched == Touch::wgmma) {
            c.missing = "a wait for the wgmma group that owns the registers";
            c.hint = "tw.wgmma_wait(0) (or a count that covers this group) between the wgmma and the use of its registers";
        }
        return;
    }
    if (f.kind == FaultKind::uninitialised && (touch == Touch::load || touch == Touch::wgmma || touch == Touch::tma_store)) {
        // Who writes this place at all, and was it issued already?
        const ir::Stmt* writer = nullptr;
        bool issued = false;
        const int buffer = touch == Touch::load ? std::get<ir::LoadShared>(now.stmt->op).src.buffer : touch == Touch::tma_store ? std::get<ir::TmaStore>(now.stmt->op).src.buffer : -1;
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            int dst = -1;
            if (auto* st = std::get_if<ir::StoreShared>(&s.op)) dst = st->dst.buffer;
            if (auto* st = std::get_if<ir::CpAsync>(&s.op)) dst = st->dst.buffer;
            if (auto* st = std::get_if<ir::TmaLoad>(&s.op)) dst = st->dst.buffer;
            if (dst < 0 || (buffer >= 0 && dst != buffer)) return;
            if (!writer) writer = &s;
        });
        int executions = 0;
        for (const Event& e : events) executions += writer && e.stmt == writer;
        issued = executions > 0;
        const Touch by = touch_of(writer);
        if (!writer) {
            c.missing = "no statement of the kernel writes this buffer";
            c.hint = "write the buffer before it is read";
        } else {
            const char* what = by == Touch::cp_async ? "cp.async" : by == Touch::tma_load ? "TMA load" : "store";
            c.missing = issued ? fmt::format("the {} at line {} was issued, but is not known to have landed for this reader", what, writer->loc.line)
                               : fmt::format("the {} at line {}, which writes this buffer, has not been executed yet", what, writer->loc.line);
            if (issued && by == Touch::store && executions >= (now.role ? now.role->warps_per_instance : k.warps)) {
                c.missing = fmt::format("the store at line {} has run, but to other places of the buffer than this one", writer->loc.line);
            }
            if (!issued) {
                c.hint = "the reader must wait for the writer: look at the first iteration, at the parity of the first wait (0 waits for the first phase, 1 passes at once), and at the slot that is read";
            } else if (by == Touch::cp_async) {
                c.hint = "tw.cp_async_wait(n) with n no larger than the number of newer groups in flight (commit one group per iteration, also an empty one), then tw.sync() so that every thread's copies are seen";
            } else if (by == Touch::tma_load) {
                c.hint = "wait on the load's mbarrier with the parity of this round before reading, and read the slot that was filled";
            } else {
                c.hint = "read the slot that was written (the same index on both sides, also in the first iteration), with a barrier between the stores and the read: one that every writer "
                         "reaches, and that no writer reaches twice before the others have come (one barrier for each slot)";
            }
        }
        return;
    }
    if (f.kind == FaultKind::uninitialised && f.message.starts_with("the expression ")) {
        c.missing = "a value for a divisor, or for a variable, at these sizes";
        c.hint = "sizes may be 0, and so may what is divided by: let the loop or the grid be empty then, or divide by tw.max(1, ...); a variable must be set on every way here";
    }
    if (f.kind == FaultKind::byte_count) {
        c.missing = "all arrivals of this phase came, and fewer bytes were announced than its copies bring";
        c.hint = "announce exactly the bytes of the copies that complete on the barrier in one phase: rows * columns * bytes per element of every box, out-of-bounds parts included";
    }
    if (f.kind == FaultKind::barrier && f.message.find("cluster barrier") != std::string::npos) {
        c.missing = "every thread arrives once and waits once for each meeting of the cluster";
        c.hint = "tw.cluster_arrive() and tw.cluster_wait() come in pairs, in this order, in every thread of every block; tw.cluster_sync() is both";
    }
    if (f.kind == FaultKind::barrier && f.message.find("more arrivals") != std::string::npos) {
        c.missing = "the barrier's phase was complete, and somebody arrived once more before it was waited for";
        c.hint = "one phase gets exactly the arrivals that the barrier was made with: wait for the slot to be empty before announcing the next fill, count the arriving threads, and arrive once per round";
    }
}

}  // namespace tw::diagnose
