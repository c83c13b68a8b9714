// Tilewright's device header: one thin inline-PTX wrapper per hardware instruction that emitted kernels use.
//
// Every function here is one instruction (or the shortest sequence that PTX needs to spell it). Nothing in this file
// makes a decision: layouts, phases, counts and fences are all written by the kernel that calls it.
// Self-contained: no CUDA headers, so NVRTC compiles it without an include path to a toolkit.
//
// Conventions
//   - shared-memory operands are 32-bit shared-window addresses (`u32`), obtained once with smem_addr().
//   - byte counts are bytes, coordinates are elements (innermost first), parities are 0 or 1.
//   - the wgmma wrappers (many registers, generated) live in tw_wgmma_ss.cuh and tw_wgmma_rs.cuh, included at the end.
#pragma once

namespace tw {

using u8 = unsigned char;
using u16 = unsigned short;
using i8 = signed char;
using i16 = short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// A CUtensorMap, opaque to the device. Pass by value as `const __grid_constant__ tw::TensorMap`.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

#define TW_DEVICE __device__ __forceinline__
#define TW_CAT2(a, b) a##b
#define TW_CAT(a, b) TW_CAT2(a, b)

// ---------------------------------------------------------------- addresses, identity, election

TW_DEVICE u32 smem_addr(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

// Warp index of this thread, made uniform across the warp so that role branches do not diverge.
TW_DEVICE u32 warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
TW_DEVICE u32 lane_index() {
  u32 r;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(r));
  return r;
}

// True in exactly one lane of the (converged) warp.
TW_DEVICE bool elect_one() {
  u32 p;
  asm volatile(
      "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(p));
  return p != 0;
}

// ---------------------------------------------------------------- mbarrier

TW_DEVICE void mbarrier_init(u32 bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
// Makes initialised barriers visible to the async proxy and to the other CTAs of the cluster; before sm_90 there is neither.
TW_DEVICE void fence_mbarrier_init() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

TW_DEVICE void mbarrier_arrive(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}
TW_DEVICE void mbarrier_arrive_many(u32 bar, u32 count) {  // one thread stands for `count`
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
TW_DEVICE void mbarrier_arrive_expect_tx(u32 bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
TW_DEVICE void mbarrier_expect_tx(u32 bar, u32 bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
// Arrives on the barrier at the same offset in the CTA `rank` of the cluster (own rank allowed). Releases this thread's
// writes at cluster scope, for data handed over through distributed shared memory: it costs a GPU-wide memory barrier
// (MEMBAR.ALL.GPU in SASS), so never in a k loop.
TW_DEVICE void mbarrier_arrive_cluster(u32 bar, u32 rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}
// The same without releasing anything: for giving back a ring slot whose readers (wgmma, waited for) wrote nothing.
TW_DEVICE void mbarrier_arrive_relaxed_cluster(u32 bar, u32 rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}
TW_DEVICE bool mbarrier_try_wait(u32 bar, u32 parity) {
  u32 done;
  asm volatile(
      "{\n.reg .pred p;\n"
#if __CUDA_ARCH__ >= 900
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
#else
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
#endif
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}
// Returns once the phase with this parity has completed.
TW_DEVICE void mbarrier_wait(u32 bar, u32 parity) {
  while (!mbarrier_try_wait(bar, parity)) {
  }
}
// For barriers that other CTAs of the cluster arrive on with mbarrier_arrive_relaxed_cluster (no data handed over).
TW_DEVICE bool mbarrier_try_wait_relaxed_cluster(u32 bar, u32 parity) {
  u32 done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}
TW_DEVICE void mbarrier_wait_relaxed_cluster(u32 bar, u32 parity) {
  while (!mbarrier_try_wait_relaxed_cluster(bar, parity)) {
  }
}
// Acquiring at cluster scope (invalidates L1 in SASS): for data written by other CTAs of the cluster.
TW_DEVICE bool mbarrier_try_wait_cluster(u32 bar, u32 parity) {
  u32 done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}
TW_DEVICE void mbarrier_wait_cluster(u32 bar, u32 parity) {
  while (!mbarrier_try_wait_cluster(bar, parity)) {
  }
}
// This thread's earlier cp.async copies arrive on the barrier when they land. `noinc`: the arrival is one of the
// barrier's expected count (each participating thread is counted at init).
TW_DEVICE void cp_async_mbarrier_arrive_noinc(u32 bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}
// Without `noinc` the barrier's pending count grows by one first: the arrival is none of the expected count.
TW_DEVICE void cp_async_mbarrier_arrive(u32 bar) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// ---------------------------------------------------------------- fences, barriers, cluster

// Orders this thread's generic-proxy shared-memory accesses before later async-proxy ones (TMA store, wgmma).
TW_DEVICE void fence_proxy_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// The same for all state spaces (global memory written by ordinary stores and then read by TMA).
TW_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
TW_DEVICE void fence_acq_rel_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
TW_DEVICE void fence_acq_rel_cluster() { asm volatile("fence.acq_rel.cluster;" ::: "memory"); }

// Named barrier `id` (1..15; 0 is __syncthreads) over `threads` threads (a multiple of 32).
TW_DEVICE void named_barrier_sync(u32 id, u32 threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
TW_DEVICE void named_barrier_arrive(u32 id, u32 threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

TW_DEVICE u32 cluster_cta_rank() {
  u32 r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
TW_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
TW_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
TW_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
// Execution barrier only: no memory is handed over (start-up after fence_mbarrier_init, or before exit).
TW_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
TW_DEVICE void cluster_sync_relaxed() {
  cluster_arrive_relaxed();
  cluster_wait();
}
// Shared-cluster address of the same offset in the CTA `rank`.
TW_DEVICE u32 map_to_rank(u32 addr, u32 rank) {
  u32 r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(addr), "r"(rank));
  return r;
}
TW_DEVICE void st_cluster_f32x4(u32 addr, float a, float b, float c, float d) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(addr), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
TW_DEVICE float4 ld_cluster_f32x4(u32 addr) {
  float4 v;
  asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(addr)
               : "memory");
  return v;
}

// Register budget of this warpgroup from here on (multiple of 8, 24..256); every warp of the warpgroup executes it.
#define TW_SETMAXNREG_INC(n) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n))
#define TW_SETMAXNREG_DEC(n) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n))

// Programmatic dependent launch: wait for the previous grid's memory; let the next grid start.
TW_DEVICE void grid_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
TW_DEVICE void grid_dependency_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// ---------------------------------------------------------------- TMA

// L2 eviction policies, as 64-bit cache-hint operands.
TW_DEVICE u64 l2_evict_first() {
  u64 p;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
  return p;
}
TW_DEVICE u64 l2_evict_last() {
  u64 p;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p));
  return p;
}
TW_DEVICE u64 l2_evict_normal() {
  u64 p;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
  return p;
}

TW_DEVICE void prefetch_tensormap(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<u64>(map)) : "memory");
}

// tma_load_<rank>d[_hint]: tile at coordinates (innermost first) into dst; completes `bar` by the tile's bytes.
// One thread issues. dst is 128-byte aligned (1024 for the 128-byte swizzle).
TW_DEVICE void tma_load_1d(u32 dst, const TensorMap* map, u32 bar, i32 c0) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(dst),
               "l"(map), "r"(bar), "r"(c0)
               : "memory");
}
TW_DEVICE void tma_load_1d_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3}], [%2], "
      "%4;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_2d(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1)
      : "memory");
}
TW_DEVICE void tma_load_2d_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3,%4}], "
      "[%2], %5;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_3d(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5}], [%2];" ::"r"(
          dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
TW_DEVICE void tma_load_3d_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%3,%4,%5}], [%2], %6;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_4d(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6}], "
      "[%2];" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
