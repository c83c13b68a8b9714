// The state of one cluster of blocks while it runs (internal to emulate/).
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "emulate/clock.h"
#include "emulate/emulator.h"
#include "emulate/places.h"
#include "ir/device.h"
#include "ir/row_starts.h"
#include "target/sync.h"
#include "target/tensor_core.h"

namespace tw::emulate {

using ir::Stmt;

// A distribution as a table, so that the inner loops only add.
struct FragmentTable {
    int threads = 1, values = 1, rank = 0;
    std::vector<int> coordinates;  // [thread][value][dim]
    const int* at(int t, int v) const { return coordinates.data() + static_cast<std::size_t>((t * values + v) * rank); }  // also of rank 0
};
FragmentTable tabulate(const ir::Distribution& d);
FragmentTable whole_vectors(const ir::Kernel& k, const ir::CpAsync& copy);  // of the tile; -1: an element beside it

struct Frame {
    const ir::Region* region = nullptr;
    std::size_t pc = 0;
    const ir::For* loop = nullptr;
    std::int64_t index = 0, hi = 0, step = 1;
    bool leaves_role = false, leaves_elect = false;
    bool voted = false;    // the branch of a vote
    bool in_step = false;  // Options::in_step
    std::int64_t round = 0;
};

// Registers of one group instance: values of a fragment, [thread][value], as doubles that are exact in the fragment's type.
struct FragmentState {
    std::vector<double> values;
    std::vector<MadeId> made;     // with a history: what each value is made of
    std::vector<char> written;    // per warp of the group: has a defined value
    std::vector<int> in_flight;   // per warp: wgmmas that own it (as accumulator or A operand)
    std::vector<char> touched;    // per warp: changed by ordinary instructions since the last wgmma fence
    const Stmt* owner = nullptr;  // the wgmma that took it last
};

struct Group {                      // the threads that execute a region together
    int block = 0;                  // rank in the cluster
    int first_warp = 0, warps = 0;  // within the block
    int instance = 0;
    const void* region = nullptr;  // the role's statement, null for the whole block
    std::vector<FragmentState> fragments;
};

struct WgmmaTask {  // one warp's share: its rows of the accumulator
    const Stmt* stmt = nullptr;
    bool accumulate = true;
    std::vector<std::int64_t> a_origin, b_origin;
    Group* group = nullptr;
    Knowledge at_issue;
    std::uint32_t time = 0;
    std::uint32_t snapshot = 0;  // loops (skeleton runs), or the event of the issue (with a history)
    bool done = false;
};

struct CopyTask {          // one warp's share of a CpAsync
    int first_thread = 0;  // of its warp in the group that issued it
    const Stmt* stmt = nullptr;
    std::vector<std::pair<int, std::vector<std::uint8_t>>> pieces;  // arena byte address, bytes (read at issue: sources are read-only)
    std::vector<std::uint8_t> lanes;
    std::vector<MadeId> made;          // of each piece, with a history
    std::vector<std::int64_t> origin;  // of the shared view (skeleton runs)
    std::uint32_t snapshot = 0;
    bool landed = false;
    std::uint32_t time = 0;
    std::uint32_t waited = 0;       // up to which time its thread had waited for its own copies when it issued this
    std::uint32_t lanes_clock = 0;  // of its warp, at the issue
    Knowledge at_issue;
};

struct BarrierSlot {
    target::MbarrierState state;  // counts and phase, as the hardware keeps them
    bool initialised = false;
    // What arrivals of this phase pass on, and those of the last completed one, to whom it is ordered for: `all` to every acquire (with
    // what the copy engine brought); in a cluster also to a wait at cluster scope alone (`far`), to a relaxed wait with a fence of the
    // block after it (`near`), and to any wait (`weak`: finished asynchronous work).
    struct Passed {
        Knowledge all = {}, far = {}, near = {}, weak = {};
    } gathering, released;
    std::map<int, std::pair<std::uint32_t, const Stmt*>> waited;  // warp -> its last wait for the last completed phase (skeleton runs)
    std::uint32_t tma_time = 0;                                   // clock component of loads bound to this slot
    // Copies' arrivals that count for nothing (cp.async.mbarrier.arrive without .noinc): they hold the phase up only if it cannot end
    // before they are issued, so an arrival that counts must know of each. Warp, its clock, statement; and what those arrivals know.
    std::vector<std::tuple<int, std::uint32_t, const Stmt*>> uncounted;
    Clock counted;
    // Actors of asynchronous work that counts in this phase, with their clocks, and in the last completed one (skeleton runs).
    std::vector<std::pair<int, std::uint32_t>> landing, landed;
    // The end of the phase before the last completed one: its arrivals, and the asynchronous work that counted in it (skeleton runs).
    Clock ended_before;
    std::vector<std::pair<int, std::uint32_t>> landed_before;
    int initialiser = -1;  // warp number, and its clock then: others must have synchronised with it
    std::uint32_t init_time = 0;
};

struct TmaTask {
    enum class Kind : std::uint8_t { load, store } kind = Kind::load;
    const Stmt* stmt = nullptr;
    int block = 0;  // issuing rank
    int warp = 0;   // global warp number
    std::vector<std::int64_t> coordinates;
    std::vector<std::int64_t> origin;  // of the shared view
    std::vector<int> targets;          // ranks that receive (multicast)
    std::vector<int> landed;           // per target: bytes that have arrived
    int barrier = -1;                  // slot number inside a block's barrier table
    int barrier_block = 0;
    Knowledge at_issue;
    std::uint32_t time = 0;
    std::uint32_t snapshot = 0;
    bool read_done = false, done = false;
};

struct NamedBarrier {
    int expected = 0, arrived = 0;
    std::uint64_t generation = 0;
    Knowledge gathering, released;
};

struct Warp {
    int block = 0, index = 0, number = 0;  // rank in cluster, warp in block, number in the cluster
    std::vector<Frame> frames;
    std::vector<std::int64_t> vars;
    std::vector<char> var_set;
    std::optional<std::uint32_t> snapshot;  // of the loops it is in, while they stay where they are (skeleton runs)
    std::vector<Group*> groups;
    bool single = false;      // inside Elect
    std::uint32_t event = 0;  // with a history: the statement being executed
    bool event_open = false;  // it is tried again: no new event
    bool done = false;
    std::int64_t rounds = 0;  // of a loop of Options::in_step that it has finished
    // waiting
    const Stmt* waiting_at = nullptr;
    std::uint64_t wait_generation = 0;
    bool joined = false;                       // already counted at the barrier it waits for
    const Stmt* at_cluster_barrier = nullptr;  // its arrival there that it has not yet waited for
    Knowledge knows;                           // inside Elect: lane 0's
    Knowledge outside,
        lane0;  // inside Elect: what the other lanes know; outside: what lane 0 learnt there, theirs with the next barrier of the warp
    bool lane0_ahead = false;
    Knowledge before_fence, after_wait;  // in a cluster: what its last fence of the block covers, and what relaxed waits left to the next
    std::uint32_t epoch = 0;             // warp-level barriers passed
    std::uint32_t lanes_clock = 0;  // own clock up to which each lane knows what the others did: when the last of them was passed, or an
                                    // arrival of all lanes came back through an mbarrier
    std::uint32_t lanes_read = 0;   // the same of its fenced reads (Knowledge::read)
    bool touched_shared = false;    // ordinary shared accesses since then
    std::uint32_t own_copies = 0;   // time up to which each lane has waited for its own copies
    std::uint64_t serial = 0;
    std::vector<std::pair<std::int64_t, std::int64_t>> messages;  // per team: how many it has sent and received
    // cp.async
    std::vector<CopyTask> copies_open;
    std::deque<std::vector<CopyTask>> copy_groups;
    // wgmma
    std::vector<WgmmaTask> wgmma_open;
    std::deque<std::vector<WgmmaTask>> wgmma_groups;
    std::uint32_t wgmma_time = 0;
    std::vector<std::uint32_t> waits_at_wgmma;  // its own mbarrier waits when it issued each (skeleton runs)
    std::uint32_t copy_time = 0, bulk_time = 0;
    // bulk stores
    std::vector<int> bulk_open;
    std::deque<std::vector<int>> bulk_groups;
};

struct Block {
    std::array<std::int64_t, 3> index = {0, 0, 0};
    std::vector<std::uint8_t> arena;
    std::vector<MadeId> made;  // per byte, with a history
    Shadow shadow;
    std::vector<BarrierSlot> barriers;
    std::map<std::int64_t, NamedBarrier> named;  // -1: the whole block
    struct Visit {
        std::uint32_t time = 0;
        const Stmt* stmt = nullptr;
        int warp = 0;
    };
    std::map<int, Visit> visits;  // by actor: the last time a peer or the copy engine reached into this block's shared memory
};

// Which cluster touched a global element first; more than one is a race unless all were atomic adds.
struct GlobalCell {
    std::int32_t writer = -1, reader = -1;  // cluster numbers
    bool atomic = false;
};

// An element that several threads hold is stored once: not by this thread, when one of its copy digits is not zero.
inline bool holds_a_copy(const ir::Distribution& dist, int thread) {
    for (const ir::DistDigit& d : dist.thread) {
        if (d.dim < 0 && thread % d.extent != 0) return true;
        thread /= d.extent;
    }
    return false;
}

// Which footprint: of a statement, of one of its operands, of a warp of its group (-1: alike for all), at an origin.
struct FootprintKey {
    const Stmt* stmt;
    int warp, which;
    std::vector<std::int64_t> origin;
    bool operator==(const FootprintKey&) const = default;
};
struct FootprintHash {
    std::size_t operator()(const FootprintKey& k) const {
        std::size_t h = reinterpret_cast<std::size_t>(k.stmt) / alignof(Stmt) * 31 + static_cast<std::size_t>(k.warp * 4 + k.which);
        for (std::int64_t i : k.origin) h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u + static_cast<std::size_t>(i);
        return h ^ h >> 32;
    }
};

struct SkeletonCache {
    std::unordered_map<FootprintKey, Footprint, FootprintHash> footprints;
    FootprintKey wanted;  // the one that is looked for, so that none is made for each search
    std::vector<FragmentTable> tables;
    std::map<const ir::CpAsync*, FragmentTable> copies;
    Places places;                // of shared memory, alike in all blocks; a Shadow of a skeleton run has one record each
    std::vector<Shadow> shadows;  // to be used again by the next cluster or run
};

class Machine {
public:
    Machine(const ir::Kernel& kernel, const std::vector<std::int64_t>& sizes, const std::vector<double>& scalars,
            std::vector<TensorData>& tensors, const Options& options);
    Outcome run();

private:
    // setup
    bool prepare();
    std::array<std::int64_t, 3> block_index(std::int64_t cluster, int rank) const;
    void start_cluster(std::int64_t cluster);
    void run_clusters();
    void run_cluster();
    bool progress_async(bool all);
    void report_progress(std::int64_t clusters_done);

