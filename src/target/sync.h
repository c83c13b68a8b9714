// Barriers, fences and groups: their legality and, for the ones with state, the state machine itself, so that the checker
// and the emulator agree on when a phase ends.
#pragma once

#include <cstdint>
#include <string>

#include "target/arch.h"
#include "target/legality.h"

namespace tw::target {

// ---- mbarrier ----
// A 64-bit object in shared memory: an expected arrival count, the arrivals still pending and the bytes still expected in
// the current phase. The phase ends when both are zero; then pending is reloaded and the phase parity flips.
inline constexpr int mbarrier_bytes = 8;
inline constexpr int mbarrier_max_count = (1 << 20) - 1;
inline constexpr std::int64_t mbarrier_max_tx = (1 << 20) - 1;  // |tx-count| during a phase

struct MbarrierState {
    int expected = 0;         // arrivals per phase
    int pending = 0;          // arrivals still missing in this phase
    std::int64_t tx = 0;      // bytes announced and not yet landed; may pass below zero when bytes land first
    std::uint64_t phase = 0;  // number of completed phases; parity = phase & 1
    friend bool operator==(const MbarrierState&, const MbarrierState&) = default;
};

Legality mbarrier_init_legal(const Arch& arch, std::uint32_t shared_address, std::int64_t count);
// Pre: mbarrier_init_legal. All operations return the state after; errors (count below zero, tx out of range) as reason.
MbarrierState mbarrier_init(int count);
struct MbarrierStep {
    MbarrierState state;
    bool phase_completed = false;
    Legality legal;
};
MbarrierStep mbarrier_arrive(MbarrierState s, int count = 1);
MbarrierStep mbarrier_expect_tx(MbarrierState s, std::int64_t bytes);         // no arrival
MbarrierStep mbarrier_arrive_expect_tx(MbarrierState s, std::int64_t bytes);  // expect_tx, then arrive
MbarrierStep mbarrier_complete_tx(MbarrierState s, std::int64_t bytes);
MbarrierStep mbarrier_increment_pending(MbarrierState s);  // cp.async.mbarrier.arrive without .noinc
// try_wait.parity / test_wait.parity: true when the phase of this parity is over, that is when the current phase has the
// other parity. On a fresh barrier parity 1 passes at once and parity 0 waits.
bool mbarrier_wait_parity(const MbarrierState& s, int parity);

// ---- barriers of a block and of a cluster ----
Legality named_barrier_legal(const Arch& arch, int id, int threads);  // bar.sync / bar.arrive
Legality cluster_legal(const Arch& arch, int x, int y, int z);
Legality block_legal(const Arch& arch, int threads);

// ---- groups ----
Legality wait_group_legal(int pending_allowed, int maximum);
inline constexpr int wgmma_wait_max = 7;  // wgmma.wait_group N
Legality wgmma_wait_legal(int n);

// ---- setmaxnreg ----
inline constexpr int setmaxnreg_min = 24;
inline constexpr int setmaxnreg_max = 256;
inline constexpr int setmaxnreg_step = 8;
Legality setmaxnreg_legal(const Arch& arch, int registers);

}  // namespace tw::target