TW_DEVICE void tma_load_4d_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, "
      "{%3,%4,%5,%6}], [%2], %7;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_5d(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%6,%7}], "
      "[%2];" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
TW_DEVICE void tma_load_5d_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4,
                                u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3,%4,%5,%6,%7}], [%2], %8;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "l"(hint)
      : "memory");
}

// Multicast: the tile lands at the same shared offset in every CTA whose bit is set in `ctas`, and completes the
// barrier at the same offset in each of them.
TW_DEVICE void tma_load_2d_multicast(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3,%4}], [%2], %5;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "h"(ctas)
      : "memory");
}
TW_DEVICE void tma_load_2d_multicast_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, u16 ctas, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3,%4}], [%2], %5, %6;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "h"(ctas), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_3d_multicast_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, u16 ctas,
                                          u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3,%4,%5}], [%2], %6, %7;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "h"(ctas), "l"(hint)
      : "memory");
}

TW_DEVICE void tma_load_5d_multicast(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4,
                                     u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, "
      "{%3,%4,%5,%6,%7}], [%2], %8;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "h"(ctas)
      : "memory");
}
TW_DEVICE void tma_load_1d_multicast(u32 dst, const TensorMap* map, u32 bar, i32 c0, u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3}], [%2], %4;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "h"(ctas)
      : "memory");
}
TW_DEVICE void tma_load_1d_multicast_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, u16 ctas, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3}], [%2], %4, %5;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "h"(ctas), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_3d_multicast(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3,%4,%5}], [%2], %6;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "h"(ctas)
      : "memory");
}
TW_DEVICE void tma_load_4d_multicast(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3,%4,%5,%6}], [%2], %7;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(ctas)
      : "memory");
}
TW_DEVICE void tma_load_4d_multicast_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3,
                                          u16 ctas, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3,%4,%5,%6}], [%2], %7, %8;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"(ctas), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_load_5d_multicast_hint(u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3,
                                          i32 c4, u16 ctas, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%3,%4,%5,%6,%7}], [%2], %8, %9;" ::"r"(dst),
      "l"(map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "h"(ctas), "l"(hint)
      : "memory");
}