    // control
    bool step(Warp& w);          // false: blocked
    bool leave_frames(Warp& w);  // those that have ended; false: blocked
    void end_warp(Warp& w);
    bool enter_loop(Warp& w, const Stmt& s, const ir::For& f);
    void enter_branch(Warp& w, const Stmt& s, const ir::If& i);
    void enter_role(Warp& w, const ir::Role& r);
    void enter_elected(Warp& w, const ir::Elect& e);
    bool execute(Warp& w, const Stmt& s);  // false: blocked, to be tried again
    void assign(Warp& w, const Stmt& s, const ir::Assign& op);
    void wait_for_copies(Warp& w, int pending);
    void arrive_with_copies(Warp& w, const Stmt& s, const ir::CpAsyncArrive& op);
    void wait_for_bulk(Warp& w, int pending);
    void init_barrier(Warp& w, const Stmt& s, const ir::BarrierInit& op);
    void cluster_arrive(Warp& w, const Stmt& s, bool relaxed);
    bool cluster_wait(Warp& w, const Stmt& s);
    void proxy_fence(Warp& w);
    bool wait_for_wgmma(Warp& w, int pending);
    std::optional<std::int64_t> value(const Warp& w, const ir::Expr& e, const Stmt& s);
    std::int64_t must(const Warp& w, const ir::Expr& e, const Stmt& s);
    Group& group_of(Warp& w) { return *w.groups.back(); }
    int warp_in_group(const Warp& w) const { return w.index - w.groups.back()->first_warp; }

