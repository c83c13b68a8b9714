// Who collides with whom, and what order is missing; who waits for what, and who should have arrived.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/explain.h"

namespace tw::diagnose {

using emulate::Event;
using emulate::Fault;
using emulate::FaultCause;
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
        for (std::size_t d = at.size(); d-- > 0;)
            at[d] = static_cast<int>(rest % best->extent(static_cast<int>(d))), rest /= best->extent(static_cast<int>(d));
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
    if (at == std::string::npos || at == 0 || at + 1 == name.size() || name.find_first_not_of("0123456789", at + 1) != std::string::npos)
        return name;
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
// Is the equation of this element, "Y[2, 0]", a sum?
bool adds_up(const ir::Kernel& k, const std::string& element) {
    return std::any_of(k.computes.equations.begin(), k.computes.equations.end(), [&](const ir::Equation& e) {
        ir::Term t = e.value;
        while (t->kind == ir::TermKind::cast) t = ir::Term(t->args[0]);
        return t->kind == ir::TermKind::reduce && t->name == "sum" &&
               element.starts_with(k.tensors[static_cast<std::size_t>(e.output)].name + "[");
    });
}

bool writes(Touch t) {
    return t == Touch::store || t == Touch::cp_async || t == Touch::tma_load || t == Touch::global_store || t == Touch::atomic;
}

// Two accesses to shared memory without an order between them, `before` first in this run: what is known, and no more.
std::string unordered(Touch before, Touch now, const Event& first, const Event& second) {
    const std::string lines = ir::same_line(first.stmt->loc, second.stmt->loc)
                                  ? fmt::format("the two executions of line {}", ir::line_text(first.stmt->loc))
                                  : fmt::format("line {} and line {}", ir::line_text(first.stmt->loc), ir::line_text(second.stmt->loc));
    if (first.rank != second.rank) return fmt::format("nothing that orders {}, which run in two blocks of the cluster", lines);
    if (before == Touch::tma_load && now == Touch::tma_load)
        return fmt::format("a wait between {} that says that the place is free again", lines);
    if (before == Touch::wgmma)
        return fmt::format("a wait for the wgmma of line {} that comes before line {}", ir::line_text(first.stmt->loc),
                           ir::line_text(second.stmt->loc));
    if (before == Touch::tma_store)
        return fmt::format("a wait for the TMA store of line {} that thread and barriers carry to line {}", ir::line_text(first.stmt->loc),
                           ir::line_text(second.stmt->loc));
    if (before == Touch::cp_async)
        return fmt::format("a wait for the copy of line {}, or a barrier after it, before line {}", ir::line_text(first.stmt->loc),
                           ir::line_text(second.stmt->loc));
    if (before == Touch::tma_load && now != Touch::tma_load)
        return fmt::format("a wait for the phase in which line {} lands, before line {}", ir::line_text(first.stmt->loc),
                           ir::line_text(second.stmt->loc));
    if (first.warp == second.warp) return fmt::format("a barrier of the warp's lanes between {}", lines);
    return fmt::format("a barrier, or an arrival and a wait, between {}", lines);
}

std::string role_of(const Event& e) {
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

// Where arrivals at a barrier's slots are kept: barrier arrays one after the other.
std::pair<int, int> arrivals_key(const ir::Kernel& k, const emulate::StuckWarps& w) {
    int first = 0;
    for (int b = 0; b < w.barrier; ++b) first += k.barriers[static_cast<std::size_t>(b)].slots;
    return {w.rank, first + static_cast<int>(w.slot)};
}

// A wait for ever, as a step of the trace; and how much speaks for it as the one to blame: most where bytes or arrivals do not add up.
std::pair<TraceStep, int> stuck_step(const Replay& r, const emulate::StuckWarps& w) {
    const ir::Kernel& k = r.kernel;
    const Event& e = r.history.events[w.event];
    TraceStep s = step_of(k, e, -1, false);
    int score = 0;
    if (w.barrier >= 0) {
        const ir::BarrierArray& b = k.barriers[static_cast<std::size_t>(w.barrier)];
        s.action = fmt::format("waits for `{}[{}]`,", b.name, w.slot);
        s.detail = fmt::format("phase {} (parity {}): ", w.phase, w.parity);
        if (w.arrivals) s.detail += fmt::format("{} of {} arrivals outstanding", w.arrivals, b.arrivals);
        if (w.bytes > 0) s.detail += fmt::format("{}{} bytes announced that have not come", w.arrivals ? ", " : "", w.bytes);
        if (w.bytes < 0) s.detail += fmt::format("{}{} bytes more came than were announced", w.arrivals ? ", " : "", -w.bytes);
        std::set<ir::Line> lines;
        const auto log = r.history.arrivals.find(arrivals_key(k, w));
        int got = 0;
        if (log != r.history.arrivals.end()) {
            for (const emulate::Arrival& a : log->second) {
                if (a.phase != w.phase) continue;
                got += a.arrivals;
                if (a.event) lines.insert(r.history.events[a.event].stmt->loc.first_line());
            }
        }
        if (!lines.empty()) {
            s.detail += "; so far from line";
            for (const ir::Line& l : lines) s.detail += " " + ir::line_text(l);
        }
        score = w.bytes != 0 && !w.arrivals ? 3 : got > 0 && w.arrivals ? 2 : 1;
    } else if (w.named >= 0) {
        s.action = w.named == 0 && std::holds_alternative<ir::BlockSync>(w.stmt->op) ? "waits at the block's barrier:"
                                                                                     : fmt::format("waits at named barrier {}:", w.named);
        s.detail = fmt::format("{} of {} threads are there", w.arrived, w.expected);
        score = 2;
    } else {
        s.action = std::holds_alternative<ir::ClusterWait>(w.stmt->op) ? "waits for the cluster"
                   : std::holds_alternative<ir::WgmmaWait>(w.stmt->op) ? "waits for the warpgroup's wgmma"
                                                                       : "waits";
    }
    s.who =
        fmt::format("{} warp{} of {}", w.warps > 1 ? w.warps : 1, w.warps > 1 ? "s" : "", role_of(e)) + (s.iteration.empty() ? "" : ", ");
    for (std::size_t i = 0; i < s.iteration.size(); ++i)
        s.who += fmt::format("{}{}={}", i ? ", " : "", s.iteration[i].first, s.iteration[i].second);
    return {std::move(s), score};
}

// Arrivals that the wait's phase is short of.
void missing_arrivals(Counterexample& c, const Replay& r, const Fault& f, const emulate::StuckWarps& worst, const std::string& lines) {
    const ir::BarrierArray& b = r.kernel.barriers[static_cast<std::size_t>(worst.barrier)];
    const Event& e = r.history.events[worst.event];
    const auto log = r.history.arrivals.find(arrivals_key(r.kernel, worst));
    int got = 0, all = 0;
    if (log != r.history.arrivals.end()) {
        for (const emulate::Arrival& a : log->second) all += a.arrivals, got += a.phase == worst.phase ? a.arrivals : 0;
    }
    if (lines.empty()) {
        c.missing = "no statement of the kernel ever arrives at it";
        if (worst.bytes < 0)
            c.hint = fmt::format(
                "a copy brings bytes, and somebody must announce them and arrive: {}[{}].expect({}) before the copy, once a phase; rings "
                "(tw.pipeline) do it in acquire()",
                b.name, worst.slot, -worst.bytes);
        else c.hint = fmt::format("somebody arrives once a phase: {}[{}].arrive()", b.name, worst.slot);
    } else if (got > 0) {
        c.missing = fmt::format("it expects {} arrivals a phase and gets {}", b.arrivals, got);
        if (f.stuck.size() == 1)
            c.hint = fmt::format(
                "the barrier's count (arrivals={}) and the arrivals of one phase, made at {}, must be equal: nobody is left who "
                "could arrive",
                b.arrivals, lines);
    } else if (worst.phase >= 2 && all > 0 &&
               worst.phase > static_cast<std::uint64_t>(
                                 std::max<std::int64_t>(1, e.loops.empty() ? 1 : e.loops.back().second / std::max(1, b.slots)))) {
        c.missing = fmt::format(
            "the barrier has already completed {} phases: it got more arrivals than rounds were run, so the parity that is waited "
            "for is not the next one",
            worst.phase);
    } else {
        bool ended = true;
        std::string who;
        for (const emulate::StuckWarps& w : f.stuck) {
            if (&w == &worst) continue;
            ended = false;
            who = role_of(r.history.events[w.event]);
        }
        c.missing = fmt::format("nobody arrives for this phase; arrivals are made at {} ({} so far on this slot){}", lines, all,
                                ended ? ", and everybody else has ended" : ", and " + who + " waits too");
    }
}

void stuck_at_mbarrier(Counterexample& c, const Replay& r, const Fault& f, const emulate::StuckWarps& worst) {
    const ir::Kernel& k = r.kernel;
    const ir::BarrierArray& b = k.barriers[static_cast<std::size_t>(worst.barrier)];
    c.message = fmt::format("deadlock: {} waits for ever at mbarrier `{}[{}]`", role_of(r.history.events[worst.event]), b.name, worst.slot);
    std::string lines;
    for (const ir::Stmt* s : arrivers(k, worst.barrier)) lines += (lines.empty() ? "line " : ", line ") + ir::line_text(s->loc);
    if (worst.bytes > 0 && !worst.arrivals) {
        c.missing = fmt::format("all arrivals of this phase came, but {} of the announced bytes never land", worst.bytes);
        c.hint = fmt::format(
            "the bytes that are announced ({}) must be those of the copies that complete on the barrier in one phase: rows * columns * "
            "bytes per element of every box, out-of-bounds parts included",
            lines);
    } else if (worst.bytes < 0 && !worst.arrivals) {
        c.missing = fmt::format("{} bytes more landed than were announced, so the count never reaches zero", -worst.bytes);
        c.hint =
            fmt::format("the bytes that are announced ({}) must be those of the copies that complete on the barrier in one phase", lines);
    } else {
        missing_arrivals(c, r, f, worst, lines);
    }
}

void stuck_at_named_barrier(Counterexample& c, const Replay& r, const Fault& f, const emulate::StuckWarps& worst) {
    c.missing = fmt::format("{} threads never come", worst.expected - worst.arrived);
    // Another group waits there too: arrivals of both were counted together.
    for (const emulate::StuckWarps& w : f.stuck) {
        const std::string here = role_of(r.history.events[worst.event]), there = role_of(r.history.events[w.event]);
        if (w.named != worst.named || w.rank != worst.rank || here == there || worst.named == 0) continue;
        c.hint = fmt::format(
            "{} and {} both count at named barrier {}, so that one group's threads complete the other's round: each group needs a "
            "number of its own",
            here, there, worst.named);
        return;
    }
    if (std::holds_alternative<ir::BlockSync>(worst.stmt->op))
        c.hint = "tw.sync() counts every thread of the block, and some of them have ended or wait elsewhere";
    else c.hint = fmt::format("the barrier counts {} threads, and only {} come", worst.expected, worst.arrived);
}

void explain_deadlock(Counterexample& c, const Replay& r, const Fault& f) {
    const ir::Kernel& k = r.kernel;
    const emulate::StuckWarps* worst = nullptr;
    int worst_score = -1;
    for (const emulate::StuckWarps& w : f.stuck) {
        auto [step, score] = stuck_step(r, w);
        if (score > worst_score) worst = &w, worst_score = score;
        c.trace.push_back(std::move(step));
    }
    if (!worst) return;
    c.loc = worst->stmt->loc;
    c.statement = ir::print(k, *worst->stmt);
    c.message = fmt::format("deadlock: {} waits for ever", role_of(r.history.events[worst->event]));
    if (worst->barrier >= 0) stuck_at_mbarrier(c, r, f, *worst);
    else if (worst->named >= 0) stuck_at_named_barrier(c, r, f, *worst);
}

// Something is read that nobody is known to have written: who writes it at all, and has that run?
void unwritten(Counterexample& c, const Replay& r, const Event& now, Suspects& suspects) {
    const ir::Kernel& k = r.kernel;
    const auto quote = c.element.find('`', 1);
    const std::string name =
        c.element.empty() || c.element[0] != '`' || quote == std::string::npos ? std::string() : c.element.substr(1, quote - 1);
    auto in_place = [&](int buffer) {
        const ir::SharedBuffer& b = k.buffers[static_cast<std::size_t>(buffer)];
        return b.name == name || (b.overlay_of >= 0 && k.buffers[static_cast<std::size_t>(b.overlay_of)].name == name);
    };
    std::vector<const ir::Stmt*> writers;
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        int dst = -1;
        if (auto* st = std::get_if<ir::StoreShared>(&s.op)) dst = st->dst.buffer;
        if (auto* st = std::get_if<ir::CpAsync>(&s.op)) dst = st->dst.buffer;
        if (auto* st = std::get_if<ir::TmaLoad>(&s.op)) dst = st->dst.buffer;
        if (dst >= 0 && in_place(dst)) writers.push_back(&s);
    });
    if (writers.empty()) {
        c.missing = "no statement of the kernel writes this buffer";
        return;
    }
    suspects.first = writers.front();
    const auto* peer = std::get_if<ir::LoadShared>(&now.stmt->op);
    if (peer && peer->src.cluster_rank) {
        c.missing = fmt::format("nothing that orders the write of the other block of the cluster (line {}) before this read",
                                ir::line_text(writers.front()->loc));
        return;
    }
    std::string run, waiting;
    for (const ir::Stmt* w : writers) {
        const bool ran = std::any_of(r.history.events.begin(), r.history.events.end(),
                                     [&](const Event& e) { return e.stmt == w && e.rank == now.rank; });
        const std::string line = ir::line_text(w->loc);
        std::string& lines = ran ? run : waiting;
        if ((", " + lines + ",").find(", " + line + ",") == std::string::npos) lines += (lines.empty() ? "" : ", ") + line;
    }
    if (run.empty()) c.missing = fmt::format("line {}, which writes this buffer, has not run yet in this block", waiting);
    else
        c.missing =
            fmt::format("line {} writes this buffer and has run, but nothing says that this place was written for this reader", run);
}

