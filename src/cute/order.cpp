// The events of a kernel, followed in the order of the text.
#include "cute/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cute/events.h"

namespace tw::cute {
namespace {

// What is in flight, as one thread of the kernel knows it.
struct Buffer {
    std::string stage;
    enum class Writes : std::uint8_t { none, issued, committed, arrived, plain } writes = Writes::none;
    int group = 0;         // committed: its number
    bool generic = false;  // written by ordinary stores, and no fence since, or none with a barrier after it
    bool fenced = false;   // ... a fence, and no barrier since
    bool late = false;     // ... a barrier, and a fence after it
    bool copied = false;   // written by cp.async, and no fence since
    Span written, read;
    bool was_read = false;              // since the last barrier
    std::string read_own, written_own;  // the element, where each thread touched only its own
    Event read_by, written_by;          // with the threads of their elements
    bool warp_synced = false;           // __syncwarp since the write
    std::set<std::string> names;        // variables of the stage
    int stored = 0;                     // by TMA, in the group of this number; -1: waited for, and no barrier since
    Span store;
    bool elements = false, updates = false;  // the writes since the last barrier: by index; by adding
};

struct State {
    std::map<std::string, std::vector<Buffer>> buffers;
    int commits = 0;
    bool arrived = false, uncommitted_product = false, bulk_open = false, bulk_waited = true;
    Span bulk;
    std::map<std::string, int> in_flight;  // accumulator: the number of its group; 0: not committed yet
    int stores = 0;                        // groups of TMA stores that are committed
    int groups = 0;                        // of products that are committed
    std::set<std::string> initialised;     // barriers that no __syncthreads has followed
    std::map<std::string, std::int64_t> expected, loaded;
    std::map<std::string, std::string> brought;  // a tile that TMA fills: the barrier nobody has waited for since
};

// May two accesses of a buffer touch elements of different threads: none, those of the same warp, any?
enum class Apart : std::uint8_t { none, warp, block };
Apart apart(const Event& a, const Event& b, std::int64_t threads) {
    if (!a.own.empty() && a.own == b.own) return Apart::none;
    const Apart most = threads > 0 && threads <= 32 ? Apart::warp : Apart::block;
    if (!a.dealt || !b.dealt || a.slice != b.slice || a.slice.empty() || a.stage != b.stage) return most;
    Apart out = Apart::none;
    for (std::size_t i = 0; i < std::min(a.dealt->size(), b.dealt->size()); ++i) {
        const int x = (*a.dealt)[i], y = (*b.dealt)[i];
        if (x == -1 || y == -1 || (x == y && x >= 0)) continue;
        if (x < 0 || y < 0 || x / 32 != y / 32) return most;
        out = Apart::warp;
    }
    return out;
}

class Walker {
public:
    Walker(const Evaluator& evaluator, DiagnosticSink& sink, Report& report, std::int64_t threads)
        : e_(evaluator), sink_(sink), report_(report), threads_(threads) {}

    // `followed`: the skeleton was run; `why_not`: why it was not.
    void kernel(const std::vector<Node>& body, const std::string& name, Span place, bool followed, const std::string& why_not) {
        State s;
        collect(body, false);
        walk(body, s, {}, false);
        compare_bytes(s);
        end_of_stores(s);
        const auto not_seen = [&](const char* what, const std::string& why) { report_.not_analysed.push_back({what, place, why}); };
        const std::string because = why_not.empty() ? "" : ". Not followed: " + why_not;
        if (!inits_.empty() && !followed)
            not_seen("mbarriers",
                     "how many arrivals a phase takes, the number of a barrier in its array and the parity of the first wait are not "
                     "compared, nor that a stage is read before it is filled again" +
                         because);
        if (pipelines_ > 0 && !followed)
            not_seen("pipelines", "a pipeline class is believed: its bytes, its consumers and its states are not compared" + because);
        if (stages_ && !followed)
            not_seen("stages",
                     "stages with different indices are taken to be different: which of them is filled when is not compared" + because);
        if (rounds_ && !followed)
            not_seen("mbarriers", "a wait in a branch that some rounds of a loop take: which of them is not compared" + because);
        if (left_) not_seen("return", "threads leave before a barrier of the whole block: which of them it waits for is not looked at");
        if (events_ > 0)
            report_.covered.push_back(
                {"synchronisation", name, place,
                 fmt::format("{} events of {} shared tensors and {} mbarriers", events_, tensors_.size(), inits_.size())});
    }

private:
    // What there is in the whole kernel, whatever the order.
    void collect(const std::vector<Node>& body, bool) {
        for (const Node& n : body) {
            if (n.kind == Node::Kind::event) {
                ++events_;
                if (n.event.kind == Event::Kind::write || n.event.kind == Event::Kind::read) tensors_.insert(n.event.key);
                if (n.event.kind == Event::Kind::bar_init) inits_.insert(n.event.key);
                if (n.event.kind == Event::Kind::bar_expect) expects_.insert(n.event.key);
                copies_async_ |= n.event.kind == Event::Kind::write && n.event.async;
                waits_for_stores_ |= n.event.kind == Event::Kind::bulk_wait;
                if (n.event.kind == Event::Kind::lost) lost_.insert(n.event.key);
            }
            collect(n.body, false);
            collect(n.otherwise, false);
        }
    }

