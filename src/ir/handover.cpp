#include "ir/handover.h"

#include <algorithm>
#include <vector>

namespace tw::ir {

Handover handover_of(const Kernel& k) {
    std::vector<int> ordinary, multicast;  // buffers
    std::vector<bool> read(k.tensors.size()), written(k.tensors.size());
    bool reaches_peer = false;
    auto view = [&](const SharedView& v, std::vector<int>* into) {
        reaches_peer |= v.cluster_rank.has_value();
        if (into) into->push_back(v.buffer);
    };
    auto tensor_of = [&](int map) { return static_cast<std::size_t>(k.tensor_maps[static_cast<std::size_t>(map)].tensor); };
    for_each_stmt(k.body, [&](const Stmt& s) {
        if (auto* x = std::get_if<LoadShared>(&s.op)) view(x->src, &ordinary);
        if (auto* x = std::get_if<StoreShared>(&s.op)) view(x->dst, &ordinary);
        if (auto* x = std::get_if<CpAsync>(&s.op)) view(x->dst, &ordinary), read[static_cast<std::size_t>(x->src.tensor)] = true;
        if (auto* x = std::get_if<TmaLoad>(&s.op)) view(x->dst, x->multicast_mask ? &multicast : nullptr), read[tensor_of(x->map)] = true;
        if (auto* x = std::get_if<TmaStore>(&s.op)) view(x->src, nullptr), written[tensor_of(x->map)] = true;
        if (auto* x = std::get_if<LoadGlobal>(&s.op)) read[static_cast<std::size_t>(x->src.tensor)] = true;
        if (auto* x = std::get_if<StoreGlobal>(&s.op)) written[static_cast<std::size_t>(x->dst.tensor)] = true;
        if (auto* x = std::get_if<AtomicAdd>(&s.op)) written[static_cast<std::size_t>(x->dst.tensor)] = true;
        if (auto* x = std::get_if<Wgmma>(&s.op)) {
            view(x->b, nullptr);
            if (auto* a = std::get_if<SharedView>(&x->a)) view(*a, nullptr);
        }
    });
    if (reaches_peer || multicast.empty()) return Handover::cluster;
    for (std::size_t t = 0; t < k.tensors.size(); ++t) {
        if (read[t] && written[t]) return Handover::cluster;
    }
    for (int a : ordinary) {
        for (int b : multicast) {
            const SharedBuffer &x = k.buffers[static_cast<std::size_t>(a)], &y = k.buffers[static_cast<std::size_t>(b)];
            if (x.byte_offset < y.byte_offset + y.bytes && y.byte_offset < x.byte_offset + x.bytes) return Handover::cluster;
        }
    }
    return ordinary.empty() ? Handover::nothing : Handover::block;
}

}  // namespace tw::ir