// The two accesses of a fault, in the order in which they were issued: asynchronous work may take place later than what was issued after
// it.
struct TwoTouches {
    const Event &before, &now;
    Touch touched, touch;           // what each does
    int before_thread, now_thread;  // -1: no thread, or all of the statement's
};

TwoTouches touches_of(const Replay& r, const Fault& f) {
    const bool late = f.event && f.other_event && f.event < f.other_event && f.kind == FaultKind::race;
    const Event &now = r.history.events[late ? f.other_event : f.event], &before = r.history.events[late ? f.event : f.other_event];
    const int thread = f.by_engine ? -1 : f.thread;
    return {before, now, touch_of(before.stmt), touch_of(now.stmt), late ? thread : f.other_thread, late ? f.other_thread : thread};
}

// The element that a fault names as a byte of a buffer, in the buffer's own coordinates.
void name_element(Counterexample& c, const ir::Kernel& k) {
    const auto byte = c.element.find("` byte ");
    if (byte == std::string::npos || c.element[0] != '`') return;
    const std::string name = c.element.substr(1, byte - 1);
    for (std::size_t i = 0; i < k.buffers.size(); ++i) {
        if (k.buffers[i].name != name) continue;
        const std::int64_t address = k.buffers[i].byte_offset + std::stoll(c.element.substr(byte + 7));
        c.element = arena_text(k, address, static_cast<int>(i));
        c.layout = layout_picture(k, address, static_cast<int>(i));
    }
}