    // registers, ordinary memory accesses and tensor cores (registers.cpp, global_memory.cpp, shared_memory.cpp, tensor_core.cpp)
    void compute(Warp& w, const Stmt& s, const ir::Compute& op);
    void reduce(Warp& w, const Stmt& s, const ir::Reduce& op);
    void scan(Warp& w, const Stmt& s, const ir::Scan& op);
    void shuffle(Warp& w, const Stmt& s, const ir::Shuffle& op);
    bool vote(Warp& w, const Stmt& s, int fragment);  // a true element in this warp; without values: yes, the branch has all the events
    void load_global(Warp& w, const Stmt& s, const ir::LoadGlobal& op);
    void store_global(Warp& w, const Stmt& s, const ir::GlobalView& dst, int src, int vector_bytes, bool atomic);
    bool vector_fits(std::optional<std::int64_t> offset, int v, int per_vector, int bytes, int tensor, std::optional<std::int64_t>& start,
                     const Warp& w, int lane, const Stmt& s);
    bool shared_vector_fits(int address, int v, int size, int bytes, int& start, const ir::SharedBuffer& buffer, const Warp& w, int lane,
                            const Stmt& s);
    // The block whose shared memory a view means; -1 when its rank does not exist (reported).
    int block_of(Warp& w, const ir::SharedView& view, const Stmt& s);
    // A peer's block is reached: it must have started, and must not have ended (checked at the end, by `check_exits`).
    void visit_peer(int block, Warp& w, std::uint32_t time, const Stmt& s);
    void check_exits();
    bool known_in_block(std::size_t block, int actor, std::uint32_t time) const;
    bool all_ended(std::int64_t round);  // every warp has ended this iteration (Options::in_step)
    void load_shared(Warp& w, const Stmt& s, const ir::LoadShared& op);
    void store_shared(Warp& w, const Stmt& s, const ir::StoreShared& op);
    void cp_async(Warp& w, const Stmt& s, const ir::CpAsync& op);
    void mma(Warp& w, const Stmt& s, const ir::Mma& op);
    double element(Warp& w, const Stmt& s, const ir::ElementNode& e, int dst, int t, int v, const int* coordinate);

