// Kernels of the target probes that do not depend on a table row's text. probe_target.py generates the others (one kernel per
// spelling of mma, wgmma, ldmatrix, red and cvt) and compares everything with what the C++ tables expect.
// Each kernel puts integers in and writes out what came back; none of them decides anything.
#include "tw_device.cuh"

using namespace tw;

// Gives up after about a second instead of hanging the GPU; returns false then.
__device__ bool wait_bounded(u32 bar, u32 parity) {
  for (int i = 0; i < 100000; ++i) {
    if (mbarrier_try_wait(bar, parity)) return true;
  }
  return false;
}

__device__ u32 aligned_base(const void* p) { return (smem_addr(p) + 1023u) & ~1023u; }

__device__ void fill_shared(u32 base, u32 bytes, u32 word) {
  for (u32 i = threadIdx.x * 4; i < bytes; i += blockDim.x * 4) asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + i), "r"(word) : "memory");
}
__device__ void copy_in(u32 base, const u32* source, u32 bytes) {
  for (u32 i = threadIdx.x * 4; i < bytes; i += blockDim.x * 4)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + i), "r"(source[i / 4]) : "memory");
}
__device__ void copy_out(u32* target, u32 base, u32 bytes) {
  for (u32 i = threadIdx.x * 4; i < bytes; i += blockDim.x * 4) {
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(base + i) : "memory");
    target[i / 4] = v;
  }
}

// ---------------------------------------------------------------- TMA

__device__ void tma_load_rank(u32 rank, u32 dst, const TensorMap* map, u32 bar, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4) {
  if (rank == 1)
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(dst), "l"(map), "r"(bar), "r"(c0) : "memory");
  if (rank == 2) tma_load_2d(dst, map, bar, c0, c1);
  if (rank == 3) tma_load_3d(dst, map, bar, c0, c1, c2);
  if (rank == 4) tma_load_4d(dst, map, bar, c0, c1, c2, c3);
  if (rank == 5) tma_load_5d(dst, map, bar, c0, c1, c2, c3, c4);
}

// out: the box's bytes and 1024 more (poison: nothing may be written there); then one word: 1 when the wait succeeded.
extern "C" __global__ void probe_tma_load(const __grid_constant__ TensorMap map, u32 rank, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4, u32 bytes, u32 region,
                                          u32* out) {
  extern __shared__ u8 raw[];
  __shared__ alignas(8) u64 barrier;
  const u32 base = aligned_base(raw), bar = smem_addr(&barrier);
  fill_shared(base, region, 0xcdcdcdcdu);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    prefetch_tensormap(&map);
    mbarrier_arrive_expect_tx(bar, bytes);
    tma_load_rank(rank, base, &map, bar, c0, c1, c2, c3, c4);
  }
  const bool done = wait_bounded(bar, 0);
  __syncthreads();
  copy_out(out, base, region);
  if (threadIdx.x == 0) out[region / 4] = done;
}

extern "C" __global__ void probe_tma_store(const __grid_constant__ TensorMap map, u32 rank, u32 reduce, i32 c0, i32 c1, i32 c2, i32 c3, i32 c4, u32 region,
                                           const u32* image) {
  extern __shared__ u8 raw[];
  const u32 base = aligned_base(raw);
  copy_in(base, image, region);
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    const TensorMap* m = &map;
    if (reduce) {
      if (rank == 1) asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%0, {%2}], [%1];" ::"l"(m), "r"(base), "r"(c0) : "memory");
      if (rank == 2) asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1) : "memory");
      if (rank == 3) asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3,%4}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2) : "memory");
      if (rank == 4) asm volatile("cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
      if (rank == 5) asm volatile("cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group [%0, {%2,%3,%4,%5,%6}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
    } else {
      if (rank == 1) asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];" ::"l"(m), "r"(base), "r"(c0) : "memory");
      if (rank == 2) asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2,%3}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1) : "memory");
      if (rank == 3) asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2) : "memory");
      if (rank == 4) asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
      if (rank == 5) asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4,%5,%6}], [%1];" ::"l"(m), "r"(base), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
    }
    bulk_commit();
    bulk_wait_read<0>();
    bulk_wait<0>();
  }
}

