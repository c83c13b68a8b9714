#include "target/sync.h"

namespace tw::target {

namespace {

MbarrierStep settled(MbarrierState s) {
    MbarrierStep step{s, false, Legality::yes()};
    if (s.pending < 0) step.legal = Legality::no("more arrivals than the mbarrier expects in a phase (" + std::to_string(s.expected) + ")");
    else if (s.tx > mbarrier_max_tx || s.tx < -mbarrier_max_tx)
        step.legal = Legality::no("the mbarrier's transaction count is " + std::to_string(s.tx) + "; its range is +-(2^20 - 1)");
    else if (s.pending == 0 && s.tx == 0) {
        step.state.pending = s.expected;
        ++step.state.phase;
        step.phase_completed = true;
    }
    return step;
}

}  // namespace

Legality mbarrier_init_legal(const Arch& arch, std::uint32_t shared_address, std::int64_t count) {
    if (!arch.has(Feature::Mbarrier)) return Legality::no("mbarrier does not exist on " + std::string(arch.name));
    if (shared_address % mbarrier_bytes != 0)
        return Legality::no("mbarrier at shared address " + std::to_string(shared_address) + " is not aligned to 8 bytes");
    if (count < 1 || count > mbarrier_max_count)
        return Legality::no("mbarrier count is " + std::to_string(count) + "; it must be 1 to 2^20 - 1");
    return Legality::yes();
}

MbarrierState mbarrier_init(int count) { return {.expected = count, .pending = count, .tx = 0, .phase = 0}; }

MbarrierStep mbarrier_arrive(MbarrierState s, int count) {
    s.pending -= count;
    return settled(s);
}

MbarrierStep mbarrier_expect_tx(MbarrierState s, std::int64_t bytes) {
    s.tx += bytes;
    return settled(s);
}

MbarrierStep mbarrier_arrive_expect_tx(MbarrierState s, std::int64_t bytes) {
    s.tx += bytes;
    --s.pending;
    return settled(s);
}

MbarrierStep mbarrier_complete_tx(MbarrierState s, std::int64_t bytes) {
    s.tx -= bytes;
    return settled(s);
}

MbarrierStep mbarrier_increment_pending(MbarrierState s) {
    ++s.pending;
    if (s.pending > mbarrier_max_count) return {s, false, Legality::no("the mbarrier's pending count passes 2^20 - 1")};
    return {s, false, Legality::yes()};
}

bool mbarrier_wait_parity(const MbarrierState& s, int parity) { return static_cast<int>(s.phase & 1) != parity; }

Legality named_barrier_legal(const Arch& arch, int id, int threads) {
    if (id < 0 || id >= arch.named_barriers)
        return Legality::no("barrier id " + std::to_string(id) + " is not one of 0 to " + std::to_string(arch.named_barriers - 1));
    if (threads <= 0 || threads % arch.warp_size != 0)
        return Legality::no("a named barrier counts " + std::to_string(threads) + " threads; it must be a positive multiple of " +
                            std::to_string(arch.warp_size));
    if (threads > arch.max_threads_per_block)
        return Legality::no("a named barrier counts " + std::to_string(threads) + " threads; a block has at most " +
                            std::to_string(arch.max_threads_per_block));
    return Legality::yes();
}

Legality cluster_legal(const Arch& arch, int x, int y, int z) {
    if (x < 1 || y < 1 || z < 1) return Legality::no("cluster extents must be positive");
    const long long blocks = 1LL * x * y * z;
    if (blocks > 1 && !arch.has(Feature::Cluster)) return Legality::no("clusters do not exist on " + std::string(arch.name));
    if (blocks > arch.max_cluster_blocks_nonportable)
        return Legality::no("a cluster of " + std::to_string(blocks) + " blocks is larger than the maximum of " +
                            std::to_string(arch.max_cluster_blocks_nonportable));
    return Legality::yes();
}

Legality block_legal(const Arch& arch, int threads) {
    if (threads < 1 || threads > arch.max_threads_per_block)
        return Legality::no("a block of " + std::to_string(threads) + " threads; 1 to " + std::to_string(arch.max_threads_per_block) +
                            " are possible");
    return Legality::yes();
}

Legality wait_group_legal(int pending, int maximum) {
    if (pending < 0 || pending > maximum)
        return Legality::no("wait_group " + std::to_string(pending) + "; it must be 0 to " + std::to_string(maximum));
    return Legality::yes();
}

Legality wgmma_wait_legal(int n) { return wait_group_legal(n, wgmma_wait_max); }

Legality setmaxnreg_legal(const Arch& arch, int registers) {
    if (!arch.has(Feature::SetMaxNReg)) return Legality::no("setmaxnreg does not exist on " + std::string(arch.name));
    if (registers < setmaxnreg_min || registers > setmaxnreg_max || registers % setmaxnreg_step != 0)
        return Legality::no("setmaxnreg " + std::to_string(registers) + "; it must be a multiple of 8 from 24 to 256");
    return Legality::yes();
}

}  // namespace tw::target
