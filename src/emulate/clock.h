// Vector clocks and the shadow of a memory: who wrote and read each granule last, and may this access follow?
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tw::emulate {

// Keeps what was freed for the next of the same size: a run makes and drops clocks all the time, and all are as long as there are actors.
template <class T>
struct Recycled {
    using value_type = T;
    Recycled() = default;
    template <class U>
    Recycled(const Recycled<U>&) {}
    T* allocate(std::size_t n) {
        auto& kept = spare(n);
        if (!kept.empty()) {
            T* p = kept.back();
            kept.pop_back();
            return p;
        }
        return static_cast<T*>(::operator new(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) {
        auto& kept = spare(n);
        if (kept.size() < 4096) kept.push_back(p);
        else ::operator delete(p);
    }
    friend bool operator==(const Recycled&, const Recycled&) { return true; }

private:
    struct Kept : std::vector<T*> {
        ~Kept() {
            for (T* p : *this) ::operator delete(p);
        }
    };
    static std::vector<T*>& spare(std::size_t n) {
        static thread_local std::unordered_map<std::size_t, Kept> by_size;
        static thread_local std::size_t last = 0;
        static thread_local Kept* last_kept = nullptr;
        if (!last_kept || n != last) last = n, last_kept = &by_size[n];
        return *last_kept;
    }
};

using Clock = std::vector<std::uint32_t, Recycled<std::uint32_t>>;

inline void join(Clock& into, const Clock& from) {
    if (into.size() < from.size()) into.resize(from.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

inline bool covers(const Clock& known, const Clock& of) {
    for (std::size_t i = 0; i < of.size(); ++i) {
        if (of[i] > (i < known.size() ? known[i] : 0)) return false;
    }
    return true;
}

// Happens-before knowledge of one actor: `order` for all accesses, `fenced` for generic writes made visible to the async proxy, `read` for
// generic reads that a fence of the reading threads themselves has ended (by warp; empty where the copy engine fills nothing that they
// read), `waits` for the mbarrier waits and the arrivals at barriers that each warp has passed (skeleton runs).
struct Knowledge {
    Clock order, fenced, read, waits;
    void join_from(const Knowledge& other) {
        join(order, other.order);
        join(fenced, other.fenced);
        join(read, other.read);
        join(waits, other.waits);
    }
};

// Who of an actor accesses: a lane of a warp, or one of these.
inline constexpr std::uint8_t several_lanes = 0xfe;  // two lanes at least: ordered with nobody of the warp but by a warp-level barrier
inline constexpr std::uint8_t no_lane = 0xff;        // asynchronous work, or the warp as one

struct Access {
    std::uint16_t actor = 0xffff;
    std::uint8_t lane = 0;
    bool async_proxy = false;
    bool asynchronous = false;      // a copy: two of one actor are in no order by themselves
    bool fills = false;             // the copy engine writes shared memory
    std::uint32_t time = 0;         // the actor's own clock component
    std::uint32_t warp_epoch = 0;   // bumped by warp-level barriers
    std::uint32_t lanes_clock = 0;  // the warp's clock up to which every lane of it knows what the others did
    std::uint64_t serial = 0;       // which execution of a statement: lanes that write copies of one value together do not collide
    const ir::Stmt* stmt = nullptr;
    std::uint16_t issuer = 0xffff;  // of a copy that each lane issues for itself: the warp. A lane knows its own accesses before the issue,
                                    // not the other lanes'
    // A thread's cp.async wait covers its own copies; those of the warp's other lanes need a warp-level barrier after it.
    std::uint16_t copies_actor = 0xffff;
    std::uint32_t own_copies = 0;  // the accessing thread has waited for its copies up to this time
    std::uint32_t snapshot = 0;    // loop variables at that time (skeleton runs), or the event (with a history)
};

struct Granule {
    Access write;
    std::vector<Access> reads;  // at most one per (actor, lane class)
    bool initialised = false;
    bool atomic = false;  // last write was an atomic add
};

enum class Conflict : std::uint8_t { none, race, proxy, unfenced_read };

struct Finding {
    Conflict conflict = Conflict::none;
    Access other;
};

// May `now` (by an actor with knowledge `k`) follow `before`?
inline bool ordered(const Access& before, const Access& now, const Knowledge& k) {
    if (before.actor == 0xffff) return true;
    if (before.actor == now.actor) {
        if (!now.asynchronous) {
            if ((before.lane == now.lane && now.lane != several_lanes) || before.lane == no_lane || now.lane == no_lane) return true;
            return before.time <= now.lanes_clock || before.serial == now.serial;
        }
        if (before.serial == now.serial) return true;
    }
    if (before.actor == now.issuer) {
        // What the warp does after the issue, the copy may overtake, also what the issuing lane does.
        if (before.actor >= k.order.size() || k.order[before.actor] < before.time) return false;
        return (before.lane == now.lane && now.lane != several_lanes) || before.lane == no_lane || before.time <= now.lanes_clock;
    }
    if (before.actor == now.copies_actor && before.lane == now.lane && now.lane != several_lanes && before.time <= now.own_copies)
        return true;
    return before.actor < k.order.size() && k.order[before.actor] >= before.time;
}

class Shadow {
public:
    explicit Shadow(std::size_t granules = 0) : cells_(granules) {}
    std::size_t size() const { return cells_.size(); }
    // As new, but the lists keep their memory.
    void reset() {
        for (Granule& g : cells_) {
            g.write = Access{};
            g.reads.clear();
            g.initialised = g.atomic = false;
        }
    }
    Granule& at(std::size_t i) { return cells_[i]; }
    void resize(std::size_t cells) { cells_.resize(cells); }
    // A further cell with the record of this one.
    void split(std::size_t i) {
        Granule copy = cells_[i];
        cells_.push_back(std::move(copy));
    }

    Finding read(std::size_t i, const Access& now, const Knowledge& k) {
        Granule& g = cells_[i];
        if (!ordered(g.write, now, k)) return {Conflict::race, g.write};
        if (now.async_proxy && g.write.actor != 0xffff && !g.write.async_proxy &&
            !(g.write.actor < k.fenced.size() && k.fenced[g.write.actor] >= g.write.time)) {
            return {Conflict::proxy, g.write};
        }
        for (Access& r : g.reads) {
            if (r.actor == now.actor && (r.lane == now.lane || r.warp_epoch == now.warp_epoch)) {
                if (r.lane != now.lane) r.lane = several_lanes;
                r.time = now.time;
                r.warp_epoch = now.warp_epoch;
                r.stmt = now.stmt;
                r.snapshot = now.snapshot;
                return {};
            }
        }
        g.reads.push_back(now);
        return {};
    }

    Finding write(std::size_t i, const Access& now, const Knowledge& k) {
        Granule& g = cells_[i];
        if (!ordered(g.write, now, k)) return {Conflict::race, g.write};
        for (const Access& r : g.reads) {
            if (!ordered(r, now, k)) return {Conflict::race, r};
        }
        // An asynchronous write over generic data that was never fenced: the two proxies may reach memory in any order.
        if (now.async_proxy && g.write.actor != 0xffff && !g.write.async_proxy &&
            !(g.write.actor < k.fenced.size() && k.fenced[g.write.actor] >= g.write.time)) {
            return {Conflict::proxy, g.write};
        }
        // Over what ordinary loads read, where their threads executed no fence since: the loads may find it.
        if (now.fills) {
            for (const Access& r : g.reads) {
                if (!r.async_proxy && !(r.actor < k.read.size() && k.read[r.actor] >= r.time)) return {Conflict::unfenced_read, r};
            }
        }
        g.write = now;
        g.reads.clear();
        g.initialised = true;
        g.atomic = false;
        return {};
    }

private:
    std::vector<Granule> cells_;
};

// The shadow of a large memory of which one cluster touches little: pages exist where something was accessed since `reset`, so that
// starting a cluster costs what the cluster before it touched, not the size of the memory.
class PagedShadow {
public:
    explicit PagedShadow(std::size_t granules = 0) : page_of_((granules + page_size - 1) / page_size, -1) {}
    void reset() {
        for (std::size_t page : touched_) page_of_[page] = -1;
        touched_.clear();
        used_ = 0;
    }
    // The page that holds granule i, where it has number i % page_size.
    static constexpr std::size_t page_size = 256;
    Shadow& page(std::size_t i) {
        int& number = page_of_[i / page_size];
        if (number < 0) {
            number = static_cast<int>(used_++);
            if (static_cast<std::size_t>(number) == pages_.size()) pages_.emplace_back(page_size);
            else pages_[static_cast<std::size_t>(number)].reset();
            touched_.push_back(i / page_size);
        }
        return pages_[static_cast<std::size_t>(number)];
    }

private:
    std::vector<int> page_of_;   // -1: untouched
    std::vector<Shadow> pages_;  // the first `used_` are in use, the others keep their memory
    std::size_t used_ = 0;
    std::vector<std::size_t> touched_;
};

}  // namespace tw::emulate
