// A skeleton's threads, run beside one another: arrivals and phases of barriers, and clocks that tell what is ordered before what.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "cute/skeleton.h"

namespace tw::cute {
namespace {

// What a class knows of: the steps of every class, and the phases of every barrier that it has seen end.
using Clock = std::vector<std::int64_t>;
void learn(Clock& a, const Clock& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::max(a[i], b[i]);
}

struct Barrier {
    std::int64_t count = 0, pending = 0, ended = 0, before = 0;  // `before`: phases that ended before it was initialised again
    Clock brought;                                               // by the arrivals so far
    Span initialised;
};

struct Running {
    std::size_t at = 0;
    Clock clock;
    std::int64_t synced = 0;                       // its own steps before its last barrier of the block
    std::vector<int> issued;                       // tiles of cp.async, not committed
    std::vector<std::vector<std::size_t>> groups;  // fills by committed group
    std::size_t groups_done = 0;
    std::vector<int> products;  // tiles of wgmmas, not committed
    std::vector<std::vector<int>> product_groups;
    bool at_named = false;
};

struct Fill {
    int by = 0, barrier = -1;           // cp.async: no barrier
    std::int64_t phase = 0, done = -1;  // TMA: the phase that its bytes belong to; cp.async: the step of the wait
    Span place;
    int own = 0;
};

struct Reading {
    int by = 0;
    std::int64_t step = 0;
    Span place;
    int own = 0;
};

class Block {
public:
    explicit Block(const Skeleton& s) : s_(s), barriers_(s.objects.size()), named_(s.objects.size()), running_(s.classes.size()) {
        const std::size_t dims = s.classes.size() + s.objects.size();
        for (Running& r : running_) r.clock.assign(dims, 0);
        for (Barrier& b : barriers_) b.brought.assign(dims, 0);
        mixed_ = s.in_parts;
        // Ordinary stores are followed where some threads only write a tile and others only read it: who shares a tile may have its own
        // part of it.
        std::map<int, std::pair<std::set<std::size_t>, std::set<std::size_t>>> who;
        for (std::size_t c = 0; c < s.classes.size(); ++c) {
            for (const Op& o : s.classes[c].ops) {
                if (o.kind == Op::Kind::store) who[o.tile].first.insert(c);
                if (o.kind == Op::Kind::read || o.kind == Op::Kind::product) who[o.tile].second.insert(c);
                if (o.kind == Op::Kind::load || o.kind == Op::Kind::cp_fill) mixed_.insert(o.tile);
            }
        }
        for (const auto& [tile, by] : who) {
            const bool both = std::any_of(by.first.begin(), by.first.end(), [&](std::size_t c) { return by.second.count(c) != 0; });
            if (both || by.first.empty()) mixed_.insert(tile);
        }
    }

    std::vector<Finding> run() {
        named_counts();
        for (bool moved = true; moved && findings_.empty();) {
            moved = false;
            for (std::size_t c = 0; c < running_.size() && findings_.empty(); ++c) {
                while (findings_.empty() && running_[c].at < s_.classes[c].ops.size() && step(static_cast<int>(c))) moved = true;
            }
            moved |= meet();
        }
        if (findings_.empty()) stuck();
        return std::move(findings_);
    }

private:
    const Op& op(int c) const { return s_.classes[static_cast<std::size_t>(c)].ops[running_[static_cast<std::size_t>(c)].at]; }
    Running& of(int c) { return running_[static_cast<std::size_t>(c)]; }
    std::int64_t now(int c) { return of(c).clock[static_cast<std::size_t>(c)]; }
    bool over(int c) const { return running_[static_cast<std::size_t>(c)].at >= s_.classes[static_cast<std::size_t>(c)].ops.size(); }
    const std::string& name(int object) const { return s_.objects[static_cast<std::size_t>(object)]; }
    std::string threads(int c) const {
        const ThreadClass& k = s_.classes[static_cast<std::size_t>(c)];
        return k.threads == 1 ? fmt::format("thread {}", k.first) : fmt::format("{} threads from thread {} on", k.threads, k.first);
    }
    void say(Code code, Span place, std::string message, std::string hint) {
        findings_.push_back({code, place, std::move(message), std::move(hint)});
    }

    // All that meet at a named barrier must give it one number of threads.
    void named_counts() {
        std::map<int, std::int64_t> said;
        for (const ThreadClass& k : s_.classes) {
            for (const Op& o : k.ops) {
                if (o.kind != Op::Kind::named_wait && o.kind != Op::Kind::named_arrive) continue;
                const auto [it, fresh] = said.emplace(o.object, o.number);
                if (it->second == o.number || !findings_.empty()) continue;
                say(Code::cute_barrier, o.place,
                    fmt::format("{} is for {} threads here and for {} elsewhere", name(o.object), o.number, it->second),
                    "count all threads that sync or arrive at it, the same everywhere");
            }
        }
    }