void trace_touches(Counterexample& c, const ir::Kernel& k, const Fault& f, const TwoTouches& two) {
    auto asynchronous = [](Touch t) { return t == Touch::tma_load || t == Touch::tma_store || t == Touch::wgmma; };
    if (f.other_event) {
        TraceStep s = step_of(k, two.before, two.before_thread, two.before_thread < 0 && asynchronous(two.touched));
        s.action = words(two.touched);
        s.detail = c.element;
        c.trace.push_back(std::move(s));
    }
    if (f.event) {
        TraceStep s = step_of(k, two.now, two.now_thread, two.now_thread < 0 && asynchronous(two.touch));
        s.action = two.touch == Touch::tma_store && f.kind == FaultKind::in_flight ? "TMA store is issued"
                   : f.kind == FaultKind::in_flight                                ? "touches it"
                   : two.touch == Touch::other                                     ? "arrives"
                                                                                   : words(two.touch);
        if (f.kind == FaultKind::in_flight && f.other_event)
            c.trace.back().action = "wgmma takes the registers of its accumulator and operands";
        s.detail = c.element;
        c.trace.push_back(std::move(s));
    }
}

void explain_race(Counterexample& c, const ir::Kernel& k, const TwoTouches& two) {
    const auto& [before, now, touched, touch, before_thread, now_thread] = two;
    const bool global = touch == Touch::global_load || touch == Touch::global_store || touch == Touch::atomic ||
                        touched == Touch::global_load || touched == Touch::global_store || (c.element.find('[') != std::string::npos);
    const bool blocks = now.rank != before.rank || !std::equal(now.block, now.block + 3, before.block);
    if (global && blocks) {
        c.message = fmt::format("two blocks touch {} and at least one writes it", c.element);
        c.missing = fmt::format("blocks ({}, {}, {}) and ({}, {}, {}) of one launch have no order", before.block[0], before.block[1],
                                before.block[2], now.block[0], now.block[1], now.block[2]);
        c.hint =
            !writes(touch) || !writes(touched) ? "a block cannot read what another block of the same launch writes"
            : adds_up(k, c.element)
                ? "two blocks store one element: their tiles overlap, or both have a part in it and must add (tw.atomic_add)"
                : "two blocks store one element, of which `computes` is no sum: a tile reaches beyond what is its block's (its origin, "
                  "its length, or a limit= of the store)";
        return;
    }
    if (global) {
        c.missing = "no barrier orders the two";
        return;
    }
    c.message = fmt::format("{} {} while {} {} it, and nothing orders the two", c.element,
                            touch == Touch::tma_load || touch == Touch::cp_async || touch == Touch::store ? "is written" : "is read",
                            touched == Touch::tma_load || touched == Touch::tma_store ? "TMA"
                            : touched == Touch::wgmma                                 ? "wgmma"
                            : touched == Touch::cp_async                              ? "cp.async"
                                                                                      : "another access",
                            writes(touched) ? "writes" : "reads");
    c.missing = unordered(touched, touch, before, now);
}