    // The copies of one way of a branch of roles come while the other way runs.
    static void brought_by(const std::vector<Node>& body, std::map<std::string, std::string>& tiles) {
        for (const Node& n : body) {
            if (n.kind == Node::Kind::event && n.event.kind == Event::Kind::tma_load && !n.event.key.empty() && !n.event.tile.empty())
                tiles.emplace(n.event.tile, n.event.key);
            brought_by(n.body, tiles);
            brought_by(n.otherwise, tiles);
        }
    }

    // A loop that fills one stage of a tensor and reads another: a barrier and a wait must lie between a stage's copies and its readers,
    // whichever round they are of.
    struct Ring {
        std::set<std::string> filled, read, plainly;  // stages of one tensor; `plainly`: by ordinary stores
        std::set<std::string> owns;                   // the parts that are filled and read
        bool products = true;                         // only wgmma reads it
        Span fill;
    };
    static void rings(const std::vector<Node>& body, std::map<std::string, Ring>& out, bool& barrier, bool& waits) {
        for (const Node& n : body) {
            const Event& e = n.event;
            if (n.kind == Node::Kind::event) {
                if (e.kind == Event::Kind::write || e.kind == Event::Kind::read || e.kind == Event::Kind::product_read)
                    out[e.key].owns.insert(e.own);
                if (e.kind == Event::Kind::write && e.async) out[e.key].filled.insert(e.stage), out[e.key].fill = e.place;
                if (e.kind == Event::Kind::write && !e.async) out[e.key].plainly.insert(e.stage);
                if (e.kind == Event::Kind::read) out[e.key].products = false;
                if (e.kind == Event::Kind::read || e.kind == Event::Kind::product_read) out[e.key].read.insert(e.stage);
                barrier |= e.kind == Event::Kind::sync || e.kind == Event::Kind::named || e.kind == Event::Kind::warp_sync ||
                           e.kind == Event::Kind::bar_wait;
                waits |= e.kind == Event::Kind::cp_wait || e.kind == Event::Kind::bar_wait || (e.kind == Event::Kind::sync && e.constant);
            }
            rings(n.body, out, barrier, waits);
            rings(n.otherwise, out, barrier, waits);
        }
    }
    void check_ring(const Node& loop) {
        std::map<std::string, Ring> tensors;
        bool barrier = false, waits = false;
        rings(loop.body, tensors, barrier, waits);
        for (const auto& [key, ring] : tensors) {
            if (ring.filled.empty() || ring.read.empty() || lost_.count(key) || ring.filled == ring.read) continue;
            stages_ = true;
            ++report_.checks;
            if (!waits)
                say(Code::cute_group, ring.fill,
                    fmt::format("the loop copies into one stage of `{}`, reads another, and never waits for a copy", e_.shown(key)),
                    "cp_async_wait<N>() in the loop, with N groups that may still be on their way");
            if (!barrier && !(threads_ == 128 && ring.products) && !(ring.owns.size() == 1 && !ring.owns.begin()->empty()))
                say(Code::cute_sync, ring.fill,
                    fmt::format("the loop copies into one stage of `{}` and reads another with no barrier between: other threads' copies "
                                "are not seen, and a stage is filled while others read it",
                                e_.shown(key)),
                    "__syncthreads() in the loop, after the wait for the copies");
        }
    }