TW_DEVICE void tma_store_1d(const TensorMap* map, u32 src, i32 c0) {
  asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%2}], [%1];" ::"l"(map), "r"(src), "r"(c0)
               : "memory");
}
TW_DEVICE void tma_store_2d(const TensorMap* map, u32 src, i32 c0, i32 c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1)
               : "memory");
}
TW_DEVICE void tma_store_2d_hint(const TensorMap* map, u32 src, i32 c0, i32 c1, u64 hint) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%2,%3}], [%1], %4;" ::"l"(map),
               "r"(src), "r"(c0), "r"(c1), "l"(hint)
               : "memory");
}
TW_DEVICE void tma_store_3d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2,%3,%4}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
TW_DEVICE void tma_store_4d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2,%3,%4,%5}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
TW_DEVICE void tma_store_1d_hint(const TensorMap* map, u32 src, i32 c0, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group.L2::cache_hint "
      "[%0, {%2}], [%1], %3;" ::"l"(map),
      "r"(src), "r"(c0), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_store_3d_hint(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group.L2::cache_hint "
      "[%0, {%2,%3,%4}], [%1], %5;" ::"l"(map),
      "r"(src), "r"(c0), "r"(c1), "r"(c2), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_store_4d_hint(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint "
      "[%0, {%2,%3,%4,%5}], [%1], %6;" ::"l"(map),
      "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(hint)
      : "memory");
}
TW_DEVICE void tma_store_5d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group "
      "[%0, {%2,%3,%4,%5,%6}], [%1];" ::"l"(map),
      "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
TW_DEVICE void tma_store_5d_hint(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4, u64 hint) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.bulk_group.L2::cache_hint "
      "[%0, {%2,%3,%4,%5,%6}], [%1], %7;" ::"l"(map),
      "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4), "l"(hint)
      : "memory");
}
// Adds the box to what lies there, element by element, each addition atomic. Completes like a store.
TW_DEVICE void tma_reduce_add_1d(const TensorMap* map, u32 src, i32 c0) {
  asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%0, {%2}], [%1];" ::"l"(map), "r"(src),
               "r"(c0)
               : "memory");
}
TW_DEVICE void tma_reduce_add_2d(const TensorMap* map, u32 src, i32 c0, i32 c1) {
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1)
               : "memory");
}
TW_DEVICE void tma_reduce_add_3d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2) {
  asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3,%4}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1), "r"(c2)
               : "memory");
}
TW_DEVICE void tma_reduce_add_4d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3) {
  asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];" ::"l"(map), "r"(src),
               "r"(c0), "r"(c1), "r"(c2), "r"(c3)
               : "memory");
}
TW_DEVICE void tma_reduce_add_5d(const TensorMap* map, u32 src, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group "
      "[%0, {%2,%3,%4,%5,%6}], [%1];" ::"l"(map),
      "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}
// Untyped bulk copies: bytes and both addresses are multiples of 16.
TW_DEVICE void bulk_load(u32 dst, const void* src, u32 bytes, u32 bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
               "l"(src), "r"(bytes), "r"(bar)
               : "memory");
}
TW_DEVICE void bulk_store(void* dst, u32 src, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(dst), "r"(src), "r"(bytes) : "memory");
}
TW_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// At most N of this thread's newest bulk groups still read their shared source afterwards.
template <int N>
TW_DEVICE void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
// At most N of this thread's newest bulk groups are incomplete afterwards (global writes included).
template <int N>
TW_DEVICE void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

// ---------------------------------------------------------------- cp.async (16 bytes, L2 only), ordinary vectors

