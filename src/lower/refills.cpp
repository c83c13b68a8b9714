// Step 13, refills: a proxy fence between ordinary reads of shared memory and the barrier after which the copy engine may write there
// again.
//
// Loads of the generic proxy are in no order with writes of the asynchronous one without such a fence, whatever barriers stand between:
// on an H200 a load whose registers nobody had used yet came back with the next round's bytes (docs/trusted-base.md).
//
// Nothing stands on this choice: emulator and order check find a read with no fence after it.
#include "lower/refills.h"

#include <algorithm>
#include <set>
#include <utility>

#include "lower/steps.h"

namespace tw::lower {
namespace {

using ir::Region;
using ir::Stmt;

// Reads since the last fence, by what stands before the copies that overwrite what they read: the arrays of mbarriers that those copies
// wait for. An arrival at another array lets none of these copies begin.
struct Reads {
    bool any = false, everywhere = false;  // everywhere: a copy that waits for no mbarrier
    std::set<int> arrays;

    void add(const Reads& r) {
        any |= r.any, everywhere |= r.everywhere;
        arrays.insert(r.arrays.begin(), r.arrays.end());
    }
    bool end_at(const ir::BarrierRef& b) const { return any && (everywhere || arrays.count(b.array)); }
};

class Refills {
public:
    explicit Refills(const ir::Kernel& k) : k_(k), refilled_(k.buffers.size()) {
        find(k.body, false, {});
        for (const Writer& copy : writers_) {
            for (std::size_t b = 0; copy.engine && b < refilled_.size(); ++b) {
                if (!shares_bytes(copy.buffer, static_cast<int>(b)) || !follows_others(copy)) continue;
                refilled_[b].add({true, copy.after.empty(), copy.after});
            }
        }
    }

    bool any() const {
        return std::any_of(refilled_.begin(), refilled_.end(), [](const Reads& r) { return r.any; });
    }
    // `pending`: reads since the last fence. Returns those at the end.
    Reads add_fences(Region& region, const Reads& pending) const { return walk(region, pending, true); }

private:
    struct Writer {
        const Stmt* stmt;
        int buffer;
        bool engine, in_loop;
        std::set<int> after;  // arrays of mbarriers that are waited for before it, in the lists of statements around it
    };

    bool shares_bytes(int x, int y) const {
        const ir::SharedBuffer &a = k_.buffers[static_cast<std::size_t>(x)], &b = k_.buffers[static_cast<std::size_t>(y)];
        return a.byte_offset < b.byte_offset + b.bytes && b.byte_offset < a.byte_offset + a.bytes;
    }

    // Does a copy write what may have been read before? What is read was written: by the copy itself in a round before, or by another.
    bool follows_others(const Writer& copy) const {
        if (copy.in_loop) return true;
        return std::any_of(writers_.begin(), writers_.end(),
                           [&](const Writer& w) { return w.stmt != copy.stmt && shares_bytes(w.buffer, copy.buffer); });
    }

    void find(const Region& region, bool in_loop, std::set<int> after) {
        for (const Stmt& s : region) {
            if (const auto* x = std::get_if<ir::BarrierWait>(&s.op)) after.insert(x->barrier.array);
            if (const auto* x = std::get_if<ir::TmaLoad>(&s.op)) writers_.push_back({&s, x->dst.buffer, true, in_loop, after});
            if (const auto* x = std::get_if<ir::StoreShared>(&s.op)) writers_.push_back({&s, x->dst.buffer, false, in_loop, {}});
            if (const auto* x = std::get_if<ir::CpAsync>(&s.op)) writers_.push_back({&s, x->dst.buffer, false, in_loop, {}});
            if (const auto* f = std::get_if<ir::For>(&s.op)) find(f->body, true, after);
            if (const auto* i = std::get_if<ir::If>(&s.op)) find(i->then, in_loop, after), find(i->otherwise, in_loop, after);
            if (const auto* r = std::get_if<ir::Role>(&s.op)) find(r->body, in_loop, after);
            if (const auto* e = std::get_if<ir::Elect>(&s.op)) find(e->body, in_loop, after);
        }
    }

    // After this statement another thread, or the copy engine, may act on what was read before it.
    static bool tells_others(const Stmt& s, const Reads& reads) {
        if (const auto* a = std::get_if<ir::BarrierArrive>(&s.op)) return reads.end_at(a->barrier);
        bool tells = std::holds_alternative<ir::BarrierExpect>(s.op) || std::holds_alternative<ir::CpAsyncArrive>(s.op) ||
                     std::holds_alternative<ir::BlockSync>(s.op) || std::holds_alternative<ir::NamedSync>(s.op) ||
                     std::holds_alternative<ir::NamedArrive>(s.op) || std::holds_alternative<ir::WarpSync>(s.op) ||
                     std::holds_alternative<ir::ClusterArrive>(s.op) || std::holds_alternative<ir::TmaLoad>(s.op);
        // What an elected thread does, all lanes fence before: each ends its own loads.
        if (const auto* e = std::get_if<ir::Elect>(&s.op))
            ir::for_each_stmt(e->body, [&](const Stmt& x) { tells |= tells_others(x, reads); });
        return tells;
    }

    Reads walk(Region& region, Reads pending, bool change) const {
        for (std::size_t n = 0; n < region.size(); ++n) {
            if (pending.any && tells_others(region[n], pending)) {
                pending = {};
                if (change) {
                    Stmt fence;
                    fence.op = ir::ProxyFence{};
                    fence.note = "what was read may be overwritten by the copy engine";
                    fence.loc = region[n].loc;
                    region.insert(region.begin() + static_cast<std::ptrdiff_t>(n++), std::move(fence));
                }
            }
            Stmt& s = region[n];
            if (std::holds_alternative<ir::ProxyFence>(s.op)) pending = {};
            if (const auto* load = std::get_if<ir::LoadShared>(&s.op)) pending.add(refilled_[static_cast<std::size_t>(load->src.buffer)]);
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                Reads around = pending;
                around.add(walk(f->body, pending, false));  // what an iteration leaves, the next one finds
                pending.add(walk(f->body, around, change));
            } else if (auto* i = std::get_if<ir::If>(&s.op)) {
                const Reads then = walk(i->then, pending, change), otherwise = walk(i->otherwise, pending, change);
                pending = then;
                pending.add(otherwise);
            } else if (auto* r = std::get_if<ir::Role>(&s.op)) {
                pending.add(walk(r->body, pending, change));
            }
        }
        return pending;
    }

    const ir::Kernel& k_;
    std::vector<Writer> writers_;
    std::vector<Reads> refilled_;  // by buffer
};

}  // namespace

void fence_refills(ir::Kernel& kernel) {
    const Refills refills(kernel);
    if (refills.any()) refills.add_fences(kernel.body, {});
    ir::number_statements(kernel);
}

void fence_refills(Draft& draft, const Context&) { fence_refills(draft.kernel); }

}  // namespace tw::lower
