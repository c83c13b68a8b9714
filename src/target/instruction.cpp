#include "target/instruction.h"

#include <array>
#include <cassert>

namespace tw::target {

namespace {

// Chapters of the PTX ISA (numbers as in versions 8.7 to 9.x; titles are stable).
#define MOVE "9.7.9 Data Movement and Conversion Instructions: "
#define SYNC "9.7.13 Parallel Synchronization and Communication Instructions: "
#define MMA "9.7.14 Warp-level Matrix Instructions: "
#define WGMMA "9.7.15 Asynchronous Warpgroup-level Matrix Instructions: "
#define MISC "9.7.19 Miscellaneous Instructions: "

constexpr MemoryEffect nothing{};
constexpr MemoryEffect registers{Space::Register, Proxy::None};
constexpr MemoryEffect global_generic{Space::Global, Proxy::Generic};
constexpr MemoryEffect global_async{Space::Global, Proxy::Async};
constexpr MemoryEffect shared_generic{Space::SharedCta, Proxy::Generic};
constexpr MemoryEffect shared_async{Space::SharedCta, Proxy::Async};
constexpr MemoryEffect cluster_generic{Space::SharedCluster, Proxy::Generic};
constexpr MemoryEffect cluster_async{Space::SharedCluster, Proxy::Async};

using C = Convergence;
using K = Completion;
using F = Feature;
constexpr std::nullopt_t always = std::nullopt;

// One row for each Op, in the order of the enumeration.
constexpr std::array<Instruction, op_count> instruction_table = {{
    {Op::LoadVector, "ld.global", "ld.global{.nc}{.v2,.v4}.{type} {d}, [a]", always, C::Thread, global_generic, registers, K::Immediate,
     "element bytes x count", "vector_access_legal, vector_access_aligned",
     "the address is a multiple of the access width; .nc only for data no thread writes during the kernel", MOVE "ld"},
    {Op::StoreVector, "st.global", "st.global{.v2,.v4}.{type} [a], {b}", always, C::Thread, registers, global_generic, K::Immediate,
     "element bytes x count", "vector_access_legal, vector_access_aligned",
     "visible to other threads after synchronisation at the scope that contains both", MOVE "st"},
    {Op::LoadShared, "ld.shared", "ld.shared{.v2,.v4}.{type} {d}, [a]", always, C::Thread, shared_generic, registers, K::Immediate,
     "element bytes x count", "vector_access_legal, vector_access_aligned",
     "the writer's data must have been made visible first: a barrier for stores, a completed wait for asynchronous writes", MOVE "ld"},
    {Op::StoreShared, "st.shared", "st.shared{.v2,.v4}.{type} [a], {b}", always, C::Thread, registers, shared_generic, K::Immediate,
     "element bytes x count", "vector_access_legal, vector_access_aligned",
     "before wgmma, TMA or bulk copies read it: fence.proxy.async by the writer, then synchronisation", MOVE "st"},

    {Op::CpAsync, "cp.async", "cp.async.{ca,cg}.shared.global [dst], [src], cp-size{, src-size}", F::CpAsync, C::Thread, global_generic,
     shared_generic, K::CpAsyncGroup, "cp-size; bytes past src-size are zero", "cp_async_legal, cp_async_operands_legal",
     "writes through the generic proxy: complete (wait_group or mbarrier), then fence.proxy.async before wgmma or TMA reads",
     MOVE "cp.async"},
    {Op::CpAsyncCommit, "cp.async.commit_group", "cp.async.commit_group", F::CpAsync, C::Thread, nothing, nothing, K::Immediate, "0", "-",
     "the thread's cp.async since its last commit form one group, in order", MOVE "cp.async.commit_group"},
    {Op::CpAsyncWait, "cp.async.wait_group", "cp.async.wait_group N", F::CpAsync, C::Thread, nothing, nothing, K::Blocking, "0",
     "wait_group_legal", "all but the newest N groups of this thread have landed, visible to this thread only",
     MOVE "cp.async.wait_group / cp.async.wait_all"},
    {Op::CpAsyncMbarrierArrive, "cp.async.mbarrier.arrive", "cp.async.mbarrier.arrive{.noinc}.shared::cta.b64 [bar]", F::CpAsyncMbarrier,
     C::Thread, nothing, shared_generic, K::CpAsyncGroup, "0", "cp_async_mbarrier_pending_change",
     "arrives when this thread's earlier cp.async have landed; .noinc is part of the count, plain is neutral",
     SYNC "cp.async.mbarrier.arrive"},

    {Op::BulkLoad, "bulk.load", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [dst], [src], size, [bar]", F::Bulk,
     C::Thread, global_async, cluster_async, K::MbarrierTx, "size", "bulk_copy_legal",
     "done when the mbarrier's phase that counts its bytes is over; a waiter then sees the data", MOVE "cp.async.bulk"},
    {Op::BulkStore, "bulk.store", "cp.async.bulk.global.shared::cta.bulk_group [dst], [src], size", F::Bulk, C::Thread, shared_async,
     global_async, K::BulkGroup, "size", "bulk_copy_legal",
     "generic writes of the source need fence.proxy.async and synchronisation first; source reusable after wait_group.read",
     MOVE "cp.async.bulk"},
    {Op::BulkToCluster, "bulk.to_cluster",
     "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [dst], [src], size, [bar]", F::Bulk, C::Thread, shared_async,
     cluster_async, K::MbarrierTx, "size", "bulk_copy_legal",
     "destination and mbarrier are in the same block of the cluster, which must not have exited", MOVE "cp.async.bulk"},
    {Op::BulkReduceAdd, "bulk.reduce_add", "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{type} [dst], [src], size", F::Bulk,
     C::Thread, shared_async, global_async, K::BulkGroup, "size", "bulk_copy_legal",
     "each element is added atomically at gpu scope, relaxed; source as for bulk.store", MOVE "cp.reduce.async.bulk"},
    {Op::BulkCommit, "bulk.commit_group", "cp.async.bulk.commit_group", F::Bulk, C::Thread, nothing, nothing, K::Immediate, "0", "-",
     "the thread's bulk operations with .bulk_group since its last commit form one group", MOVE "cp.async.bulk.commit_group"},
    {Op::BulkWait, "bulk.wait_group", "cp.async.bulk.wait_group N", F::Bulk, C::Thread, nothing, nothing, K::Blocking, "0",
     "wait_group_legal", "all but the newest N bulk groups are complete: sources read, destinations written, visible here",
     MOVE "cp.async.bulk.wait_group"},
    {Op::BulkWaitRead, "bulk.wait_group.read", "cp.async.bulk.wait_group.read N", F::Bulk, C::Thread, nothing, nothing, K::Blocking, "0",
     "wait_group_legal", "all but the newest N bulk groups have read their sources; writes may be under way",
     MOVE "cp.async.bulk.wait_group"},

    {Op::TmaLoad, "tma.load",
     "cp.async.bulk.tensor.{1-5}d.shared::cluster.global.mbarrier::complete_tx::bytes{.L2::cache_hint} [dst], [map, {c}], "
     "[bar]{, hint}",
     F::Tma, C::Thread, global_async, cluster_async, K::MbarrierTx, "box_bytes", "tensor_map_legal, tma_load_legal",
     "whole box, outside elements filled; done when the phase that counts box_bytes is over", MOVE "cp.async.bulk.tensor"},
    {Op::TmaLoadMulticast, "tma.load.multicast",
     "cp.async.bulk.tensor.{1-5}d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [dst], [map, {c}], "
     "[bar], mask",
     F::Tma, C::Thread, global_async, cluster_async, K::MbarrierTx, "box_bytes in each block of the mask", "multicast_legal",
     "same offset and same barrier offset in each block of the mask; every one of them must have freed the slot",
     MOVE "cp.async.bulk.tensor"},
    {Op::TmaStore, "tma.store", "cp.async.bulk.tensor.{1-5}d.global.shared::cta.tile.bulk_group [map, {c}], [src]", F::Tma, C::Thread,
     shared_async, global_async, K::BulkGroup, "box_bytes less outside elements", "tma_store_legal",
     "generic writes of the source need fence.proxy.async and synchronisation first; source reusable after wait_group.read",
     MOVE "cp.async.bulk.tensor"},
    {Op::TmaReduceAdd, "tma.reduce_add", "cp.reduce.async.bulk.tensor.{1-5}d.global.shared::cta.add.tile.bulk_group [map, {c}], [src]",
     F::Tma, C::Thread, shared_async, global_async, K::BulkGroup, "box_bytes less outside elements", "tma_store_legal",
     "as tma.store, each element added atomically and relaxed; the destination must have been initialised",
     MOVE "cp.reduce.async.bulk.tensor"},
    {Op::TmaPrefetchDescriptor, "tma.prefetch_descriptor", "prefetch.tensormap [map]", F::Tma, C::Thread,
     MemoryEffect{Space::Global, Proxy::Tensormap}, nothing, K::Immediate, "128", "-",
     "a hint; the tensor map is in const, param or global memory", MOVE "prefetch, prefetchu"},

    {Op::MbarrierInit, "mbarrier.init", "mbarrier.init.shared::cta.b64 [bar], count", F::Mbarrier, C::Thread, nothing, shared_generic,
     K::Immediate, "8", "mbarrier_init_legal",
     "before any other thread or proxy uses it: fence.mbarrier_init, then a block or cluster barrier", SYNC "mbarrier.init"},
    {Op::MbarrierInval, "mbarrier.inval", "mbarrier.inval.shared::cta.b64 [bar]", F::Mbarrier, C::Thread, nothing, shared_generic,
     K::Immediate, "8", "-", "before the 8 bytes are used for anything else or initialised again", SYNC "mbarrier.inval"},
    {Op::MbarrierArrive, "mbarrier.arrive", "mbarrier.arrive{.release.cta}.shared::cta.b64 _, [bar]{, count}", F::Mbarrier, C::Thread,
     nothing, shared_generic, K::Immediate, "0", "mbarrier_arrive",
     "release: earlier accesses of this thread happen before the waits that this phase lets through", SYNC "mbarrier.arrive"},
    {Op::MbarrierArriveRemote, "mbarrier.arrive.remote",
     "mapa.shared::cluster.u32 r, bar, rank; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r]", F::Cluster, C::Thread, nothing,
     cluster_generic, K::Immediate, "0", "mbarrier_arrive", "the waiter acquires at cluster scope; the target block must still be running",
     SYNC "mbarrier.arrive"},
    {Op::MbarrierExpectTx, "mbarrier.expect_tx", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], bytes", F::MbarrierTx, C::Thread,
     nothing, shared_generic, K::Immediate, "0", "mbarrier_expect_tx", "raises the byte count of the current phase; no arrival",
     SYNC "mbarrier.expect_tx"},
    {Op::MbarrierArriveExpectTx, "mbarrier.arrive.expect_tx", "mbarrier.arrive.expect_tx{.release.cta}.shared::cta.b64 _, [bar], bytes",
     F::MbarrierTx, C::Thread, nothing, shared_generic, K::Immediate, "0", "mbarrier_arrive_expect_tx",
     "raises the byte count, then arrives; bytes = sum over the loads that name this barrier in this phase", SYNC "mbarrier.arrive"},
    {Op::MbarrierTryWait, "mbarrier.try_wait", "mbarrier.try_wait.parity{.acquire.cta}.shared::cta.b64 p, [bar], parity", F::MbarrierTx,
     C::Thread, shared_generic, nothing, K::Blocking, "0", "mbarrier_wait_parity",
     "repeated until true; acquire: sees what arrived before, and asynchronous writes counted in the phase",
     SYNC "mbarrier.test_wait / mbarrier.try_wait"},

    {Op::BarSync, "bar.sync", "bar.sync id, threads", always, C::Warp, nothing, nothing, K::Blocking, "0", "named_barrier_legal",
     "waits for `threads` arrivals in whole warps; orders memory accesses among the participants", SYNC "bar, barrier"},
    {Op::BarArrive, "bar.arrive", "bar.arrive id, threads", always, C::Warp, nothing, nothing, K::Immediate, "0", "named_barrier_legal",
     "counts towards the same total as bar.sync on that id and does not wait", SYNC "bar, barrier"},
    {Op::Syncthreads, "bar.sync.all", "bar.sync 0", always, C::Block, nothing, nothing, K::Blocking, "0", "-",
     "every thread of the block that has not exited", SYNC "bar, barrier"},
    {Op::Syncwarp, "bar.warp.sync", "bar.warp.sync mask", always, C::Warp, nothing, nothing, K::Blocking, "0", "-",
     "orders memory accesses among the lanes of the mask", SYNC "bar.warp.sync"},
    {Op::ClusterArrive, "barrier.cluster.arrive", "barrier.cluster.arrive.release.aligned", F::Cluster, C::Warp, nothing, nothing,
     K::Immediate, "0", "cluster_legal", "every thread of the cluster arrives once before any arrives again", SYNC "barrier.cluster"},
    {Op::ClusterWait, "barrier.cluster.wait", "barrier.cluster.wait.acquire.aligned", F::Cluster, C::Warp, nothing, nothing, K::Blocking,
     "0", "cluster_legal", "after this thread's arrive; all the cluster's threads have arrived", SYNC "barrier.cluster"},

    {Op::FenceProxyAsync, "fence.proxy.async", "fence.proxy.async{.shared::cta,.global}", F::ProxyFence, C::Thread, nothing, nothing,
     K::Immediate, "0", "-", "orders this thread's generic accesses (and those it has acquired) with later async-proxy ones, both ways",
     SYNC "membar, fence"},
    {Op::FenceMbarrierInit, "fence.mbarrier_init", "fence.mbarrier_init.release.cluster", F::ProxyFence, C::Thread, nothing, nothing,
     K::Immediate, "0", "-", "makes this thread's mbarrier.init visible to the cluster and the async proxy", SYNC "membar, fence"},
    {Op::FenceAcqRelGpu, "fence.acq_rel.gpu", "fence.acq_rel.gpu", always, C::Thread, nothing, nothing, K::Immediate, "0", "-",
     "orders this thread's accesses at gpu scope, for flags and counters between blocks", SYNC "membar, fence"},
    {Op::FenceAcqRelCta, "fence.acq_rel.cta", "fence.acq_rel.cta", always, C::Thread, nothing, nothing, K::Immediate, "0", "-",
     "orders this thread's accesses at block scope", SYNC "membar, fence"},
    {Op::FenceTensormap, "fence.proxy.tensormap", "fence.proxy.tensormap::generic.acquire.gpu [map], 128", F::Tma, C::Thread, nothing,
     nothing, K::Immediate, "128", "-", "between a tensor map changed in memory (released) and its use by TMA in this thread",
     SYNC "membar, fence"},

    {Op::MmaSync, "mma.sync", "mma.sync.aligned.{shape}.row.col.{d}.{a}.{b}.{c} {D}, {A}, {B}, {C}", F::MmaSync16, C::Warp, registers,
     registers, K::Immediate, "0", "mma_legal", "all lanes, registers in the fragment maps of mma.h", MMA "mma"},
    {Op::Ldmatrix, "ldmatrix", "ldmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}.shared.b16 {d}, [row]", F::Ldmatrix, C::Warp, shared_generic,
     registers, K::Immediate, "128 x count", "matrix_move_legal, matrix_move_address_legal",
     "a generic-proxy read; rows are 16 bytes, 16-byte aligned", MMA "ldmatrix"},
    {Op::Stmatrix, "stmatrix", "stmatrix.sync.aligned.m8n8.{x1,x2,x4}{.trans}.shared.b16 [row], {s}", F::Stmatrix, C::Warp, registers,
     shared_generic, K::Immediate, "128 x count", "matrix_move_legal, matrix_move_address_legal",
     "a generic-proxy write: fence.proxy.async and synchronisation before a TMA store reads it", MMA "stmatrix"},

    {Op::Wgmma, "wgmma.mma_async", "wgmma.mma_async.sync.aligned.m64n{N}k{K}.{d}.{a}.{b} {D}, A, B-desc, p, 1, 1{, tA}{, tB}", F::Wgmma,
     C::Warpgroup, shared_async, registers, K::WgmmaGroup, "A (64 x 32 B when shared) + B (N x 32 B)",
     "wgmma_legal, tile_legal, tile_descriptor_legal",
     "wgmma.fence after register accesses; registers and shared operands belong to it until its group is waited for",
     WGMMA "wgmma.mma_async"},
    {Op::WgmmaFence, "wgmma.fence", "wgmma.fence.sync.aligned", F::Wgmma, C::Warpgroup, nothing, nothing, K::Immediate, "0", "-",
     "before the first wgmma and whenever other instructions touched its registers; not needed between wgmma of one shape on "
     "the same accumulator",
     WGMMA "wgmma.fence"},
    {Op::WgmmaCommit, "wgmma.commit_group", "wgmma.commit_group.sync.aligned", F::Wgmma, C::Warpgroup, nothing, nothing, K::Immediate, "0",
     "-", "the warpgroup's wgmma since its last commit form one group", WGMMA "wgmma.commit_group"},
    {Op::WgmmaWait, "wgmma.wait_group", "wgmma.wait_group.sync.aligned N", F::Wgmma, C::Warpgroup, nothing, nothing, K::Blocking, "0",
     "wgmma_wait_legal", "all but the newest N groups are done: accumulators readable, shared operands and A registers free",
     WGMMA "wgmma.wait_group"},

    {Op::Shuffle, "shfl.sync", "shfl.sync.{up,down,bfly,idx}.b32 d|p, a, b, c, mask", always, C::Warp, registers, registers, K::Immediate,
     "4 per lane", "shuffle_legal", "reading a lane that does not execute it is undefined", MOVE "shfl.sync"},
    {Op::Elect, "elect.sync", "elect.sync _|p, mask", F::ElectSync, C::Warp, registers, registers, K::Immediate, "0", "-",
     "true in exactly one lane of the mask, the same one for the same mask", SYNC "elect.sync"},
    {Op::Vote, "vote.sync", "vote.sync.{all,any,ballot} d, p, mask", always, C::Warp, registers, registers, K::Immediate, "0", "-",
     "over the lanes of the mask, which all execute it", SYNC "vote.sync"},
    {Op::RedAdd, "red.add", "red.{global,shared}.add{.noftz}{.v2,.v4}.{type} [a], b", always, C::Thread, registers, global_generic,
     K::Immediate, "element bytes x count", "memory_reduce_legal, memory_reduce_aligned",
     "atomic per element (vectors are not atomic as a whole), relaxed; order of additions is not fixed", SYNC "red"},
    {Op::AtomAdd, "atom.add", "atom.{global,shared}.add.{type} d, [a], b", always, C::Thread, global_generic, global_generic, K::Immediate,
     "element bytes x count", "memory_reduce_legal, memory_reduce_aligned",
     "atomic, relaxed unless .acq_rel is written; returns the value before", SYNC "atom"},

    {Op::SetMaxNRegInc, "setmaxnreg.inc", "setmaxnreg.inc.sync.aligned.u32 N", F::SetMaxNReg, C::Warpgroup, nothing, nothing, K::Blocking,
     "0", "setmaxnreg_legal, setmaxnreg_plan_legal",
     "waits until the block's pool has the registers; every warp of the warpgroup executes the same one", MISC "setmaxnreg"},
    {Op::SetMaxNRegDec, "setmaxnreg.dec", "setmaxnreg.dec.sync.aligned.u32 N", F::SetMaxNReg, C::Warpgroup, nothing, nothing, K::Immediate,
     "0", "setmaxnreg_legal, setmaxnreg_plan_legal",
     "returns registers to the block's pool; every warp of the warpgroup executes the same one", MISC "setmaxnreg"},

    {Op::GridDepWait, "griddepcontrol.wait", "griddepcontrol.wait", F::GridDepControl, C::Thread, nothing, nothing, K::Blocking, "0", "-",
     "earlier grids this one depends on are complete and their memory visible", SYNC "griddepcontrol"},
    {Op::GridDepLaunch, "griddepcontrol.launch_dependents", "griddepcontrol.launch_dependents", F::GridDepControl, C::Thread, nothing,
     nothing, K::Immediate, "0", "-", "dependents may be scheduled; it publishes no memory", SYNC "griddepcontrol"},
    {Op::MapShared, "mapa", "mapa.shared::cluster.u32 d, a, rank", F::Cluster, C::Thread, registers, registers, K::Immediate, "0",
     "cluster_legal", "the address of the same offset in another block of the cluster", MOVE "mapa"},
    {Op::Convert, "cvt", "cvt{.rn,.rna,.rzi,...}{.satfinite}.{to}.{from} d, a", always, C::Thread, registers, registers, K::Immediate, "0",
     "convert", "the conversion routines of dtype.h are bit for bit what it does", MOVE "cvt"},
}};

using S = OrderingStep;
using A = Actor;

constexpr std::array thread_sync = {S::ThreadSync};
constexpr std::array proxy_then_sync = {S::FenceProxyAsync, S::ThreadSync};
constexpr std::array landed_then_sync = {S::CpAsyncWait, S::ThreadSync};
constexpr std::array landed_proxy_sync = {S::CpAsyncWait, S::FenceProxyAsync, S::ThreadSync};
constexpr std::array phase = {S::MbarrierWait};
constexpr std::array bulk_read_then_sync = {S::BulkWaitRead, S::ThreadSync};
constexpr std::array bulk_then_gpu = {S::BulkWait, S::FenceGpu, S::ThreadSync};
constexpr std::array group_then_sync = {S::WgmmaWait, S::ThreadSync};
constexpr std::array group = {S::WgmmaWait};
constexpr std::array register_fence = {S::WgmmaFence};
constexpr std::array init_then_sync = {S::FenceMbarrierInit, S::ThreadSync};
constexpr std::array init_then_cluster = {S::FenceMbarrierInit, S::ClusterSync};
constexpr std::array tensormap_fence = {S::FenceTensormap};
constexpr std::array cluster_sync = {S::ClusterSync};

constexpr std::array rules = {
    OrderingRule{A::GenericWrite, A::GenericRead, thread_sync, "a store is seen by another thread after synchronisation",
                 "8.10 Memory Consistency Model: Axioms, Causality"},
    OrderingRule{A::GenericRead, A::GenericWrite, thread_sync, "a location is overwritten only after its readers are past",
                 "8.10 Memory Consistency Model: Axioms, Causality"},
    OrderingRule{A::GenericWrite, A::GenericWrite, thread_sync, "two stores to one location need an order",
                 "8.10 Memory Consistency Model: Axioms, Causality"},
    OrderingRule{A::GenericWrite, A::WgmmaSharedRead, proxy_then_sync,
                 "shared memory written by stores is fenced to the async proxy by the writer before wgmma reads it",
                 WGMMA "Async Proxy (9.7.15.4)"},
    OrderingRule{A::GenericWrite, A::TmaStoreRead, proxy_then_sync,
                 "shared memory written by stores is fenced to the async proxy by the writer before TMA reads it",
                 "8.6 Proxies; " MOVE "Asynchronous copy, Async proxy"},
    OrderingRule{A::GenericWrite, A::TmaLoadWrite, proxy_then_sync, "a TMA load must not overtake earlier stores to the same shared memory",
                 "8.6 Proxies"},
    OrderingRule{A::GenericRead, A::TmaLoadWrite, proxy_then_sync,
                 "a slot is refilled only after its readers have fenced and arrived: a load may return after the barrier",
                 "8.6 Proxies; 8.10 Memory Consistency Model: Axioms, Causality"},
    OrderingRule{A::GenericWrite, A::TmaLoadRead, proxy_then_sync,
                 "global memory written by stores in this kernel is fenced to the async proxy before TMA loads it", "8.6 Proxies"},
    OrderingRule{A::CpAsyncWrite, A::GenericRead, landed_then_sync,
                 "cp.async data is there after the issuing thread's wait, and for others after synchronisation",
                 MOVE "cp.async.wait_group / cp.async.wait_all"},
    OrderingRule{A::CpAsyncWrite, A::WgmmaSharedRead, landed_proxy_sync,
                 "cp.async writes through the generic proxy: landed, then fenced, then synchronised",
                 MOVE "Non-bulk copy; " WGMMA "Async Proxy (9.7.15.4)"},
    OrderingRule{A::CpAsyncWrite, A::TmaStoreRead, landed_proxy_sync,
                 "cp.async writes through the generic proxy: landed, then fenced, then synchronised", MOVE "Non-bulk copy"},
    OrderingRule{A::CpAsyncWrite, A::GenericWrite, landed_then_sync, "a pending cp.async would overwrite the store",
                 MOVE "cp.async.wait_group / cp.async.wait_all"},
    OrderingRule{A::GenericRead, A::CpAsyncWrite, thread_sync, "a slot is refilled only after its readers are past",
                 "8.10 Memory Consistency Model: Axioms, Causality"},
    OrderingRule{A::WgmmaSharedRead, A::CpAsyncWrite, group_then_sync, "shared operands are free when the wgmma group is waited for",
                 WGMMA "wgmma.wait_group"},
    OrderingRule{A::TmaLoadWrite, A::GenericRead, phase,
                 "complete_tx publishes the bytes: a thread that has waited for the phase sees them, no fence needed",
                 SYNC "mbarrier, complete-tx operation"},
    OrderingRule{A::TmaLoadWrite, A::WgmmaSharedRead, phase,
                 "complete_tx publishes the bytes: a warpgroup whose threads have waited for the phase may issue wgmma",
                 SYNC "mbarrier, complete-tx operation"},
    OrderingRule{A::TmaLoadWrite, A::TmaStoreRead, phase, "the issuing thread has waited for the phase",
                 SYNC "mbarrier, complete-tx operation"},
    OrderingRule{A::TmaLoadWrite, A::GenericWrite, phase, "a pending load would overwrite the store",
                 SYNC "mbarrier, complete-tx operation"},
    OrderingRule{A::TmaLoadWrite, A::TmaLoadWrite, phase, "two loads into one slot need the first phase to be over",
                 SYNC "mbarrier, complete-tx operation"},
    OrderingRule{A::WgmmaSharedRead, A::TmaLoadWrite, group_then_sync,
                 "a slot is released after the wgmma group that reads it is waited for", WGMMA "wgmma.wait_group"},
    OrderingRule{A::WgmmaSharedRead, A::GenericWrite, group_then_sync, "shared operands are free when the wgmma group is waited for",
                 WGMMA "wgmma.wait_group"},
    OrderingRule{A::TmaStoreRead, A::GenericWrite, bulk_read_then_sync,
                 "a staging buffer is reused after the issuing thread's wait_group.read, and a barrier for other threads",
                 MOVE "cp.async.bulk.wait_group"},
    OrderingRule{A::TmaStoreRead, A::TmaLoadWrite, bulk_read_then_sync,
                 "a staging buffer is reused after the issuing thread's wait_group.read", MOVE "cp.async.bulk.wait_group"},
    OrderingRule{A::TmaStoreRead, A::BlockExit, bulk_read_then_sync, "shared memory must live until the store has read it",
                 MOVE "cp.async.bulk.wait_group"},
    OrderingRule{A::TmaStoreWrite, A::GenericRead, bulk_then_gpu,
                 "another block sees TMA-stored data after wait_group, a gpu-scope release and an acquire",
                 MOVE "cp.async.bulk.wait_group"},
    OrderingRule{A::TmaStoreWrite, A::TmaLoadRead, bulk_then_gpu,
                 "another block's TMA sees TMA-stored data after wait_group, a gpu-scope release and an acquire",
                 MOVE "cp.async.bulk.wait_group"},
    OrderingRule{A::RegisterWrite, A::WgmmaRegisterRead, register_fence,
                 "A fragments or accumulators touched by other instructions need wgmma.fence before wgmma uses them", WGMMA "wgmma.fence"},
    OrderingRule{A::RegisterWrite, A::WgmmaRegisterWrite, register_fence,
                 "accumulators touched by other instructions need wgmma.fence before wgmma uses them", WGMMA "wgmma.fence"},
    OrderingRule{A::RegisterRead, A::WgmmaRegisterWrite, register_fence,
                 "accumulators read by other instructions need wgmma.fence before the next wgmma", WGMMA "wgmma.fence"},
    OrderingRule{A::WgmmaRegisterWrite, A::RegisterRead, group, "accumulators are readable after the group's wait",
                 WGMMA "wgmma.wait_group"},
    OrderingRule{A::WgmmaRegisterWrite, A::RegisterWrite, group, "accumulators belong to wgmma until the group's wait",
                 WGMMA "wgmma.wait_group"},
    OrderingRule{A::WgmmaRegisterRead, A::RegisterWrite, group, "A fragments belong to wgmma until the group's wait",
                 WGMMA "wgmma.wait_group"},
    OrderingRule{A::WgmmaRegisterWrite,
                 A::WgmmaRegisterWrite,
                 {},
                 "wgmma of one shape on the same accumulator are ordered by default",
                 WGMMA "wgmma.fence"},
    OrderingRule{A::MbarrierInit, A::MbarrierUse, thread_sync, "initialised before other threads use it", SYNC "mbarrier.init"},
    OrderingRule{A::MbarrierInit, A::MbarrierUseAsync, init_then_sync,
                 "initialised and fenced before an asynchronous copy may complete on it", SYNC "membar, fence"},
    OrderingRule{A::MbarrierInit, A::MbarrierUseRemote, init_then_cluster,
                 "initialised, fenced and cluster-synchronised before another block arrives on it", SYNC "membar, fence"},
    OrderingRule{A::TensormapWrite, A::TensormapRead, tensormap_fence,
                 "a changed tensor map is acquired through the tensormap proxy before TMA uses it", SYNC "membar, fence"},
    OrderingRule{A::RemoteSharedAccess, A::BlockExit, cluster_sync,
                 "a block stays until no other block of its cluster can touch its shared memory", SYNC "barrier.cluster"},
    OrderingRule{A::BlockExit, A::RemoteSharedAccess, cluster_sync,
                 "a block's shared memory exists from the time it has started, which a cluster barrier shows", SYNC "barrier.cluster"},
};

template <std::size_t N, class E>
std::string_view named(const std::array<std::string_view, N>& names, E e) {
    assert(static_cast<std::size_t>(e) < N);
    return names[static_cast<std::size_t>(e)];
}

}  // namespace