    // the device form (device.cpp)
    double coordinate_part(const ir::ElementNode& e, int dst, int t, int v) const;
    bool all_ones(Warp& w, int factors);
    bool looks(Warp& w, const Stmt& s, const ir::Search& how, int dst, int t);
    const ir::ElementNode& masked_value(Warp& w, const Stmt& s, const ir::Compute& op, const ir::MaskSplit& how, bool everywhere, int t,
                                        int v);
    void fold_as_planned(Warp& w, const Stmt& s, const ir::Reduce& op, const ir::FoldPlan& plan);
    static void count_ring(Warp& w, const ir::Assign& op, const ir::RingCounter& ring);
    void prepare_access(Warp& w, const Stmt& s, const ir::GlobalView& view, const std::vector<std::int64_t>& origin);
    std::optional<std::int64_t> planned_offset(const ir::GlobalView& view, const ir::AccessPlan& plan,
                                               const std::vector<std::int64_t>& origin,
                                               const std::vector<std::optional<std::int64_t>>& limits, const int* coordinate,
                                               const int* unit, std::int64_t gathered, const Stmt& s, const Warp& w);

    // history (history.cpp), all only where options_.history is set
    void begin_event(Warp& w, const Stmt& s);
    MadeId element_made(Warp& w, const Stmt& s, const ir::ElementNode& e, int dst, int t, int v, const int* coordinate);
    MadeId made_in_arena(int block, int address, int bytes) const;
    void put_in_arena(int block, int address, int bytes, MadeId made);
    MadeId made_in_tensor(int tensor, std::int64_t offset);
    void put_in_tensor(int tensor, std::int64_t offset, MadeId made, bool atomic, std::uint32_t event, int thread, const int* cell,
                       std::size_t rank);
    int thread_of(const Warp& w, int t) const { return 32 * w.groups.back()->first_warp + t; }
    void note_arrival(int rank, int slot, std::uint32_t event, int arrivals, std::int64_t expected_bytes, std::int64_t landed_bytes);
    StuckWarps stuck_at(const Warp& w);
    const Access* last_writer(int tensor, std::int64_t offset);
    std::string tensor_place(int tensor, std::int64_t offset) const;  // "C[5, 7]"
    void expect(Warp& w, const Stmt& s, const ir::Expect& op);
    const std::vector<int>& slot_table(int leaf, const std::vector<int>& dims, int dst, const std::vector<int>& offset = {});
    void check_leaves(Warp& w, const Stmt& s, const ir::ElementNode& e, bool& ok);