    // One step of a class; false where it has to wait for others.
    bool step(int c) {
        const Op& o = op(c);
        Running& r = of(c);
        ++r.clock[static_cast<std::size_t>(c)];
        using K = Op::Kind;
        switch (o.kind) {
            case K::init: {
                Barrier& b = barriers_[static_cast<std::size_t>(o.object)];
                b.count = b.pending = o.number, b.initialised = o.place, b.before = b.ended;
                break;
            }
            case K::arrive: arrive(c, o); break;
            case K::wait:
                if (!wait(c, o)) return false;
                break;
            case K::sync:
            case K::wg_wait:
            case K::named_wait: return false;  // meet() takes them on
            case K::named_arrive: {
                Named& n = named_[static_cast<std::size_t>(o.object)];
                n.arrived += s_.classes[static_cast<std::size_t>(c)].threads;
                n.brought.resize(r.clock.size());
                learn(n.brought, r.clock);
                break;
            }
            case K::load: load(c, o); break;
            case K::cp_fill:
                overwritten(c, o);
                r.issued.push_back(static_cast<int>(fills_.size()));
                fills_.push_back({c, -1, 0, -1, o.place, o.own});
                last_fill_[o.tile] = fills_.size() - 1;
                break;
            case K::store:
                if (mixed_.count(o.tile)) break;
                overwritten(c, o);
                stores_[o.tile][c] = {c, -1, 0, now(c), o.place};
                break;
            case K::cp_commit: {
                std::vector<std::size_t> group;
                for (const int f : r.issued) group.push_back(static_cast<std::size_t>(f));
                r.issued.clear();
                r.groups.push_back(group);
                break;
            }
            case K::cp_wait:
                while (r.groups_done + static_cast<std::size_t>(o.number) < r.groups.size()) {
                    for (const std::size_t f : r.groups[r.groups_done]) fills_[f].done = now(c);
                    ++r.groups_done;
                }
                break;
            case K::read:
                is_there(c, o);
                readings_[o.tile].push_back({c, now(c), o.place, o.own});
                break;
            case K::product:
                is_there(c, o);
                r.products.push_back(o.tile);
                readings_[o.tile].push_back({c, INT64_MAX, o.place});
                break;
            case K::wg_commit: r.product_groups.push_back(std::exchange(r.products, {})); break;
        }
        if (findings_.empty()) ++r.at;
        return findings_.empty();
    }

    void arrive(int c, const Op& o) {
        Barrier& b = barriers_[static_cast<std::size_t>(o.object)];
        const std::int64_t threads_of = s_.classes[static_cast<std::size_t>(c)].threads;
        if (b.count <= 0) return;  // said by wait, if somebody does
        if (threads_of > b.count)
            return say(Code::cute_barrier, o.place,
                       fmt::format("{} arrive at `{}`, which is initialised for {}: its phase ends before the last of them", threads(c),
                                   name(o.object), b.count),
                       b.count == 1 ? "let one thread arrive (threadIdx.x == 0, elect_one_sync()), or initialise it for all of them"
                                    : "initialise it for as many arrivals as a phase gets");
        learn(b.brought, of(c).clock);
        b.pending -= threads_of;
        if (b.pending > 0) return;
        b.pending += b.count;
        ++b.ended;
        b.brought[s_.classes.size() + static_cast<std::size_t>(o.object)] = b.ended;
    }

    bool wait(int c, const Op& o) {
        Barrier& b = barriers_[static_cast<std::size_t>(o.object)];
        if (b.count <= 0 || ((b.ended - b.before) & 1) == (o.number & 1)) {
            --of(c).clock[static_cast<std::size_t>(c)];
            return false;
        }
        if (b.ended > 0) {
            Clock seen = b.brought;
            seen[s_.classes.size() + static_cast<std::size_t>(o.object)] = b.ended;
            learn(of(c).clock, seen);
        }
        return true;
    }

    void load(int c, const Op& o) {
        overwritten(c, o);
        fills_.push_back({c, o.object, barriers_[static_cast<std::size_t>(o.object)].ended, -1, o.place});
        last_fill_[o.tile] = fills_.size() - 1;
    }

