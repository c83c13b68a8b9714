// The table of instructions: one row for each operation the last IR may contain, with what everybody needs to know about it:
// who executes it, what it reads and writes and through which proxy, how its completion is observed, and which ordering
// rules bind it. Shapes, maps and operand legality are in the family headers (mma.h, wgmma.h, tma.h, ...).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "target/arch.h"
#include "target/copy.h"

namespace tw::target {

// Memory is reached through proxies; accesses through different ones to the same location need a proxy fence between.
enum class Proxy : std::uint8_t { None, Generic, Async, Tensormap };

// How one learns that the instruction's effect is done.
enum class Completion : std::uint8_t {
    Immediate,     // when the next instruction of the same thread sees it
    Blocking,      // the instruction itself waits
    CpAsyncGroup,  // cp.async.commit_group / wait_group, or cp.async.mbarrier.arrive
    BulkGroup,     // cp.async.bulk.commit_group / wait_group[.read]
    MbarrierTx,    // complete_tx on an mbarrier
    WgmmaGroup,    // wgmma.commit_group / wait_group
};

// The set of threads that must execute the instruction together.
enum class Convergence : std::uint8_t { Thread, Warp, Warpgroup, Block, Cluster };

enum class Op : std::uint8_t {
    LoadVector,
    StoreVector,
    LoadShared,
    StoreShared,
    CpAsync,
    CpAsyncCommit,
    CpAsyncWait,
    CpAsyncMbarrierArrive,
    BulkLoad,
    BulkStore,
    BulkToCluster,
    BulkReduceAdd,
    BulkCommit,
    BulkWait,
    BulkWaitRead,
    TmaLoad,
    TmaLoadMulticast,
    TmaStore,
    TmaReduceAdd,
    TmaPrefetchDescriptor,
    MbarrierInit,
    MbarrierInval,
    MbarrierArrive,
    MbarrierArriveRemote,
    MbarrierExpectTx,
    MbarrierArriveExpectTx,
    MbarrierTryWait,
    BarSync,
    BarArrive,
    Syncthreads,
    Syncwarp,
    ClusterArrive,
    ClusterWait,
    FenceProxyAsync,
    FenceMbarrierInit,
    FenceAcqRelGpu,
    FenceAcqRelCta,
    FenceTensormap,
    MmaSync,
    Ldmatrix,
    Stmatrix,
    Wgmma,
    WgmmaFence,
    WgmmaCommit,
    WgmmaWait,
    Shuffle,
    Elect,
    Vote,
    RedAdd,
    AtomAdd,
    SetMaxNRegInc,
    SetMaxNRegDec,
    GridDepWait,
    GridDepLaunch,
    MapShared,
    Convert,
};
inline constexpr int op_count = static_cast<int>(Op::Convert) + 1;

struct MemoryEffect {
    Space space = Space::None;
    Proxy proxy = Proxy::None;
};

struct Instruction {
    Op op;
    std::string_view name;         // "tma.load"
    std::string_view ptx;          // spelling template; {..} are the parts the family's ptx_name() fills
    std::optional<Feature> needs;  // nullopt: every architecture
    Convergence convergence;
    MemoryEffect reads;
    MemoryEffect writes;
    Completion completion;
    std::string_view bytes;     // bytes moved, as a formula over the family's parameters
    std::string_view legality;  // the function that decides operands
    std::string_view rule;      // one line: what must come before and after
    std::string_view section;   // of the PTX ISA
};

std::span<const Instruction> all_instructions();
const Instruction& info(Op op);
std::string_view name(Op op);
std::string_view name(Proxy p);
std::string_view name(Completion c);
std::string_view name(Convergence c);
bool available(const Arch& arch, Op op);

// ---- ordering rules ----
// "first" then "second" touch the same location (or register). They are ordered when the steps stand between them, in
// this order. ThreadSync stands for any execution synchronisation that makes the first thread's work happen before the
// second's (bar.sync, mbarrier arrive -> wait, cluster barrier, program order when it is one thread).
enum class OrderingStep : std::uint8_t {
    ThreadSync,
    ClusterSync,
    FenceProxyAsync,
    FenceMbarrierInit,
    FenceTensormap,
    FenceGpu,
    CpAsyncWait,   // wait_group that covers it, or cp.async.mbarrier.arrive and a wait on that mbarrier
    MbarrierWait,  // the thread that goes on has waited for the phase the operation's complete_tx ends
    BulkWait,
    BulkWaitRead,
    WgmmaFence,
    WgmmaWait,
    KernelBoundary,
};
std::string_view name(OrderingStep s);

enum class Actor : std::uint8_t {
    GenericWrite,
    GenericRead,      // ld/st, ldmatrix, stmatrix, red/atom
    CpAsyncWrite,     // shared write of cp.async (generic proxy, asynchronous)
    TmaLoadWrite,     // shared write of TMA or bulk load (async proxy)
    TmaStoreRead,     // shared read of TMA or bulk store (async proxy)
    TmaStoreWrite,    // global write of TMA or bulk store (async proxy)
    TmaLoadRead,      // global read of TMA or bulk load (async proxy)
    WgmmaSharedRead,  // A or B from shared memory (async proxy)
    WgmmaRegisterRead,
    WgmmaRegisterWrite,
    RegisterWrite,
    RegisterRead,  // by ordinary instructions
    MbarrierInit,
    MbarrierUse,
    MbarrierUseAsync,
    MbarrierUseRemote,
    TensormapWrite,
    TensormapRead,
    RemoteSharedAccess,
    BlockExit,
};
std::string_view name(Actor a);

struct OrderingRule {
    Actor first;
    Actor second;
    std::span<const OrderingStep> needs;  // in this order; empty: ordered by program order or not a hazard
    std::string_view text;
    std::string_view section;
};
std::span<const OrderingRule> all_ordering_rules();
// nullptr: no rule is stated, which the checker must treat as "not ordered".
const OrderingRule* find_rule(Actor first, Actor second);

}  // namespace tw::target