// A cluster of two. Rank `issuer` loads one box to the ranks of `mask` (mode 0), or each rank loads the box at its own column
// offset to both ranks (mode 1: the two halves of a tile). out: region bytes and a flag word per rank.
extern "C" __global__ void probe_tma_multicast(const __grid_constant__ TensorMap map, u32 mode, u32 issuer, u32 mask, i32 c0, i32 c1, u32 bytes, u32 region,
                                               u32* out) {
  extern __shared__ u8 raw[];
  __shared__ alignas(8) u64 barrier;
  const u32 base = aligned_base(raw), bar = smem_addr(&barrier), rank = cluster_cta_rank();
  fill_shared(base, region, 0xcdcdcdcdu);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncthreads();
  cluster_sync();
  const u32 receives = mode == 1 ? 2 * bytes : (mask >> rank & 1) ? bytes : 0;
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(bar, receives);
    if (mode == 1) tma_load_2d_multicast(base + rank * bytes, &map, bar, c0, c1 + static_cast<i32>(rank) * 8, 3);
    if (mode == 0 && rank == issuer) tma_load_2d_multicast(base, &map, bar, c0, c1, static_cast<u16>(mask));
  }
  const bool done = wait_bounded(bar, 0);
  __syncthreads();
  copy_out(out + rank * (region / 4 + 1), base, region);
  if (threadIdx.x == 0) out[rank * (region / 4 + 1) + region / 4] = done;
  cluster_sync();
}

// ---------------------------------------------------------------- bulk copies, remote arrive, distributed shared memory

// A cluster of two, `bytes` a multiple of 16. global -> own shared -> the other rank's shared -> global, and a remote arrive:
// each rank's second barrier counts one arrival from the other rank.
extern "C" __global__ void probe_bulk(const u32* source, u32* out, u32* sums, u32 bytes, u32* flags) {
  extern __shared__ u8 raw[];
  __shared__ alignas(8) u64 barriers[3];
  const u32 base = aligned_base(raw), second = base + 8192, rank = cluster_cta_rank(), other = rank ^ 1;
  const u32 landed = smem_addr(&barriers[0]), arrived = smem_addr(&barriers[1]), remote = smem_addr(&barriers[2]);
  fill_shared(base, 16384, 0xcdcdcdcdu);
  if (threadIdx.x == 0) {
    mbarrier_init(landed, 1);
    mbarrier_init(arrived, 1);
    mbarrier_init(remote, 1);
    fence_mbarrier_init();
  }
  fence_proxy_async();
  __syncthreads();
  cluster_sync();
  bool ok = true;
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(landed, bytes);
    bulk_load(base, source + rank * (bytes / 4), bytes, landed);
    mbarrier_arrive_expect_tx(arrived, bytes);
  }
  ok = wait_bounded(landed, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(map_to_rank(second, other)), "r"(base),
                 "r"(bytes), "r"(map_to_rank(arrived, other))
                 : "memory");
    mbarrier_arrive_cluster(remote, other);
  }
  ok = ok && wait_bounded(arrived, 0);
  bool remotely = false;
  for (int i = 0; i < 100000 && !remotely; ++i) remotely = mbarrier_try_wait_cluster(remote, 0);
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(out + rank * (bytes / 4), second, bytes);
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(sums), "r"(second), "r"(bytes) : "memory");
    bulk_commit();
    bulk_wait<0>();
    flags[2 * rank] = ok;
    flags[2 * rank + 1] = remotely;
  }
  cluster_sync();
}

// ---------------------------------------------------------------- cp.async

template <int Bytes, bool Cg>
__device__ void cp_async_case(const u8* source, u32* out, u32 base) {
  // Thread t copies chunk t with src-size t % (Bytes + 1).
  const u32 dst = base + threadIdx.x * Bytes, n = threadIdx.x % (Bytes + 1);
  const u8* src = source + threadIdx.x * Bytes;
  if (Cg)
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(src), "n"(Bytes), "r"(n) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(dst), "l"(src), "n"(Bytes), "r"(n) : "memory");
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  copy_out(out, base, 128 * Bytes);
  __syncthreads();
}
extern "C" __global__ void probe_cp_async(const u8* source, u32* out) {
  __shared__ alignas(1024) u8 buffer[2048];
  const u32 base = smem_addr(buffer);
  fill_shared(base, 2048, 0xcdcdcdcdu);
  __syncthreads();
  cp_async_case<4, false>(source, out, base);
  cp_async_case<8, false>(source, out + 512, base);
  cp_async_case<16, false>(source, out + 1024, base);
  cp_async_case<16, true>(source, out + 1536, base);
}
// The three forms of waiting: plain arrive (neutral), .noinc (counted). out: per form, did the phase end, and the data.
extern "C" __global__ void probe_cp_async_mbarrier(const u32* source, u32* out) {
  __shared__ alignas(16) u32 buffer[128];
  __shared__ alignas(8) u64 barriers[2];
  const u32 plain = smem_addr(&barriers[0]), counted = smem_addr(&barriers[1]);
  if (threadIdx.x == 0) {
    mbarrier_init(plain, 128);
    mbarrier_init(counted, 128);
  }
  buffer[threadIdx.x] = 0;
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(smem_addr(&buffer[threadIdx.x])), "l"(source + threadIdx.x) : "memory");
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(plain) : "memory");
  cp_async_mbarrier_arrive_noinc(counted);
  const bool counted_done = wait_bounded(counted, 0);
  const u32 seen = buffer[threadIdx.x ^ 1];
  bool plain_early = false;  // neutral: nobody has arrived on `plain` yet
  for (int i = 0; i < 100; ++i) plain_early = plain_early || mbarrier_try_wait(plain, 0);
  __syncthreads();
  mbarrier_arrive(plain);
  const bool plain_done = wait_bounded(plain, 0);
  out[threadIdx.x * 4] = counted_done;
  out[threadIdx.x * 4 + 1] = seen;
  out[threadIdx.x * 4 + 2] = plain_early;
  out[threadIdx.x * 4 + 3] = plain_done;
}

