// The emulator: the last IR on a CPU, every thread of every role, under schedules chosen to hurt.
//
// What is simulated, and at which grain:
//   - Warps are the units of scheduling; between two statements of one warp any other warp may run for as long as it likes.
//     Lanes of a warp run a statement together, but two lanes are ordered only by a warp-level or wider barrier, so a value
//     handed from lane to lane through shared memory without one is a race.
//   - Asynchronous work (TMA, cp.async, bulk stores, wgmma) is its own actor: it starts at its issue and takes place at any
//     time until the wait that covers it. `Schedule::lazy` lets it take place at the last moment, otherwise at once. A TMA box
//     lands in pieces, in an order that the schedule chooses, and a piece ends where the barrier's byte count does: a barrier
//     that expects too few bytes lets its waiters go while the rest of the box is still on its way.
//   - Order is kept with vector clocks: one component per warp and per stream of asynchronous work. Barriers, mbarrier
//     phases, commit groups and cluster barriers are the only edges. Two accesses to one byte, one of them a write, with no
//     path between them are a race, whichever way this run happened to execute them.
//   - A generic-proxy write is visible to TMA and wgmma only after its warp executed a proxy fence (a second family of
//     clocks that advances at fences only). A generic-proxy read is over for a TMA load that writes there only after the
//     reading threads executed one (a third family): a barrier alone does not hold the copy engine back.
//   - Blocks of one cluster run together; clusters run one after another, and any conflict between two clusters is a race
//     (the language has no inter-cluster synchronisation besides atomic adds). What a block does to a peer's shared memory or
//     mbarriers must come after the peer's start and before its end, by a path of edges as for any other conflict.
//
// Numerics: every operation rounds to its type as the hardware does; wgmma and mma add as target/tensor_core.h says.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "emulate/history.h"
#include "ir/ir.h"

namespace tw::emulate {

// A tensor argument: bytes in memory order with element strides.
struct TensorData {
    target::DType dtype = target::DType::F32;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;  // elements
    std::vector<std::uint8_t> bytes;