void explain_in_flight(Counterexample& c, const Fault& f, const TwoTouches& two) {
    if (f.cause == FaultCause::peer_ended) {
        c.missing = "a cluster barrier between this access and the end of the block whose shared memory it reaches into";
        c.hint = "no block may leave while a peer still reads, writes or arrives in its shared memory";
    } else if (two.touch == Touch::tma_load) {
        c.missing = "a wait for the load's mbarrier before the block ends";
        c.hint = "every TMA load that is issued must be waited for before the block ends";
    } else if (two.touch == Touch::tma_store) {
        c.missing = "a wait for the bulk store before the block ends";
    } else if (f.cause == FaultCause::no_wgmma_fence) {
        c.missing = "a wgmma fence between the ordinary instructions and the wgmma";
    } else if (f.cause == FaultCause::unfinished_wgmma) {
        c.missing = "a wait for the last wgmma";
    } else if (two.before.stmt && two.touched == Touch::wgmma) {
        c.missing = "a wait for the wgmma group that owns the registers";
    }
}

// Faults that one statement makes by itself.
void explain_cause(Counterexample& c, const Fault& f) {
    if (f.cause == FaultCause::no_fill)
        c.hint =
            "say what the elements outside are, by what leaves the result alone: fill=0.0 for a sum or a copy, fill=float(\"-inf\") for a "
            "maximum";
    if (f.cause == FaultCause::unset_expression) c.missing = "a value for a divisor, or for a variable, at these sizes";
    if (f.kind == FaultKind::byte_count) {
        c.missing = "all arrivals of this phase came, and fewer bytes were announced than its copies bring";
        c.hint =
            "the bytes that are announced must be those of the copies that complete on the barrier in one phase: rows * columns * bytes "
            "per element of every box, out-of-bounds parts included";
    }
    if (f.cause == FaultCause::cluster_barrier) {
        c.missing = "every thread arrives once and waits once for each meeting of the cluster";
        c.hint =
            "tw.cluster_arrive() and tw.cluster_wait() come in pairs, in this order, in every thread of every block; tw.cluster_sync() is "
            "both";
    }
    if (f.cause == FaultCause::too_many_arrivals)
        c.missing = "the barrier's phase was complete, and somebody arrived once more before it was waited for";
}

}  // namespace