    // skeleton runs (skeleton.cpp): which places in shared memory a statement touches, remembered per origin
    const Footprint& footprint(const Warp& w, const Stmt& s, const std::vector<std::int64_t>& origin, int which,
                               const std::function<void(Footprint&)>& make);
    void touch(int block, const Footprint& f, bool is_write, Access access, const Knowledge& k, const Warp& w, const Stmt& s);
    void skeleton_move(Warp& w, const Stmt& s, const ir::SharedView& view, int fragment_id, bool is_write);
    void skeleton_box(TmaTask& t, int rank, const ir::SharedView& view, const ir::TensorMap& map, bool is_write, const Access& access);
    void skeleton_wgmma(Warp& w, WgmmaTask& t);
    std::uint32_t snapshot_of(Warp& w);
    int choose_granule() const;

    // asynchronous work (async.cpp)
    void land_copies(Warp& w, std::vector<CopyTask>& tasks, const Knowledge& waiter);
    void finish_wgmma(Warp& w, WgmmaTask& task);
    void issue_wgmma(Warp& w, const Stmt& s, const ir::Wgmma& op);
    void release_fragments(Warp& w, const WgmmaTask& task);
    void tma_issue(Warp& w, const Stmt& s);
    void tma_load_piece(TmaTask& t);  // the next piece of the box arrives in one of the blocks that receive it
    int land_box_part(TmaTask& t, int rank, int from, int bytes, const Access& a);
    void tma_store_read(TmaTask& t);
    void advance_barrier(BarrierSlot& b, const target::MbarrierStep& step);
    void end_phase(BarrierSlot& b);

    // messages of a team (team.cpp)
    void run_team();
    bool same_messages() const;
    void team_send(Warp& w, const Stmt& s, const ir::TeamSend& op);
    void team_receive(Warp& w, const Stmt& s, const ir::TeamReceive& op);
    void check_messages(const Warp& w);

    // barriers (sync.cpp)
    void count_arrival(Warp& w, const Stmt& s, const Knowledge& round_before);
    void count_in_phase(Warp& w, const Stmt& s, const BarrierSlot& b);
    void wait_in_phase(Warp& w, const Stmt& s, const BarrierSlot& b);
    bool named_sync(Warp& w, const Stmt& s, std::int64_t id, int threads, bool wait);
    bool barrier_wait(Warp& w, const Stmt& s, const ir::BarrierWait& op);
    void barrier_arrive(Warp& w, const Stmt& s, const ir::BarrierRef& ref, ir::Scope release, int count, std::int64_t bytes);
    void pass_to(BarrierSlot& b, bool same_block, ir::Scope release, const Knowledge& known, const Warp& w) const;
    static void learn_from(Warp& w, const BarrierSlot& b, ir::Scope acquire);
    void block_fence(Warp& w);
    Knowledge without_ordinary(Knowledge k) const;
    std::optional<std::pair<int, int>> barrier_slot(Warp& w, const Stmt& s, const ir::BarrierRef& ref);  // block, slot