// ---------------------------------------------------------------- mbarrier histories: one thread per history

// operations: (code, operand) pairs; 0 arrive, 1 arrive.expect_tx, 2 expect_tx, 3 complete_tx. out: the two parities after each.
extern "C" __global__ void probe_mbarrier(const u32* counts, const u32* lengths, const u32* operations, u32* out, u32 stride) {
  __shared__ alignas(8) u64 barrier;
  const u32 bar = smem_addr(&barrier), history = blockIdx.x;
  mbarrier_init(bar, counts[history]);
  for (u32 i = 0; i < lengths[history]; ++i) {
    const u32 code = operations[(history * stride + i) * 2], operand = operations[(history * stride + i) * 2 + 1];
    if (code == 0) mbarrier_arrive(bar);
    if (code == 1) mbarrier_arrive_expect_tx(bar, operand);
    if (code == 2) mbarrier_expect_tx(bar, operand);
    if (code == 3) asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(operand) : "memory");
    for (u32 parity = 0; parity < 2; ++parity) {
      u32 done;
      asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "r"(parity) : "memory");
      out[(history * stride + i) * 2 + parity] = done;
    }
  }
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// ---------------------------------------------------------------- barriers, votes, election, shuffles

// Two warps; warp 0 writes and arrives on barrier `id`, warp 1 waits on it and reads; then the other way round.
extern "C" __global__ void probe_named_barriers(u32* out) {
  __shared__ volatile u32 box[32];
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (u32 id = 0; id < 16; ++id) {
    const u32 writer = id % 2;
    if (warp == writer) {
      box[lane] = 1000 * id + lane;
      named_barrier_arrive(id, 64);
    } else {
      named_barrier_sync(id, 64);
      out[id * 32 + lane] = box[31 - lane];
    }
    __syncthreads();
  }
}
extern "C" __global__ void probe_warp(u32* out) {
  const u32 lane = lane_index();
  const bool elected = elect_one();
  out[lane] = elected;
  out[32 + lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  out[64 + lane] = elect_one() == elected;
  __syncwarp();
  asm volatile("fence.acq_rel.cta;" ::: "memory");
  fence_acq_rel_gpu();
}
template <int Mode>
__device__ void shuffle_case(u32 b, u32 c, u32& value, u32& predicate) {
  const u32 mine = 7919u * lane_index() + 13u;
#define SHUFFLE(mode)                                                                                                              \
  asm volatile("{\n.reg .pred p;\nshfl.sync." mode ".b32 %0|p, %2, %3, %4, 0xffffffff;\nselp.u32 %1, 1, 0, p;\n}" \
               : "=r"(value), "=r"(predicate)                                                                                      \
               : "r"(mine), "r"(b), "r"(c))
  if (Mode == 0) SHUFFLE("up");
  if (Mode == 1) SHUFFLE("down");
  if (Mode == 2) SHUFFLE("bfly");
  if (Mode == 3) SHUFFLE("idx");
#undef SHUFFLE
}
extern "C" __global__ void probe_shuffle(u32 mode, u32 c, u32* out) {
  for (u32 b = 0; b < 32; ++b) {
    u32 value = 0, predicate = 0;
    if (mode == 0) shuffle_case<0>(b, c, value, predicate);
    if (mode == 1) shuffle_case<1>(b, c, value, predicate);
    if (mode == 2) shuffle_case<2>(b, c, value, predicate);
    if (mode == 3) shuffle_case<3>(b, c, value, predicate);
    out[(b * 32 + lane_index()) * 2] = value;
    out[(b * 32 + lane_index()) * 2 + 1] = predicate;
  }
}

// ---------------------------------------------------------------- setmaxnreg, griddepcontrol

extern "C" __global__ void __launch_bounds__(256, 1) probe_setmaxnreg(u32* out) {
  if (threadIdx.x < 128) {
    TW_SETMAXNREG_DEC(24);
    out[threadIdx.x] = 24;
  } else {
    TW_SETMAXNREG_INC(224);
    out[threadIdx.x] = 224;
  }
}
extern "C" __global__ void probe_grid_dependency(u32* out, u32 value) {
  grid_dependency_launch();
  grid_dependency_wait();
  out[threadIdx.x] = out[threadIdx.x] * 2 + value;
}

// ---------------------------------------------------------------- vector access

extern "C" __global__ void probe_vectors(const u8* source, u8* out) {
  const u32 t = threadIdx.x;
  __shared__ alignas(16) u8 buffer[32 * 16];
  u32 at = 0;
#define VECTOR(width, load, store, type, constraint, ...)                                                                   \
  {                                                                                                                         \
    type r[4];                                                                                                              \
    asm volatile("ld.global." load ", [%4];" : "=" constraint(r[0]), "=" constraint(r[1]), "=" constraint(r[2]), "=" constraint(r[3]) : "l"(source + t * width)); \
    asm volatile("st.shared." store ::"r"(smem_addr(buffer + t * width)), constraint(r[0]), constraint(r[1]), constraint(r[2]), constraint(r[3]) : "memory");     \
    asm volatile("ld.shared." load ", [%4];" : "=" constraint(r[0]), "=" constraint(r[1]), "=" constraint(r[2]), "=" constraint(r[3]) : "r"(smem_addr(buffer + t * width)) : "memory"); \
    asm volatile("st.global." store ::"l"(out + at + t * width), constraint(r[0]), constraint(r[1]), constraint(r[2]), constraint(r[3]) : "memory");             \
    at += 32 * width;                                                                                                       \
  }
  // %1..%3 are unused by the narrow forms; they are written so that one macro spells all of them.
  VECTOR(4, "u32 %0", "u32 [%0], %1;", u32, "r")
  VECTOR(8, "v2.u32 {%0,%1}", "v2.u32 [%0], {%1,%2};", u32, "r")
  VECTOR(16, "v4.u32 {%0,%1,%2,%3}", "v4.u32 [%0], {%1,%2,%3,%4};", u32, "r")
  VECTOR(2, "u16 %0", "u16 [%0], %1;", u16, "h")
  VECTOR(4, "v2.u16 {%0,%1}", "v2.u16 [%0], {%1,%2};", u16, "h")
  VECTOR(8, "v4.u16 {%0,%1,%2,%3}", "v4.u16 [%0], {%1,%2,%3,%4};", u16, "h")
  VECTOR(8, "u64 %0", "u64 [%0], %1;", u64, "l")
  VECTOR(16, "v2.u64 {%0,%1}", "v2.u64 [%0], {%1,%2};", u64, "l")
}

// ---------------------------------------------------------------- shared-memory wavefronts, by the clock

// volatile: an ordinary ld.shared of one address would be done once.
template <int Bytes>
__device__ u32 timed_loads(u32 address) {
  u32 a0 = 0, a1 = 0, a2 = 0, a3 = 0, sum = 0;
  __syncthreads();
  const u32 begin = clock();
#pragma unroll 16
  for (int i = 0; i < 256; ++i) {
    if (Bytes == 4) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a0) : "r"(address));
    if (Bytes == 8) asm volatile("ld.volatile.shared.v2.u32 {%0,%1}, [%2];" : "=r"(a0), "=r"(a1) : "r"(address));
    if (Bytes == 16) asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(a0), "=r"(a1), "=r"(a2), "=r"(a3) : "r"(address));
    sum ^= a0;
  }
  __syncthreads();
  const u32 end = clock();
  return sum == 0x12345u ? 0 : end - begin;  // the loads' results are used
}
// out[case]: clock cycles for 16 warps x 256 loads each.
extern "C" __global__ void __launch_bounds__(512, 1) probe_banks(const u32* addresses, const u32* widths, u32* out, u32 cases) {
  extern __shared__ u8 raw[];
  const u32 base = aligned_base(raw);
  fill_shared(base, 32768, 0);
  for (u32 c = 0; c < cases; ++c) {
    const u32 address = base + addresses[c * 32 + threadIdx.x % 32];
    u32 cycles = ~0u;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const u32 once = widths[c] == 4 ? timed_loads<4>(address) : widths[c] == 8 ? timed_loads<8>(address) : timed_loads<16>(address);
      cycles = once < cycles ? once : cycles;
    }
    if (threadIdx.x == 0) out[c] = cycles;
  }
}