    // Kernels that end with a store that nobody waits for are about, and work: a remark. What is written over is an error of its own.
    void end_of_stores(const State& s) {
        if (!s.bulk_open && s.bulk_waited) return;
        const bool meant = s.bulk_open && waits_for_stores_;
        remark(Code::cute_group, s.bulk,
               meant         ? "a TMA store is never committed: the wait for stores does not cover it"
               : s.bulk_open ? "a TMA store is never committed, and the kernel ends while it may still read its shared memory"
                             : "the kernel ends while TMA stores may still read its shared memory",
               meant         ? "call tma_store_arrive() after the copies"
               : s.bulk_open ? "call tma_store_arrive() after the copies, and tma_store_wait<0>() before the end"
                             : "call tma_store_wait<0>() before the end");
    }

    void compare_bytes(State& s) {
        for (const auto& [key, bytes] : s.expected) {
            const auto loaded = s.loaded.find(key);
            if (loaded == s.loaded.end() || loaded->second <= 0 || loaded->second == bytes || !told_.insert(key).second) continue;
            say(Code::cute_barrier, bytes_at_[key],
                fmt::format("`{}` expects {} bytes, and the copies bring {}", key, bytes, loaded->second),
                "expect the bytes of all boxes that arrive on the barrier");
        }
    }

    static bool in_loop(const std::vector<const Node*>& around) {
        return std::any_of(around.begin(), around.end(), [](const Node* n) { return n->kind == Node::Kind::loop; });
    }

    // A fence after the barrier is on the way from the write to the read; that of the writer, before it, is what is sure.
    void late_or(bool late, Span place, const std::string& message, const std::string& hint) {
        late ? remark(Code::cute_proxy, place, message, hint) : say(Code::cute_proxy, place, message, hint);
    }
    void remark(Code code, Span place, const std::string& message, const std::string& hint) {
        if (said_.emplace(place.begin, message).second) sink_.warning(code, place, message).with_hint(hint);
    }
    void say(Code code, Span place, const std::string& message, const std::string& hint) {
        if (!said_.emplace(place.begin, message).second) return;
        if (perhaps_) sink_.warning(code, place, message + ", where a block goes round the loop over blocks again").with_hint(hint);
        else sink_.error(code, place, message).with_hint(hint);
    }

    void walk(const std::vector<Node>& body, State& s, const std::vector<const Node*>& loops, bool divergent) {
        for (const Node& n : body) {
            if (++steps_ > 20000) return;
            if (n.kind == Node::Kind::event) event(n.event, s, loops, divergent);
            else if (n.kind == Node::Kind::loop) {
                auto inner = loops;
                inner.push_back(&n);
                check_ring(n);
                if (std::count_if(loops.begin(), loops.end(), [](const Node* l) { return l->kind == Node::Kind::loop; }) < 4) {
                    walk(n.body, s, inner, divergent || n.divergent);
                    compare_bytes(s);
                    s.expected.clear(), s.loaded.clear();
                    turn(n, s);
                }
                const bool outer = std::exchange(perhaps_, perhaps_ || n.by_blocks);
                walk(n.body, s, inner, divergent || n.divergent);
                perhaps_ = outer;
            } else {
                State other = s;
                if (n.roles && !n.otherwise.empty()) brought_by(n.otherwise, s.brought), brought_by(n.body, other.brought);
                auto inner = loops;
                inner.push_back(&n);
                walk(n.body, s, inner, divergent || n.divergent);
                walk(n.otherwise, other, inner, divergent || n.divergent);
                if (!n.otherwise.empty()) merge(s, other);
                else merge_skipped(s, other);
            }
        }
    }

    // The next time round, a stage whose variables have changed is another one.
    static void turn(const Node& loop, State& s) {
        for (auto& [key, list] : s.buffers) {
            for (Buffer& b : list) {
                const bool moved =
                    std::any_of(b.names.begin(), b.names.end(), [&](const std::string& n) { return loop.changed.count(n) != 0; });
                if (moved) b.stage += " before";
            }
        }
    }