    // memory access with checks
    bool shared_touch(int block, int address, int bytes, bool is_write, const Access& access, const Knowledge& k, const Warp* w,
                      const Stmt& s);
    std::optional<std::int64_t> global_offset(const ir::GlobalView& view, const std::vector<std::int64_t>& origin,
                                              const std::vector<std::optional<std::int64_t>>& limits, const int* coordinate,
                                              const int* unit, std::int64_t gathered, bool& oob, const ir::Stmt& s, const Warp& w);
    void global_touch(int tensor, std::int64_t offset, bool is_write, bool atomic, const Warp& w, int thread, const Stmt& s,
                      const Access& access, const Knowledge& k);
    FragmentState& fragment(Group& g, int id);
    bool readable(Warp& w, const Stmt& s, int id);  // initialised and not in flight
    void written(Warp& w, const Stmt& s, int id);
    // At a barrier of whole warps: what every lane waited for by itself is now known to all.
    void share_own_copies(Warp& w) const {
        auto& c = w.knows.order[static_cast<std::size_t>(actor_copies(w.number))];
        c = std::max(c, w.own_copies);
    }
    Access access_of(const Warp& w, int lane, const Stmt& s) const;
    void warp_barrier(Warp& w);  // lanes are ordered: a new epoch
    void enter_elect(Warp& w);
    void leave_elect(Warp& w);
    // What an arrival of all lanes passes on: also what lane 0 alone has learnt.
    void pass_on(const Warp& w, Knowledge& gathering) const {
        gathering.join_from(w.knows);
        if (w.lane0_ahead) gathering.join_from(w.lane0);
    }
    // What one elected thread may pass on: not what the other lanes did since the last warp-level barrier.
    Knowledge known_to_one_thread(const Warp& w) const;
    void tick(Warp& w);  // the warp's own component advances

    struct What {
        FaultKind kind;
        FaultCause cause = FaultCause::other;
        What(FaultKind k, FaultCause c = FaultCause::other) : kind(k), cause(c) {}  // NOLINT: a kind is what happened
    };
    static What what_of(Conflict conflict) {
        return {conflict == Conflict::race ? FaultKind::race : FaultKind::proxy,
                conflict == Conflict::unfenced_read ? FaultCause::unfenced_read : FaultCause::other};
    }
    void fault(What what, std::string message, const Warp* w, int lane, const Stmt& s, const Stmt* other = nullptr,
               std::string element = {}, const Access* now = nullptr, const Access* before = nullptr);
    std::string arena_place(int address) const;
    bool stopped() const { return outcome_.faults.size() >= options_.fault_limit || limit_hit_; }

    const ir::Kernel& k_;
    const ir::RowStarts row_starts_{k_};
    const std::vector<std::int64_t>& sizes_;
    const std::vector<double>& scalars_;
    std::vector<TensorData>& tensors_;
    Options options_;
    Outcome outcome_;
    bool limit_hit_ = false;
    std::int64_t clusters_ = 0;

    std::span<const FragmentTable> tables_;  // those of the cache
    std::map<std::tuple<int, int, std::vector<int>, std::vector<int>>, std::vector<int>> slot_tables_;
    std::map<const void*, std::vector<std::vector<std::pair<int, int>>>> fold_tables_;  // per reduce/scan: per (t, v) of dst
    std::map<const ir::CpAsync*, const FragmentTable*> copy_table_;
    std::vector<int> barrier_base_;  // first slot number of each array
    int slots_ = 0;
    bool refills_ = false;  // ordinary loads read what the copy engine writes
    int granule_ = 2;
    int cluster_size_ = 1;
    std::int64_t grid_[3] = {1, 1, 1};
    std::vector<std::vector<std::int64_t>> dims_;  // of each tensor
    std::vector<std::vector<std::int64_t>> strides_;
    std::vector<bool> tracked_;  // tensors that this launch stores to
    std::vector<std::vector<GlobalCell>> cells_;
    std::vector<PagedShadow> global_shadow_;

    // Of (team, message), what each warp of each block gives to each number: sent in this pass, and in the pass before.
    std::map<std::pair<int, std::int64_t>, std::vector<double>> sent_, received_;

