// Step `refills`: a proxy fence between ordinary reads of shared memory and the barrier after which the copy engine writes there again.
//
// Loads of the generic proxy are in no order with writes of the asynchronous one without such a fence, whatever barriers stand between:
// on an H200 a load whose registers nobody had used yet came back with the next round's bytes (docs/trusted-base.md).
#include <algorithm>
#include <utility>

#include "device/steps.h"

namespace tw::device {

namespace {

using ir::Region;
using ir::Stmt;

bool overlap(const ir::SharedBuffer& a, const ir::SharedBuffer& b) {
    return a.byte_offset < b.byte_offset + b.bytes && b.byte_offset < a.byte_offset + a.bytes;
}

class Refills {
public:
    explicit Refills(const ir::Kernel& k) : refilled_(k.buffers.size(), false) { find(k, k.body, false); }

    bool any() const { return std::find(refilled_.begin(), refilled_.end(), true) != refilled_.end(); }
    // `pending`: there are reads since the last fence. Returns whether there are at the end.
    bool add_fences(Region& region, bool pending) const { return walk(region, pending, true); }

private:
    // Buffers that a copy writes in a loop, and those that share bytes with another one that a copy writes.
    void find(const ir::Kernel& k, const Region& region, bool in_loop) {
        for (const Stmt& s : region) {
            if (const auto* load = std::get_if<ir::TmaLoad>(&s.op)) {
                for (std::size_t b = 0; b < k.buffers.size(); ++b) {
                    const bool same = static_cast<int>(b) == load->dst.buffer;
                    if ((same && in_loop) || (!same && overlap(k.buffers[b], k.buffers[static_cast<std::size_t>(load->dst.buffer)])))
                        refilled_[b] = true;
                }
            }
            if (const auto* f = std::get_if<ir::For>(&s.op)) find(k, f->body, true);
            if (const auto* i = std::get_if<ir::If>(&s.op)) find(k, i->then, in_loop), find(k, i->otherwise, in_loop);
            if (const auto* r = std::get_if<ir::Role>(&s.op)) find(k, r->body, in_loop);
            if (const auto* e = std::get_if<ir::Elect>(&s.op)) find(k, e->body, in_loop);
        }
    }

    static bool tells_others(const Stmt& s) {
        if (const auto* e = std::get_if<ir::Elect>(&s.op)) return std::any_of(e->body.begin(), e->body.end(), tells_others);
        return std::holds_alternative<ir::BarrierArrive>(s.op) || std::holds_alternative<ir::BarrierExpect>(s.op) ||
               std::holds_alternative<ir::CpAsyncArrive>(s.op) || std::holds_alternative<ir::BlockSync>(s.op) ||
               std::holds_alternative<ir::NamedSync>(s.op) || std::holds_alternative<ir::NamedArrive>(s.op) ||
               std::holds_alternative<ir::WarpSync>(s.op) || std::holds_alternative<ir::ClusterArrive>(s.op) ||
               std::holds_alternative<ir::TmaLoad>(s.op);
    }

    bool walk(Region& region, bool pending, bool change) const {
        for (std::size_t n = 0; n < region.size(); ++n) {
            if (pending && tells_others(region[n])) {
                pending = false;
                if (change) {
                    Stmt fence;
                    fence.op = ir::ProxyFence{};
                    fence.note = "what was read may be overwritten by the copy engine";
                    fence.loc = region[n].loc;
                    region.insert(region.begin() + static_cast<std::ptrdiff_t>(n++), std::move(fence));
                }
            }
            Stmt& s = region[n];
            if (std::holds_alternative<ir::ProxyFence>(s.op)) pending = false;
            if (const auto* load = std::get_if<ir::LoadShared>(&s.op)) pending |= refilled_[static_cast<std::size_t>(load->src.buffer)];
            if (auto* f = std::get_if<ir::For>(&s.op)) {
                const bool around = pending || walk(f->body, pending, false);  // what an iteration leaves, the next one finds
                pending = walk(f->body, around, change) || pending;
            } else if (auto* i = std::get_if<ir::If>(&s.op)) {
                const bool then = walk(i->then, pending, change), otherwise = walk(i->otherwise, pending, change);
                pending = then || otherwise;
            } else if (auto* r = std::get_if<ir::Role>(&s.op)) {
                walk(r->body, pending, change);
            } else if (auto* e = std::get_if<ir::Elect>(&s.op)) {
                pending |= walk(e->body, false, change);
            }
        }
        return pending;
    }

    std::vector<bool> refilled_;
};

}  // namespace

void fence_refills(ir::Kernel& k, const Facts&) {
    const Refills refills(k);
    if (refills.any()) refills.add_fences(k.body, false);
}

}  // namespace tw::device