    // Both ways of a branch: what is in flight in either.
    static void merge(State& s, const State& o) {
        for (const auto& [key, list] : o.buffers) {
            auto& mine = s.buffers[key];
            for (const Buffer& b : list) {
                const auto it = std::find_if(mine.begin(), mine.end(), [&](const Buffer& m) { return m.stage == b.stage; });
                if (it == mine.end()) mine.push_back(b);
                else if (b.writes != Buffer::Writes::none && it->writes == Buffer::Writes::none) *it = b;
            }
        }
        s.commits = std::max(s.commits, o.commits);
        s.initialised.insert(o.initialised.begin(), o.initialised.end());
        if (o.bulk_open && !s.bulk_open) s.bulk_open = true, s.bulk = o.bulk;
        if (!o.bulk_waited && s.bulk_waited) s.bulk_waited = false, s.bulk = o.bulk;
        s.brought.clear();
    }
    // A branch that may be left out: barriers in it are believed (conditions that hold for the whole block are common).
    static void merge_skipped(State& s, const State& o) { s.commits = std::max(s.commits, o.commits); }

    // Buffers that the access may touch: stages with other text are other stages.
    static std::vector<Buffer*> touched(State& s, const Event& e, bool make) {
        auto& list = s.buffers[e.key];
        std::vector<Buffer*> out;
        bool found = false;
        for (Buffer& b : list) {
            if (b.stage == e.stage) found = true;
            if (b.stage == e.stage || b.stage.empty() || e.stage.empty()) out.push_back(&b);
        }
        if (!found && make) {
            list.push_back({e.stage});
            list.back().names = e.names;
            out.clear();
            for (Buffer& b : list) {
                if (b.stage == e.stage || b.stage.empty() || e.stage.empty()) out.push_back(&b);
            }
        }
        return out;
    }

    void event(const Event& e, State& s, const std::vector<const Node*>& loops, bool divergent);
    void barrier_event(const Event& e, State& s, const std::vector<const Node*>& loops);
    void product_event(const Event& e, State& s);
    void read(const Event& e, State& s);