    // The loops a warp is in: see DependenceSample.
    struct Snapshot {
        std::vector<std::pair<int, std::int64_t>> values;
        std::vector<std::int64_t> ends;
        friend bool operator<(const Snapshot& a, const Snapshot& b) { return std::tie(a.values, a.ends) < std::tie(b.values, b.ends); }
    };
    std::vector<Snapshot> snapshots_;
    std::map<Snapshot, std::uint32_t> snapshot_ids_;

    // the running cluster
    std::int64_t cluster_ = 0;
    std::vector<Block> blocks_;
    std::vector<Warp> warps_;
    std::vector<std::unique_ptr<Group>> groups_;
    std::vector<TmaTask> tma_;
    std::vector<int> open_loads_;                       // of tma_: boxes that have not arrived
    std::optional<std::pair<int, const Stmt*>> mixed_;  // a warp, and its arrival at a barrier that is in no order with the round before
    std::optional<std::pair<int, const Stmt*>> early_;  // the same, where asynchronous work that ends that round may be under way
    std::optional<std::pair<int, const Stmt*>> uncounted_;  // a warp, and its arrival of count 0 that a phase may not wait for
    std::optional<std::pair<int, const Stmt*>> overrun_;    // a warp, and its wait that a phase may overtake
    std::optional<std::pair<int, const Stmt*>> stale_;      // a warp, and its wait that an older phase of this parity may let through
    struct SeenDependence {
        const Stmt *read, *write;
        std::uint32_t at_read, at_write;  // numbers of snapshots
        bool operator==(const SeenDependence&) const = default;
    };
    struct SeenHash {
        std::size_t operator()(const SeenDependence& d) const {
            const std::size_t stmts = reinterpret_cast<std::size_t>(d.read) * 31 + reinterpret_cast<std::size_t>(d.write);
            const std::size_t h = (stmts ^ (std::size_t{d.at_read} << 32 | d.at_write)) * 0x9e3779b97f4a7c15u;
            return h ^ h >> 32;
        }
    };
    std::unordered_set<SeenDependence, SeenHash> seen_dependences_;
    NamedBarrier cluster_barrier_;
    int actors_ = 0;
    std::mt19937_64 random_;
    std::size_t turn_ = 0;
    std::int64_t rounds_ended_ = 0;          // by all warps
    Access writer_;                          // what last_writer() points to
    std::vector<std::int64_t> access_ends_;  // of the access that is executed: where each dimension of its view ends
    bool access_inside_ = false;             // its uniform test found the whole tile inside

    int actor_copies(int warp) const { return static_cast<int>(warps_.size()) + warp; }
    int actor_bulk(int warp) const { return 2 * static_cast<int>(warps_.size()) + warp; }
    int actor_wgmma(int warp) const { return 3 * static_cast<int>(warps_.size()) + warp; }
    int actor_slot(int block, int slot) const { return 4 * static_cast<int>(warps_.size()) + block * slots_ + slot; }
};

// What a conflict in shared memory is, in words.
std::string message_of(Conflict conflict);

// Factors of a matrix product, decoded once; and one instruction's sum of products onto an f32 accumulator, as the hardware
// cuts and rounds it (target/tensor_core.h). Types without such a rule: exact sum, rounded once.
struct MatrixOperand {
    target::DType type = target::DType::BF16;
    std::vector<double> values;
    std::vector<target::MatrixFactor> factors;  // empty: no rule for the type
    MatrixOperand() = default;
    MatrixOperand(target::DType t, std::vector<double> v);
};
double product_sum(target::MatrixUnit unit, const MatrixOperand& a, std::size_t a_first, const MatrixOperand& b, std::size_t b_first,
                   std::size_t count, double c, target::DType acc);

double plain_result(ir::ElementOp op, const double* args);  // ElementNode::plain
double load_value(const std::uint8_t* bytes, target::DType type);
void store_value(std::uint8_t* bytes, target::DType type, double value);
double rounded(double value, target::DType type);

}  // namespace tw::emulate
