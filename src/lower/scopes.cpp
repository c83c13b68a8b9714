// Whose accesses the operations on mbarriers order.
//
// A release at cluster scope makes every arrival at another block's barrier wait for a fence of the whole GPU, which the ring of a
// multicast cannot afford. It is needed where ordinary code touches bytes that another block of the cluster touches too: a peer's shared
// memory, the destination of a multicast, a tensor that the kernel both writes and reads. With a multicast and none of these, ordinary code
// meets ordinary code of its own block only. An arrival there orders finished wgmma reads (they are complete, no fence is involved), and
// where it comes back to its own block, the fences of the block beside it order the rest.
//
// Nothing stands on this choice: emulator and order check read the scopes and fences as statements, and find what they do not order.
#include <algorithm>
#include <vector>

#include "lower/steps.h"

namespace tw::lower {
namespace {

// Between threads of different blocks, by way of arrivals at each other's barriers.
enum class Handover : std::uint8_t {
    nothing,  // no ordinary access to shared memory at all: relaxed
    block,    // relaxed, beside fences of the block
    cluster   // release and acquire at cluster scope
};

bool overlap(const ir::SharedBuffer& a, const ir::SharedBuffer& b) {
    return a.byte_offset < b.byte_offset + b.bytes && b.byte_offset < a.byte_offset + a.bytes;
}

Handover handover_of(const ir::Kernel& k) {
    std::vector<int> ordinary, multicast;  // buffers
    std::vector<bool> read(k.tensors.size()), written(k.tensors.size());
    bool reaches_peer = false;
    auto view = [&](const ir::SharedView& v, std::vector<int>* into) {
        reaches_peer |= v.cluster_rank.has_value();
        if (into) into->push_back(v.buffer);
    };
    auto tensor_of = [&](int map) { return static_cast<std::size_t>(k.tensor_maps[static_cast<std::size_t>(map)].tensor); };
    ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
        if (auto* x = std::get_if<ir::LoadShared>(&s.op)) view(x->src, &ordinary);
        if (auto* x = std::get_if<ir::StoreShared>(&s.op)) view(x->dst, &ordinary);
        if (auto* x = std::get_if<ir::CpAsync>(&s.op)) view(x->dst, &ordinary), read[static_cast<std::size_t>(x->src.tensor)] = true;
        if (auto* x = std::get_if<ir::TmaLoad>(&s.op))
            view(x->dst, x->multicast_mask ? &multicast : nullptr), read[tensor_of(x->map)] = true;
        if (auto* x = std::get_if<ir::TmaStore>(&s.op)) view(x->src, nullptr), written[tensor_of(x->map)] = true;
        if (auto* x = std::get_if<ir::LoadGlobal>(&s.op)) read[static_cast<std::size_t>(x->src.tensor)] = true;
        if (auto* x = std::get_if<ir::StoreGlobal>(&s.op)) written[static_cast<std::size_t>(x->dst.tensor)] = true;
        if (auto* x = std::get_if<ir::AtomicAdd>(&s.op)) written[static_cast<std::size_t>(x->dst.tensor)] = true;
        if (auto* x = std::get_if<ir::Wgmma>(&s.op)) {
            view(x->b, nullptr);
            if (auto* a = std::get_if<ir::SharedView>(&x->a)) view(*a, nullptr);
        }
    });
    if (reaches_peer || multicast.empty()) return Handover::cluster;
    for (std::size_t t = 0; t < k.tensors.size(); ++t) {
        if (read[t] && written[t]) return Handover::cluster;
    }
    for (int a : ordinary) {
        for (int b : multicast) {
            if (overlap(k.buffers[static_cast<std::size_t>(a)], k.buffers[static_cast<std::size_t>(b)])) return Handover::cluster;
        }
    }
    return ordinary.empty() ? Handover::nothing : Handover::block;
}

class Scopes {
public:
    explicit Scopes(ir::Kernel& k) : in_cluster_(k.cluster[0] * k.cluster[1] * k.cluster[2] > 1) {
        reached_.resize(k.barriers.size()), copied_.resize(k.barriers.size());
        ir::for_each_stmt(k.body, [&](const ir::Stmt& s) {
            if (auto* a = std::get_if<ir::BarrierArrive>(&s.op); a && a->barrier.cluster_rank)
                reached_[static_cast<std::size_t>(a->barrier.array)] = true;
            if (auto* t = std::get_if<ir::TmaLoad>(&s.op)) copied_[static_cast<std::size_t>(t->barrier.array)] = true;
        });
        if (in_cluster_ && std::find(reached_.begin(), reached_.end(), true) != reached_.end()) handover_ = handover_of(k);
        region(k.body);
    }

private:
    void region(ir::Region& body) {
        ir::Region out;
        for (ir::Stmt& s : body) {
            if (auto* f = std::get_if<ir::For>(&s.op)) region(f->body);
            if (auto* i = std::get_if<ir::If>(&s.op)) region(i->then), region(i->otherwise);
            if (auto* r = std::get_if<ir::Role>(&s.op)) region(r->body);
            if (auto* e = std::get_if<ir::Elect>(&s.op)) region(e->body);
            const ir::Loc loc = s.loc;
            bool fence_before = false, fence_after = false;
            if (auto* a = std::get_if<ir::BarrierArrive>(&s.op)) {
                const bool far = in_cluster_ && a->barrier.cluster_rank;
                a->release = !far ? ir::Scope::block : handover_ == Handover::cluster ? ir::Scope::cluster : ir::Scope::none;
                fence_before = far && handover_ == Handover::block;
            }
            if (auto* w = std::get_if<ir::BarrierWait>(&s.op)) {
                const auto array = static_cast<std::size_t>(w->barrier.array);
                const bool far = in_cluster_ && reached_[array];
                // What the copy engine brings is visible to who acquires.
                w->acquire = !far                                               ? ir::Scope::block
                             : handover_ == Handover::cluster || copied_[array] ? ir::Scope::cluster
                                                                                : ir::Scope::none;
                fence_after = far && handover_ == Handover::block;
            }
            if (fence_before) out.push_back({ir::BlockFence{}, loc});
            out.push_back(std::move(s));
            if (fence_after) out.push_back({ir::BlockFence{}, loc});
        }
        body = std::move(out);
    }

    const bool in_cluster_;
    std::vector<bool> reached_, copied_;  // barrier arrays: arrivals of other blocks, copies of the engine
    Handover handover_ = Handover::cluster;
};

}  // namespace

void choose_scopes(Draft& draft, const Context&) { Scopes scopes(draft.kernel); }

}  // namespace tw::lower