    // A tile is filled: whoever read what it held must be known to have done so.
    void overwritten(int c, const Op& o) {
        for (const Reading& reading : readings_[o.tile]) {
            if (reading.own != 0 && reading.own == o.own && reading.by == c) continue;
            const bool other_threads = reading.by != c || s_.classes[static_cast<std::size_t>(c)].threads > 1;
            if (!other_threads) {
                if (reading.step != INT64_MAX) continue;
            } else if (reading.by == c && o.kind == Op::Kind::cp_fill ? reading.step <= of(c).synced
                                                                      : of(c).clock[static_cast<std::size_t>(reading.by)] >= reading.step)
                continue;
            return say(o.kind != Op::Kind::load ? Code::cute_sync : Code::cute_barrier, o.place,
                       fmt::format("`{}` is filled again while {} may still read it{}", s_.tiles[static_cast<std::size_t>(o.tile)],
                                   threads(reading.by), reading.step == INT64_MAX ? ": the wgmma that does is not waited for" : ""),
                       o.kind == Op::Kind::store ? "the readers must arrive at a barrier after their last read, and the writers wait for it"
                       : o.kind == Op::Kind::cp_fill
                           ? "__syncthreads() between the last read of the stage and the copy into it"
                           : "wait for a barrier at which every reader arrives after its last read (and after warpgroup_wait)");
        }
        readings_[o.tile].clear();
    }

    // What is read must have arrived, and the reader must know.
    void is_there(int c, const Op& o) {
        if (const auto written = stores_.find(o.tile); written != stores_.end()) {
            for (const auto& [by, f] : written->second) {
                if (of(c).clock[static_cast<std::size_t>(by)] >= f.done) continue;
                return say(
                    Code::cute_sync, o.place,
                    fmt::format("`{}` is read while {} may still be writing it", s_.tiles[static_cast<std::size_t>(o.tile)], threads(by)),
                    "the writers must arrive at a barrier after their last store, and the readers wait for it");
            }
            return;
        }
        if (!mixed_.count(o.tile) && wanted_store(o.tile))
            return say(
                Code::cute_sync, o.place,
                fmt::format("`{}` is read before anything is there: nobody has written it yet", s_.tiles[static_cast<std::size_t>(o.tile)]),
                "wait for the barrier at which its writers arrive");
        const auto last = last_fill_.find(o.tile);
        if (last == last_fill_.end()) {
            if (wanted(o.tile))
                say(Code::cute_barrier, o.place,
                    fmt::format("`{}` is read before anything is there: nobody has filled it yet",
                                s_.tiles[static_cast<std::size_t>(o.tile)]),
                    "a wait for a parity returns at once while the phase before counts as complete: the first wait for data takes parity "
                    "0");
            return;
        }
        const Fill& f = fills_[last->second];
        if (f.barrier >= 0) {
            if (of(c).clock[s_.classes.size() + static_cast<std::size_t>(f.barrier)] > f.phase) return;
            return say(
                Code::cute_barrier, o.place,
                fmt::format("`{}` is read while TMA may still be writing it: the phase of `{}` that its bytes belong to is not waited for",
                            s_.tiles[static_cast<std::size_t>(o.tile)], name(f.barrier)),
                "the first wait for data takes parity 0, and the parity flips each time the ring comes round");
        }
        const bool known = f.done >= 0 && (f.by == c ? f.done <= of(c).synced || s_.classes[static_cast<std::size_t>(c)].threads == 1 ||
                                                           (f.own != 0 && f.own == o.own)
                                                     : of(c).clock[static_cast<std::size_t>(f.by)] >= f.done);
        if (known) return;
        say(f.done < 0 ? Code::cute_group : Code::cute_sync, o.place,
            fmt::format("`{}` is read {}", s_.tiles[static_cast<std::size_t>(o.tile)],
                        f.done < 0 ? "while cp.async may still be writing it: its group is not waited for"
                                   : "with no barrier after the wait for its copies"),
            f.done < 0 ? "cp_async_wait<N> leaves the last N groups in flight: count the groups that are committed after this one"
                       : "__syncthreads() after cp_async_wait");
    }

    bool wanted_store(int tile) const {
        for (const ThreadClass& c : s_.classes)
            for (const Op& o : c.ops)
                if (o.tile == tile && o.kind == Op::Kind::store) return true;
        return false;
    }

    // Is it filled at some time?
    bool wanted(int tile) const {
        for (const ThreadClass& c : s_.classes)
            for (const Op& o : c.ops)
                if (o.tile == tile && (o.kind == Op::Kind::load || o.kind == Op::Kind::cp_fill)) return true;
        return false;
    }