    const Evaluator& e_;
    DiagnosticSink& sink_;
    Report& report_;
    std::int64_t threads_;                  // of the block; 0: not known
    std::set<std::string> told_;            // barriers whose bytes were spoken of
    std::map<std::string, Span> bytes_at_;  // where a barrier's bytes are told
    std::set<std::pair<std::uint32_t, std::string>> said_;
    bool perhaps_ = false;  // in a second round of a loop that a block may go round once
    bool stages_ = false, rounds_ = false, copies_async_ = false, waits_for_stores_ = false;
    std::set<std::string> inits_, expects_, tensors_, lost_;
    void product_read(const Event& e, State& s);
    void stored(const Event& e, State& s);
    void write(const Event& e, State& s);
    void tma_store(const Event& e, State& s);
    void pipeline_event(const Event& e, State& s);
    static void barrier_of_all(State& s);
    int events_ = 0, steps_ = 0, pipelines_ = 0;
    bool loads_ = false, may_leave_ = false, left_ = false;
};

void Walker::product_read(const Event& e, State& s) {
    if (const auto it = s.brought.find(e.key); it != s.brought.end()) {
        say(Code::cute_barrier, e.place,
            fmt::format("`{}` is used and nobody has waited for `{}`: TMA may still be writing it", e_.shown(e.key), it->second),
            "wait for the barrier's phase before the product");
        s.brought.erase(e.key);
    }
    if (lost_.count(e.key)) return;
    using W = Buffer::Writes;
    for (Buffer* b : touched(s, e, true)) {
        if (b->writes == W::issued || b->writes == W::committed)
            say(Code::cute_group, e.place, fmt::format("wgmma reads `{}` while cp.async may still be writing it", e_.shown(e.key)),
                "cp_async_fence() after the copies, cp_async_wait<N>() for their group, a fence and a barrier before the product");
        else if (b->writes == W::arrived || b->writes == W::plain) {
            const std::string what =
                fmt::format("wgmma reads `{}` without a barrier after the threads of the block wrote it", e_.shown(e.key));
            const char* const fix = "fence_view_async_shared() after the writes, then a barrier, then the product";
            // One warpgroup: its warps meet in the product, which starts when all of them have issued it, as far as is known.
            if (threads_ == 128) remark(Code::cute_sync, e.place, what, fix);
            else say(Code::cute_sync, e.place, what, fix);
        }
        if (std::exchange(b->copied, false) && said_.emplace(e.place.begin, "copied " + e.key).second)
            sink_
                .warning(
                    Code::cute_proxy, e.place,
                    fmt::format("wgmma reads `{}` through the async proxy; cp.async wrote it through the generic one, and no fence follows",
                                e_.shown(e.key)))
                .with_hint("fence_view_async_shared() after cp_async_wait, then the barrier");
        if (b->writes != W::none || (b->generic && b->fenced && !b->late)) {
            b->writes = W::none, b->generic = false;
            continue;
        }
        if (b->generic && b->written.known())
            late_or(b->late, e.place,
                    b->late
                        ? fmt::format("wgmma reads `{}` through the async proxy, and the fence comes after the barrier: the writers "
                                      "have none of their own",
                                      e_.shown(e.key))
                        : fmt::format("wgmma reads `{}` through the async proxy, and no fence follows the writes to it", e_.shown(e.key)),
                    "fence_view_async_shared() after the writes, then a barrier, then the product");
        b->generic = false;
    }
}

// A tile that TMA stores read is written again.
void Walker::stored(const Event& e, State& s) {
    if (e.key.empty() || lost_.count(e.key)) return;
    for (Buffer* b : touched(s, e, false)) {
        const int group = std::exchange(b->stored, 0);
        if (group > 0)
            say(Code::cute_group, e.place, fmt::format("`{}` is written while a TMA store may still read it", e_.shown(e.key)),
                "tma_store_wait<0>() by the thread that issued the store, then a barrier, before the next write");
        if (group < 0 && e.own != "one thread")
            say(Code::cute_sync, e.place,
                fmt::format("`{}` is written before the other threads can know that the TMA store has read it", e_.shown(e.key)),
                "a barrier between tma_store_wait, which is for the thread that issued the store, and the next write");
    }
}

void Walker::read(const Event& e, State& s) {
    using W = Buffer::Writes;
    for (Buffer* b : touched(s, e, true)) {
        if (b->writes == W::issued || b->writes == W::committed)
            say(Code::cute_group, e.place, fmt::format("`{}` is read while cp.async may still be writing it", e_.shown(e.key)),
                b->writes == W::issued ? "call cp_async_fence() after the copies, cp_async_wait<0>() and __syncthreads() before the read"
                                       : "call cp_async_wait<N>() for that group, then __syncthreads(), before the read");
        else if (e.update && b->updates && b->writes == W::plain) continue;
        else if (b->writes == W::arrived || b->writes == W::plain) {
            const Apart other = apart(b->written_by, e, threads_);
            if (other == Apart::block)
                say(Code::cute_sync, e.place, fmt::format("`{}` is read without a barrier after other threads wrote it", e_.shown(e.key)),
                    b->writes == W::arrived ? "__syncthreads() must come after cp_async_wait: the wait is for this thread's copies only"
                                            : "__syncthreads() between the write and the read");
            else if (other == Apart::warp && !b->warp_synced)
                remark(Code::cute_sync, e.place,
                       fmt::format("`{}` is read after other threads of the warp wrote it, and nothing orders them", e_.shown(e.key)),
                       "__syncwarp() between the write and the read");
        }
        if (e.update) continue;  // what is added to is this thread's
        if (e.own.empty() || e.own != b->written_own) b->writes = W::none;
        const bool mixed = b->was_read && (b->read_own != e.own || b->read_by.dealt != e.dealt);
        b->read_own = mixed ? "" : e.own;
        b->read_by = e, b->read_by.own = b->read_own;
        if (mixed) b->read_by.dealt = nullptr;
        b->was_read = true, b->read = e.place;
    }
}

// What was written before it is there for the others, and nobody reads any more.
void Walker::barrier_of_all(State& s) {
    using W = Buffer::Writes;
    for (auto& [key, list] : s.buffers) {
        for (Buffer& b : list) {
            b.was_read = false;
            if (b.stored < 0) b.stored = 0;
            if (b.fenced) b.generic = b.fenced = b.late = false;
            if (b.writes == W::arrived || b.writes == W::plain) b.writes = W::none;
        }
    }
}

// A pipeline's calls: what the text tells of them in its order. Their states and arrivals are the skeleton's.
void Walker::pipeline_event(const Event& e, State& s) {
    s.brought.clear();
    if (s.initialised.erase(e.key) != 0)
        say(Code::cute_sync, e.place,
            fmt::format("`{}` is used before the other threads can know that its barriers are initialised", e.key),
            "__syncthreads() after the pipeline is made (a cluster: cluster_arrive_relaxed() and cluster_wait())");
    if (e.kind == Event::Kind::pipe_acquire && e.constant) s.expected[e.key + ".full"] += e.number, bytes_at_[e.key + ".full"] = e.place;
}

void Walker::product_event(const Event& e, State& s) {
    if (e.kind == Event::Kind::arrive) s.arrived = true;
    if (e.kind == Event::Kind::product) {
        if (!s.arrived)
            say(Code::cute_wgmma, e.place, "a wgmma without warpgroup_arrive() before it: its registers and shared memory are not ordered",
                "call warpgroup_arrive() before the first gemm of a batch");
        s.in_flight[e.key] = 0;
        s.uncommitted_product = true;
    }
    if (e.kind == Event::Kind::wg_commit) {
        ++s.groups;
        for (auto& [name, group] : s.in_flight) {
            if (group == 0) group = s.groups;
        }
        s.uncommitted_product = false, s.arrived = false;
    }
    if (e.kind == Event::Kind::wg_wait) {
        if (s.uncommitted_product)
            say(Code::cute_wgmma, e.place, "warpgroup_wait does not cover the wgmmas before it: they are not committed",
                "call warpgroup_commit_batch() after the gemms");
        std::erase_if(s.in_flight, [&](const auto& f) { return e.number >= 0 && f.second > 0 && f.second <= s.groups - e.number; });
    }
    if (e.kind == Event::Kind::use && s.in_flight.count(e.key)) {
        say(Code::cute_wgmma, e.place, fmt::format("`{}` is used while wgmma may still write it", e.key), "call warpgroup_wait<0>() first");
        s.in_flight.erase(e.key);
    }
}

void Walker::barrier_event(const Event& e, State& s, const std::vector<const Node*>& loops) {
    if (e.kind == Event::Kind::bar_init) s.initialised.insert(e.key);
    if (e.kind == Event::Kind::bar_expect) {
        if (e.constant) s.expected[e.key] += e.number;
        bytes_at_[e.key] = e.place;
    }
    if (e.kind == Event::Kind::tma_load) {
        if (!e.key.empty() && !expects_.count(e.key) && inits_.count(e.key))
            say(Code::cute_barrier, e.place,
                fmt::format("nobody tells `{}` how many bytes TMA will bring: its phase never completes", e.key),
                "arrive_and_expect_tx(bytes) by the thread that issues the copies");
        loads_ = true;
        if (!e.key.empty() && !e.tile.empty()) s.brought[e.tile] = e.key;
        if (!e.key.empty())
            s.loaded[e.key] = e.number < 0 ? -1 : s.loaded.count(e.key) && s.loaded[e.key] < 0 ? -1 : s.loaded[e.key] + e.number;
    }
    if (e.kind != Event::Kind::bar_wait) return;
    s.brought.clear();
    if (!e.key.empty() && !inits_.count(e.key) && !inits_.empty())
        say(Code::cute_barrier, e.place, fmt::format("`{}` is waited for and never initialised in this kernel", e.key),
            "initialise it by one thread, then __syncthreads()");
    if (s.initialised.count(e.key))
        say(Code::cute_sync, e.place, fmt::format("`{}` is waited for before the other threads can know that it is initialised", e.key),
            "__syncthreads() after the initialisation");
    s.initialised.erase(e.key);
    if (s.expected.count(e.key) && s.loaded.count(e.key) && s.loaded[e.key] > 0 && s.expected[e.key] != s.loaded[e.key] &&
        told_.insert(e.key).second)
        say(Code::cute_barrier, e.place,
            fmt::format("`{}` expects {} bytes, and the copies bring {}", e.key, s.expected[e.key], s.loaded[e.key]),
            "expect the bytes of all boxes that arrive on the barrier");
    s.expected.erase(e.key), s.loaded.erase(e.key);
    if (loops.empty() || !e.blocks) return;
    // In a branch that is taken in some rounds: how often is not looked at here.
    for (const Node* branch : loops) {
        if (branch->kind != Node::Kind::branch) continue;
        for (const Node* loop : loops) {
            if (std::any_of(branch->asks.begin(), branch->asks.end(), [&](const std::string& n) { return loop->changed.count(n) != 0; })) {
                rounds_ = true;
                return;
            }
        }
    }
    if (!in_loop(loops)) return;
    const bool changes = std::any_of(e.names.begin(), e.names.end(), [&](const std::string& n) {
        return std::any_of(loops.begin(), loops.end(), [&](const Node* l) { return l->changed.count(n) != 0; });
    });
    if (e.constant || (!e.names.empty() && !changes)) {
        say(Code::cute_barrier, e.place,
            fmt::format("the loop waits for phase {} of `{}` every time: the second wait returns at once or never", e.phase, e.key),
            "flip the phase each time the barrier is used again: phase ^= 1");
    }
}

void Walker::write(const Event& e, State& s) {
    using W = Buffer::Writes;
    stored(e, s);
    for (Buffer* b : touched(s, e, true)) {
        const Apart other = b->was_read ? apart(b->read_by, e, threads_) : Apart::none;
        if (other == Apart::block)
            say(Code::cute_sync, e.place, fmt::format("`{}` is written while other threads may still read what it held", e_.shown(e.key)),
                "__syncthreads() between the last read and the next write");
        else if (other == Apart::warp && !b->warp_synced)
            remark(Code::cute_sync, e.place,
                   fmt::format("`{}` is written while other threads of the warp may still read what it held", e_.shown(e.key)),
                   "__syncwarp() between the last read and the next write");
        b->written_by = e, b->warp_synced = false;
        b->was_read = false;
        b->updates = e.update && (b->writes == W::none || b->updates);
        b->elements = e.element && (b->writes == W::none || b->elements);
        b->writes = e.async ? W::issued : W::plain;
        b->written_own = e.own;
        b->copied = e.async, b->generic = !e.async, b->fenced = b->late = false;
        b->written = e.place;
    }
}

void Walker::tma_store(const Event& e, State& s) {
    using W = Buffer::Writes;
    for (Buffer* b : lost_.count(e.key) ? std::vector<Buffer*>{} : touched(s, e, true)) {
        if (b->generic && b->written.known() && (!b->fenced || b->late))
            late_or(b->late, e.place,
                    b->late ? fmt::format("TMA reads `{}` through the async proxy, and the fence comes after the barrier: the "
                                          "writers have none of their own",
                                          e_.shown(e.key))
                            : fmt::format("TMA reads `{}` through the async proxy, and no fence follows the writes to it", e_.shown(e.key)),
                    "tma_store_fence() after the writes, then a barrier, then the store");
        else if (b->writes == W::plain)
            say(Code::cute_sync, e.place, fmt::format("TMA reads `{}` before all threads have written it", e_.shown(e.key)),
                "a barrier between the writes and the store");
        b->generic = false;
    }
    for (Buffer* b : lost_.count(e.key) ? std::vector<Buffer*>{} : touched(s, e, true)) b->stored = s.stores + 1, b->store = e.place;
    s.bulk_open = true, s.bulk_waited = false, s.bulk = e.place;
}

void Walker::event(const Event& e, State& s, const std::vector<const Node*>& loops, bool divergent) {
    using W = Buffer::Writes;
    const bool of_tensor = e.kind == Event::Kind::write || e.kind == Event::Kind::read || e.kind == Event::Kind::tma_store;
    if (e.kind == Event::Kind::lost) return;
    ++report_.checks;
    if (of_tensor && lost_.count(e.key) && e.kind != Event::Kind::tma_store) return;
    switch (e.kind) {
        case Event::Kind::write: write(e, s); break;
        case Event::Kind::read: read(e, s); break;
        case Event::Kind::product_read: product_read(e, s); break;
        case Event::Kind::leave: may_leave_ |= divergent; break;
        case Event::Kind::pipe_make:
            ++pipelines_;
            s.initialised.insert(e.key);
            break;
        case Event::Kind::pipe_acquire:
        case Event::Kind::pipe_commit:
        case Event::Kind::pipe_wait:
        case Event::Kind::pipe_release:
        case Event::Kind::pipe_tail:
            pipeline_event(e, s);
            barrier_of_all(s);
            break;
        case Event::Kind::named:
        case Event::Kind::sync:
            if (e.kind == Event::Kind::named && !e.blocks) break;
            left_ |= may_leave_;
            if (e.constant) s.brought.clear();  // a pipeline's wait, perhaps
            if (divergent && !e.constant && e.kind == Event::Kind::sync)
                say(Code::cute_divergent, e.place,
                    "a barrier of the whole block in a branch, or a turn of a loop, that some threads do not take", "move it out of there");
            barrier_of_all(s);
            s.initialised.clear();
            break;
        case Event::Kind::warp_sync:
            for (auto& [key, list] : s.buffers)
                for (Buffer& b : list)
                    if (b.warp_synced = true; b.elements && b.writes == W::plain) b.writes = W::none, b.was_read = false;
            break;
        case Event::Kind::cp_commit:
            ++s.commits;
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) {
                    if (b.writes == W::issued) b.writes = W::committed, b.group = s.commits;
                }
            }
            break;
        case Event::Kind::cp_wait: {
            if (s.commits == 0 && copies_async_)
                say(Code::cute_group, e.place, "cp_async_wait before any cp_async_fence: it waits for nothing",
                    "call cp_async_fence() after the copies");
            bool covered = false, open = false;
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list) {
                    if (b.writes == W::committed && e.number >= 0 && b.group <= s.commits - e.number) b.writes = W::arrived, covered = true;
                    open |= b.writes == W::committed;
                }
            }
            if (!covered && open && e.number > 0 && s.commits <= e.number && !in_loop(loops))
                say(Code::cute_group, e.place,
                    fmt::format("cp_async_wait<{}> after {} group{}: it waits for nothing", e.number, s.commits, s.commits == 1 ? "" : "s"),
                    "cp_async_wait<N> leaves the last N groups in flight; use cp_async_wait<0>()");
            break;
        }
        case Event::Kind::fence:
            for (auto& [key, list] : s.buffers) {
                // A fence is for the writes of its own thread: those of others need a barrier after it.
                for (Buffer& b : list)
                    b.late = b.generic && b.writes == W::none, b.fenced = b.generic, b.copied = b.copied && b.writes == W::none;
            }
            break;
        case Event::Kind::tma_store: tma_store(e, s); break;
        case Event::Kind::bulk_commit: s.bulk_open = false, ++s.stores; break;
        case Event::Kind::bulk_wait:
            s.bulk_waited = !s.bulk_open;
            for (auto& [key, list] : s.buffers) {
                for (Buffer& b : list)
                    if (b.stored > 0 && (e.number < 0 || b.stored <= s.stores - e.number)) b.stored = -1;
            }
            break;
        case Event::Kind::bar_init:
        case Event::Kind::bar_expect:
        case Event::Kind::tma_load: barrier_event(e, s, loops); break;
        case Event::Kind::bar_wait:
            barrier_event(e, s, loops);
            for (auto& [key, list] : s.buffers) {  // what was written before the arrivals is there
                for (Buffer& b : list) {
                    b.was_read = false;
                    if (b.stored < 0) b.stored = 0;
                    if (b.fenced) b.generic = b.fenced = b.late = false;
                    if (b.writes == W::plain) b.writes = W::none;
                }
            }
            break;
        default: product_event(e, s);
    }
}

}  // namespace

void walk_order(const Evaluator& evaluator, DiagnosticSink& sink, Report& report, const std::vector<Node>& body, const KernelText& kernel) {
    Walker(evaluator, sink, report, kernel.threads).kernel(body, kernel.name, kernel.place, kernel.followed, kernel.why_not);
}

}  // namespace tw::cute