std::span<const Instruction> all_instructions() { return instruction_table; }

const Instruction& info(Op op) {
    const Instruction& row = instruction_table[static_cast<std::size_t>(op)];
    assert(row.op == op);
    return row;
}

std::string_view name(Op op) { return info(op).name; }

std::string_view name(Proxy p) {
    constexpr std::array<std::string_view, 4> names = {"none", "generic", "async", "tensormap"};
    return named(names, p);
}

std::string_view name(Completion c) {
    constexpr std::array<std::string_view, 6> names = {"immediate",  "blocking",    "cp.async group",
                                                       "bulk group", "mbarrier tx", "wgmma group"};
    return named(names, c);
}

std::string_view name(Convergence c) {
    constexpr std::array<std::string_view, 5> names = {"thread", "warp", "warpgroup", "block", "cluster"};
    return named(names, c);
}

bool available(const Arch& arch, Op op) {
    const std::optional<Feature> needs = info(op).needs;
    return !needs || arch.has(*needs);
}

std::string_view name(OrderingStep s) {
    constexpr std::array<std::string_view, 13> names = {
        "thread sync", "cluster sync",  "fence.proxy.async", "fence.mbarrier_init", "fence.proxy.tensormap",
        "fence.gpu",   "cp.async wait", "mbarrier wait",     "bulk wait",           "bulk wait.read",
        "wgmma.fence", "wgmma wait",    "kernel boundary"};
    return named(names, s);
}

std::string_view name(Actor a) {
    constexpr std::array<std::string_view, 20> names = {"generic write",
                                                        "generic read",
                                                        "cp.async write",
                                                        "TMA load write",
                                                        "TMA store read",
                                                        "TMA store write",
                                                        "TMA load read",
                                                        "wgmma shared read",
                                                        "wgmma register read",
                                                        "wgmma register write",
                                                        "register write",
                                                        "register read",
                                                        "mbarrier init",
                                                        "mbarrier use",
                                                        "mbarrier use by async copy",
                                                        "mbarrier use from cluster",
                                                        "tensormap write",
                                                        "tensormap read",
                                                        "remote shared access",
                                                        "block exit"};
    return named(names, a);
}

std::span<const OrderingRule> all_ordering_rules() { return rules; }

const OrderingRule* find_rule(Actor first, Actor second) {
    for (const OrderingRule& r : rules)
        if (r.first == first && r.second == second) return &r;
    return nullptr;
}

}  // namespace tw::target