    // A wait for wgmmas ends for the four warps together.
    void end_products(int c) {
        Running& r = of(c);
        const Op& o = op(c);
        while (static_cast<std::int64_t>(r.product_groups.size()) > o.number) {
            for (const int tile : r.product_groups.front()) {
                for (Reading& reading : readings_[tile])
                    if (reading.by == c && reading.step == INT64_MAX) reading.step = now(c);
            }
            // A tile that a later group reads too is still read.
            r.product_groups.erase(r.product_groups.begin());
            for (std::size_t g = 0; g < r.product_groups.size(); ++g) {
                for (const int tile : r.product_groups[g]) readings_[tile].push_back({c, INT64_MAX, o.place});
            }
        }
    }
    bool meet_warpgroups() {
        std::map<std::int64_t, std::vector<int>> at;
        std::map<std::int64_t, std::size_t> all;
        for (int c = 0; c < static_cast<int>(running_.size()); ++c) {
            const ThreadClass& k = s_.classes[static_cast<std::size_t>(c)];
            const auto rest = k.ops.begin() + static_cast<std::ptrdiff_t>(of(c).at);
            if (std::none_of(rest, k.ops.end(), [](const Op& o) { return o.kind == Op::Kind::wg_wait; })) continue;
            ++all[k.first / 128];
            if (op(c).kind == Op::Kind::wg_wait) at[k.first / 128].push_back(c);
        }
        for (const auto& [warpgroup, classes] : at) {
            if (classes.size() < all[warpgroup]) continue;
            Clock both = of(classes[0]).clock;
            for (const int c : classes) learn(both, of(c).clock);
            for (const int c : classes) {
                of(c).clock = both;
                end_products(c);
                ++of(c).clock[static_cast<std::size_t>(c)];
                ++of(c).at;
            }
            // What the warpgroup has read, each of its threads knows.
            for (const int c : classes) learn(both, of(c).clock);
            for (const int c : classes) of(c).clock = both;
            return true;
        }
        return false;
    }

    // Barriers of the block and named ones: taken when all that they are for have come.
    bool meet() {
        std::vector<int> all;
        bool complete = true;
        for (int c = 0; c < static_cast<int>(running_.size()); ++c) {
            if (over(c)) continue;
            if (op(c).kind == Op::Kind::sync) all.push_back(c);
            else complete = false;
        }
        if (complete && !all.empty()) return together(all), pass(all), true;
        if (meet_warpgroups()) return true;
        std::map<int, std::vector<int>> at;
        for (int c = 0; c < static_cast<int>(running_.size()); ++c)
            if (!over(c) && op(c).kind == Op::Kind::named_wait) at[op(c).object].push_back(c);
        for (const auto& [object, classes] : at) {
            std::int64_t come = named_[static_cast<std::size_t>(object)].arrived;
            for (const int c : classes) come += s_.classes[static_cast<std::size_t>(c)].threads;
            if (come < op(classes[0]).number) continue;
            Named& n = named_[static_cast<std::size_t>(object)];
            n.arrived = 0;
            n.brought.resize(of(classes[0]).clock.size());
            learn(of(classes[0]).clock, std::exchange(n.brought, {}));
            return pass(classes), true;
        }
        return false;
    }
    // The threads of a block's barrier are at one of the text, unless those of roles have as many of them.
    void together(const std::vector<int>& classes) {
        const auto syncs = [&](int c) {
            const auto& ops = s_.classes[static_cast<std::size_t>(c)].ops;
            return std::count_if(ops.begin(), ops.end(), [](const Op& o) { return o.kind == Op::Kind::sync; });
        };
        for (const int c : classes) {
            if (op(c).place.begin == op(classes[0]).place.begin || syncs(c) == syncs(classes[0])) continue;
            const int more = syncs(c) > syncs(classes[0]) ? c : classes[0];
            return say(
                Code::cute_divergent, op(more).place,
                fmt::format("{} come to this barrier of the whole block, and others to the next one: they do not meet", threads(more)),
                "move it out of the branch, or use a named barrier for the threads of it");
        }
    }
    void pass(const std::vector<int>& classes) {
        Clock both = of(classes[0]).clock;
        for (const int c : classes) learn(both, of(c).clock);
        for (const int c : classes) {
            of(c).clock = both;
            of(c).synced = now(c);
            ++of(c).clock[static_cast<std::size_t>(c)];
            ++of(c).at;
        }
    }