TW_DEVICE void cp_async_16(u32 dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dst), "l"(src) : "memory");
}
// Reads `bytes` (0..16) and fills the rest of the 16 with zero.
TW_DEVICE void cp_async_16_zfill(u32 dst, const void* src, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
TW_DEVICE void cp_async_4_zfill(u32 dst, const void* src, u32 bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}
TW_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
TW_DEVICE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
TW_DEVICE uint4 ld_global_nc_16(const void* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}
TW_DEVICE void st_shared_16(u32 dst, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(dst), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
TW_DEVICE uint4 ld_shared_16(u32 src) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(src) : "memory");
  return v;
}
TW_DEVICE u32 ld_shared_u16(u32 src) {
  u16 v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(src) : "memory");
  return v;
}
TW_DEVICE void st_shared_f32(u32 dst, float v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(dst), "f"(v) : "memory"); }
TW_DEVICE void st_shared_f32x2(u32 dst, float a, float b) {
  asm volatile("st.shared.v2.f32 [%0], {%1,%2};" ::"r"(dst), "f"(a), "f"(b) : "memory");
}
TW_DEVICE u32 ld_acquire_gpu(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
TW_DEVICE void st_release_gpu(u32* p, u32 v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
TW_DEVICE u32 atom_add_acq_rel_gpu(u32* p, u32 v) {
  u32 old;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}

// ---------------------------------------------------------------- ldmatrix, stmatrix, mma.sync

TW_DEVICE void ldmatrix_x4(u32& a, u32& b, u32& c, u32& d, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(addr)
               : "memory");
}
TW_DEVICE void ldmatrix_x4_trans(u32& a, u32& b, u32& c, u32& d, u32 addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(addr)
               : "memory");
}
TW_DEVICE void stmatrix_x4(u32 addr, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(addr), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}
TW_DEVICE void stmatrix_x4_trans(u32 addr, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(addr), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
}
TW_DEVICE void stmatrix_x2(u32 addr, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(addr), "r"(a), "r"(b) : "memory");
}
TW_DEVICE void stmatrix_x2_trans(u32 addr, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1,%2};" ::"r"(addr), "r"(a), "r"(b) : "memory");
}
TW_DEVICE void mma_m16n8k16_bf16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
TW_DEVICE void mma_m16n8k16_f16(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// ---------------------------------------------------------------- values

// Two floats rounded to nearest even and packed, `lo` in the low half.
TW_DEVICE u32 pack_bf16(float lo, float hi) {
  u32 r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
TW_DEVICE u32 pack_f16(float lo, float hi) {
  u32 r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
}
TW_DEVICE u16 to_bf16(float x) {
  u16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}
TW_DEVICE float from_bf16(u16 x) { return __uint_as_float(static_cast<u32>(x) << 16); }
TW_DEVICE float exp2_approx(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TW_DEVICE float log2_approx(float x) {
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
TW_DEVICE float rcp_approx(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

// ---------------------------------------------------------------- wgmma control and descriptors

// Orders this warpgroup's register and shared accesses before the next wgmma (once per batch of wgmmas).
TW_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TW_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// At most N of the newest wgmma groups are still in flight afterwards.
template <int N>
TW_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
// Pins one accumulator register between wgmma batches: the compiler may not move its uses across this point.
TW_DEVICE void wgmma_pin(float& r) { asm volatile("" : "+f"(r)::"memory"); }
TW_DEVICE void wgmma_pin_int(int& r) { asm volatile("" : "+r"(r)::"memory"); }

// Shared-memory matrix descriptor for the 128-byte swizzle (bits: address/16 in 0..13, leading byte offset/16 in
// 16..29, stride byte offset/16 in 32..45, swizzle mode 1 = 128 B in 62..63).
// K-major tile, rows of exactly 128 bytes (64 bf16): 8-row groups are 1024 bytes apart (stride); leading is unused.
// The base is 1024-byte aligned; advancing along k by 16 bf16 adds 32 bytes, i.e. 2 to the descriptor.
TW_DEVICE u64 descriptor_k_major_128b(u32 addr) {
  return static_cast<u64>((addr & 0x3FFFF) >> 4) | (static_cast<u64>(1) << 16) | (static_cast<u64>(1024 >> 4) << 32) |
         (static_cast<u64>(1) << 62);
}
// MN-major tile (the operand is "transposed"): 64 contiguous M/N elements per 128-byte row, one row per k.
// `next_64` is the byte distance between consecutive 64-wide blocks along M/N (leading), 8 k-rows are 1024 bytes
// apart (stride). Advancing along k by 16 adds 2048 bytes, i.e. 128 to the descriptor.
TW_DEVICE u64 descriptor_mn_major_128b(u32 addr, u32 next_64) {
  return static_cast<u64>((addr & 0x3FFFF) >> 4) | (static_cast<u64>(next_64 >> 4) << 16) |
         (static_cast<u64>(1024 >> 4) << 32) | (static_cast<u64>(1) << 62);
}
// General form: swizzle 0 = none, 1 = 128 B, 2 = 64 B, 3 = 32 B; offsets in bytes.
TW_DEVICE u64 descriptor(u32 addr, u32 leading, u32 stride, u32 swizzle) {
  return static_cast<u64>((addr & 0x3FFFF) >> 4) | (static_cast<u64>(leading >> 4) << 16) |
         (static_cast<u64>(stride >> 4) << 32) | (static_cast<u64>(swizzle) << 62);
}

}  // namespace tw

#include "tw_wgmma_rs.cuh"
#include "tw_wgmma_ss.cuh"