void explain_fault(Counterexample& c, const Replay& r, const Fault& f, Suspects& suspects) {
    const ir::Kernel& k = r.kernel;
    suspects.order = true;
    suspects.proxy = f.kind == FaultKind::proxy;
    if (!f.stuck.empty()) suspects.second = f.stuck.front().stmt;
    if (f.kind == FaultKind::deadlock) return explain_deadlock(c, r, f);
    const TwoTouches two = touches_of(r, f);
    suspects.first = two.before.stmt;
    suspects.second = two.now.stmt;
    if (&two.now != &r.history.events[f.event]) {  // told the other way round
        std::swap(c.loc, c.other);
        std::swap(c.statement, c.other_statement);
        c.thread = two.now_thread >= 0 ? two.now_thread : two.now.warp * 32;
    }
    name_element(c, k);
    trace_touches(c, k, f, two);
    if (f.kind == FaultKind::race && f.other_event) return explain_race(c, k, two);
    if (f.cause == FaultCause::peer_not_started) {
        c.missing = "a cluster barrier before the first access to a peer's shared memory";
        c.hint = "tw.cluster_sync() at the start: a peer's shared memory, and its barriers, exist only once that block runs";
        return;
    }
    if (f.kind == FaultKind::race) {
        c.missing = "no barrier orders the two";
        return;
    }
    if (f.kind == FaultKind::proxy) {
        c.missing = f.cause == FaultCause::initialisation ? "the fence that makes the initialisation visible to the asynchronous proxy"
                    : f.cause == FaultCause::unfenced_read
                        ? "a proxy fence by the threads that read, after their loads and before the barrier"
                        : "a proxy fence by the threads that wrote, after their stores and before the barrier";
        return;
    }
    if (f.kind == FaultKind::in_flight) return explain_in_flight(c, f, two);
    if (f.kind == FaultKind::uninitialised && (two.touch == Touch::load || two.touch == Touch::wgmma || two.touch == Touch::tma_store))
        return unwritten(c, r, two.now, suspects);
    explain_cause(c, f);
}

}  // namespace tw::diagnose