    // How near a class's wait is to the cause, where nobody can go on: arrivals that are too few, then a slot that is never free, then
    // data that never comes. Less is nearer; nothing for who does not wait for an mbarrier.
    std::optional<int> nearness(int c) const {
        if (over(c) || op(c).kind != Op::Kind::wait) return std::nullopt;
        const Op& o = op(c);
        const Barrier& b = barriers_[static_cast<std::size_t>(o.object)];
        if (b.count <= 0) return std::nullopt;
        if (b.count != b.pending) return 0;
        for (const ThreadClass& k : s_.classes)
            for (const Op& other : k.ops)
                if (other.kind == Op::Kind::load && other.object == o.object) return 2;
        return 1;
    }

    // Nobody can go on: whoever waits says why.
    void stuck() {
        int nearest = -1, at_sync = -1;
        for (int c = 0; c < static_cast<int>(running_.size()); ++c) {
            const auto near = nearness(c);
            if (near && (nearest < 0 || *near < *nearness(nearest))) nearest = c;
            if (!over(c) && op(c).kind == Op::Kind::sync) at_sync = c;
        }
        for (int c = 0; nearest < 0 && c < static_cast<int>(running_.size()); ++c) {
            if (over(c) || op(c).kind != Op::Kind::named_wait) continue;
            std::int64_t come = named_[static_cast<std::size_t>(op(c).object)].arrived;
            for (int k = 0; k < static_cast<int>(running_.size()); ++k)
                if (!over(k) && op(k).kind == Op::Kind::named_wait && op(k).object == op(c).object)
                    come += s_.classes[static_cast<std::size_t>(k)].threads;
            return say(Code::cute_barrier, op(c).place,
                       fmt::format("{}: this wait at {} never ends: it is for {} threads, and {} come", threads(c), name(op(c).object),
                                   op(c).number, come),
                       "as many threads must sync or arrive at it, each time, as its number says");
        }
        if (nearest < 0) return;
        const Op& o = op(nearest);
        const Barrier& b = barriers_[static_cast<std::size_t>(o.object)];
        if (at_sync >= 0)
            return say(Code::cute_divergent, op(at_sync).place,
                       fmt::format("{} are at this barrier of the whole block, and {} at a wait for `{}`: neither goes on",
                                   threads(at_sync), threads(nearest), name(o.object)),
                       "no barrier of the whole block where threads have different work");
        const std::int64_t come = b.count - b.pending;
        if (come > 0)
            return say(Code::cute_barrier, o.place,
                       fmt::format("{}: this wait for `{}` never ends: it is initialised for {} arrivals, and its phase gets {}",
                                   threads(nearest), name(o.object), b.count, come),
                       "initialise it for the arrivals of one phase: threads that call arrive, one for arrive_and_expect_tx");
        const std::string state = b.ended == 0 ? "no phase of it has ended" : fmt::format("{} of its phases ended", b.ended);
        say(Code::cute_barrier, o.place,
            fmt::format("{}: this wait for parity {} of `{}` never ends: {}, and nobody arrives any more", threads(nearest), o.number & 1,
                        name(o.object), state),
            b.ended == 0
                ? "whoever waits for a slot to be free before anybody has used it begins with parity 1, whoever waits for data with 0"
                : "both sides must use the ring's slots in one order and flip the parity each time it comes round");
    }

    struct Named {
        std::int64_t arrived = 0;
        Clock brought;
    };
    const Skeleton& s_;
    std::vector<Barrier> barriers_;
    std::vector<Named> named_;
    std::vector<Running> running_;
    std::vector<Fill> fills_;
    std::map<int, std::size_t> last_fill_;
    std::map<int, std::vector<Reading>> readings_;
    std::set<int> mixed_;                        // tiles whose ordinary stores are not followed
    std::map<int, std::map<int, Fill>> stores_;  // of a tile, by class: the last one
    std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> run_skeleton(const Skeleton& skeleton) {
    // Bytes come after the arrival that expects them: copies of the same phase are moved before it.
    Skeleton moved = skeleton;
    for (ThreadClass& c : moved.classes) {
        for (std::size_t i = 0; i < c.ops.size(); ++i) {
            if (c.ops[i].kind != Op::Kind::arrive) continue;
            std::size_t to = i;
            for (std::size_t j = i + 1; j < c.ops.size(); ++j) {
                const Op& o = c.ops[j];
                if (o.kind == Op::Kind::load && o.object == c.ops[to].object) {
                    std::rotate(c.ops.begin() + static_cast<std::ptrdiff_t>(to), c.ops.begin() + static_cast<std::ptrdiff_t>(j),
                                c.ops.begin() + static_cast<std::ptrdiff_t>(j) + 1);
                    ++to;
                } else if (o.kind != Op::Kind::load && !(o.kind == Op::Kind::arrive && o.object != c.ops[to].object)) break;
            }
            i = to;
        }
    }
    return Block(moved).run();
}

}  // namespace tw::cute