    double get(const std::vector<std::int64_t>& index) const;
    void set(const std::vector<std::int64_t>& index, double value);
    std::int64_t elements() const;
};
TensorData make_tensor(target::DType dtype, std::vector<std::int64_t> dims, std::vector<std::int64_t> strides);

enum class FaultKind : std::uint8_t {
    race,
    deadlock,
    out_of_bounds,
    uninitialised,
    phase,
    byte_count,
    proxy,
    in_flight,
    barrier,
    divergence,
    launch,
    limit,
};
const char* name_of(FaultKind kind);

// What exactly, where an explanation depends on it.
enum class FaultCause : std::uint8_t {
    other,
    peer_not_started,   // a block's shared memory is reached before it is known to run
    peer_ended,         // ... or while it may end
    initialisation,     // of an mbarrier
    no_wgmma_fence,     // between ordinary instructions and a wgmma
    unfinished_wgmma,   // at the end
    no_fill,            // a load beyond a tensor that does not say what lies there
    unset_expression,   // a variable without value, a division by zero
    cluster_barrier,    // arrivals and waits that are no pairs
    too_many_arrivals,  // in a phase of an mbarrier
    unfenced_read,      // of a place that the copy engine fills again
};

// Warps that wait for the same thing when nothing can move any more.
struct StuckWarps {
    const ir::Stmt* stmt = nullptr;
    int warps = 0;
    int first_warp = 0;  // in its block
    int rank = 0;
    std::uint32_t event = 0;  // with Options::history only
    int barrier = -1;         // an mbarrier: its array, slot, and what the phase still lacks; -1: no mbarrier
    std::int64_t slot = 0, parity = 0, bytes = 0;
    int arrivals = 0;
    std::uint64_t phase = 0;  // phases completed
    std::int64_t named = -1;  // a named barrier (0: the block's): its number, threads there and threads expected
    int arrived = 0, expected = 0;
};

// One thing that went wrong, with the concrete instance.
struct Fault {
    FaultKind kind = FaultKind::launch;
    FaultCause cause = FaultCause::other;
    std::string message;
    ir::Loc loc;            // of the statement that noticed
    ir::Loc other;          // of the statement it collides with, line 0 if none
    std::string statement;  // printed IR
    std::string other_statement;
    int block[3] = {0, 0, 0};
    int warp = -1, thread = -1;
    std::string element;  // "sA byte 4096 (slot 1, row 3, column 0)" or "C[5, 7]"
    // With Options::history only: which executions collide (History::events), and the other's thread (-1: an engine, or several).
    std::uint32_t event = 0, other_event = 0;
    int other_thread = -1;
    bool by_engine = false;         // the copy engine or the tensor cores noticed, not the thread that issued the work
    std::vector<StuckWarps> stuck;  // of a deadlock: who waits where
};

struct Schedule {
    enum class Order : std::uint8_t { round_robin, reverse, random, starve } order = Order::round_robin;
    int victim = 0;     // starve: this warp runs only when nothing else can
    bool lazy = false;  // asynchronous work happens as late as it may
    std::uint64_t seed = 1;
    std::string describe() const;
};
// The schedules a check runs: fair and reversed, each eager and lazy; the first and the last warp and the first of each role's
// instances starved, lazy; and `random_count` seeded ones.
std::vector<Schedule> hostile_schedules(const ir::Kernel& kernel, int random_count, std::uint64_t seed);

// A warp is at a tw.expect. What it holds there can be asked for while the call lasts.
struct ExpectSeen {
    const ir::Stmt* stmt = nullptr;
    int block[3] = {0, 0, 0};
    int warp = 0;                                                         // in the block
    std::function<std::optional<std::int64_t>(const ir::Expr&)> integer;  // over what is in scope there
    // Calls `take(coordinate, value)` for the warp's own elements of a fragment (none while a wgmma owns them), or all of a shared view.
    using Take = std::function<void(const std::vector<std::int64_t>&, double)>;
    std::function<void(int fragment, const Take&)> fragment;
    std::function<void(const ir::SharedView&, const Take&)> shared;
};

struct SkeletonCache;  // footprints that several skeleton runs of one kernel share
std::shared_ptr<SkeletonCache> make_skeleton_cache();

// How far a run is: told after every cluster and every 1024 statements.
struct Progress {
    std::int64_t clusters_done = 0, clusters = 0, statements = 0;
};

struct Options {
    Schedule schedule;
    std::function<bool(const Progress&)> progress;  // optional; false: the run gives up (a fault of kind `limit`)
    std::int64_t step_limit = 50'000'000;
    int resident_blocks = 4;      // grid of a persistent kernel: min(grid, this)
    std::size_t fault_limit = 4;  // stop after so many
    bool detect_races = true;
    // false: the skeleton only. No values, no global traffic; shared memory in granules of whole vectors. Order, phases,
    // deadlock, proxies and registers in flight are checked as usual, orders of magnitude faster (verify/order uses this).
    bool values = true;
    std::shared_ptr<SkeletonCache> cache;  // optional; only for runs of the same kernel object, all with the same `whole_warps`
    // Skeleton runs: lanes are not told apart, so an access is after another of its warp only with a warp-level barrier between them.
    // Faster, and never too lenient: a race that such a run shows may be none, one that it does not show is none.
    bool whole_warps = false;
    bool one_cluster = false;  // only the first cluster of the grid
    // Skeleton runs, optional: is this cluster to run? It has these blocks, in the order of their ranks, of this grid.
    std::function<bool(const std::vector<std::array<std::int64_t, 3>>& blocks, const std::array<std::int64_t, 3>& grid)> wanted;
    std::shared_ptr<History> history;                  // optional, value runs only: records what every value is made of
    std::function<void(const ExpectSeen&)> on_expect;  // called at every tw.expect, in runs with values
    // Skeleton runs: no warp begins an iteration of one of these loops before every other has ended the one before. All schedules of an
    // instance have the same order of events, so this decides it as any other; and where it gets through, so do all that leave these loops
    // earlier.
    std::set<const ir::For*> in_step;
    // Skeleton runs, optional: how often a loop runs, given the iteration of the loop of `in_step` around it.
    std::function<std::optional<std::int64_t>(const ir::For& loop, std::int64_t round)> trips;
    std::vector<std::pair<ir::Expr, bool>>
        forced;  // branches on exactly these conditions go this way; the n-th entry of one: in block n of a cluster and those after
};

// Seen in a skeleton run: a read of shared memory found what this write had put there. `at_read` and `at_write` are the
// loop variables and instance indices in force (variable number, value), outermost first; in a cluster the block's rank comes
// before them, as variable `rank_of_block`. `write_ends` has for each entry of `at_write` where that loop ends (0 for what is no loop).
struct DependenceSample {
    static constexpr int rank_of_block = -1;
    const ir::Stmt* read = nullptr;
    const ir::Stmt* write = nullptr;
    std::vector<std::pair<int, std::int64_t>> at_read, at_write;
    std::vector<std::int64_t> write_ends;
    friend bool operator==(const DependenceSample&, const DependenceSample&) = default;
    friend bool operator<(const DependenceSample& a, const DependenceSample& b) {
        return std::tie(a.read, a.write, a.at_read, a.at_write, a.write_ends) <
               std::tie(b.read, b.write, b.at_read, b.at_write, b.write_ends);
    }
};

// How a loop or a branch was reached in a skeleton run.
struct Coverage {
    std::int64_t most_trips = -1;        // of a loop; -1: never reached
    bool taken = false, passed = false;  // of a branch: its condition was true, was false
    void join(const Coverage& c) {
        most_trips = most_trips > c.most_trips ? most_trips : c.most_trips;
        taken |= c.taken;
        passed |= c.passed;
    }
};
using CoverageMap = std::map<const ir::Stmt*, Coverage>;

struct Outcome {
    std::vector<Fault> faults;
    std::int64_t steps = 0;
    std::int64_t blocks = 0;
    std::vector<DependenceSample> dependences;  // skeleton runs only; some may stand there twice
    CoverageMap coverage;                       // skeleton runs only
    bool out_of_step =
        false;  // an iteration of Options::in_step waits for a later one, or leaves something on its way: shorter runs are not decided
    bool clean() const { return faults.empty(); }
};

// Runs one launch. Outputs should be poisoned by the caller (see poison()). Pre: the kernel is in its last form.
Outcome run(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
            std::vector<TensorData>& tensors, const Options& options);

// Evaluates an integer expression over sizes only; nothing on failure (division by zero, unbound).
std::optional<std::int64_t> size_value(const ir::Expr& e, const std::vector<std::int64_t>& sizes);

}  // namespace tw::emulate
