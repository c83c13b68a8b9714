// Few tokens against many weights: out[t, n] = bf16(sum over k of X[t, k] * W[n, k]), T <= TOKENS. The time is that of
// streaming W once, so the shape of the kernel is: every SM keeps a deep TMA ring of W in flight.
//
// W is the wgmma M side (64 rows per consumer warpgroup), the tokens are its N side, so no tensor work is padding beyond
// TOKENS. A cluster either splits k between its CTAs (SPLIT > 1: f32 partials are summed through distributed shared
// memory in rank order, so the result is deterministic), or shares the X tile by multicast (SHARE > 1).
// Preconditions: K % 8 == 0, N % 8 == 0, T <= TOKENS. Ragged N and K: TMA zero fill, masked stores.
//
// tw-variants: -DTOKENS=16 -DROWS=64 -DBK=128 -DSTAGES=10
// tw-variants: -DTOKENS=16 -DROWS=64 -DBK=128 -DSTAGES=10 -DPDL=1
// tw-variants: -DTOKENS=8 -DROWS=64 -DBK=128 -DSTAGES=11
// tw-variants: -DTOKENS=64 -DROWS=64 -DBK=128 -DSTAGES=6 -DSHARE=2
// tw-variants: -DTOKENS=128 -DROWS=128 -DBK=64 -DSTAGES=4 -DSPLIT=2
// tw-variants: -DTOKENS=16 -DROWS=128 -DBK=128 -DSTAGES=5 -DSPLIT=2
#include "tw_device.cuh"

#ifndef TOKENS
#define TOKENS 16  // token rows of the tile: n of the wgmma
#endif
#ifndef ROWS
#define ROWS 64  // weight rows of one CTA: 64 per consumer warpgroup
#endif
#ifndef BK
#define BK 128  // k extent of a slot, a multiple of 64
#endif
#ifndef STAGES
#define STAGES 10
#endif
#ifndef SPLIT
#define SPLIT 1  // CTAs of a cluster that divide k
#endif
#ifndef SHARE
#define SHARE 1  // CTAs of a cluster that share the X tile
#endif

#ifndef PDL
#define PDL 0  // 1: programmatic dependent launch; W must not be written by the previous kernel: it is loaded before its end
#endif

using tw::u16;
using tw::u32;
using tw::u64;

constexpr int CONSUMERS = ROWS / 64;
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int CLUSTER = SPLIT * SHARE;
constexpr int K_SUB = BK / 64;
constexpr int W_SUB_BYTES = ROWS * 128;
constexpr int X_SUB_BYTES = TOKENS * 128;
constexpr int W_BYTES = K_SUB * W_SUB_BYTES;
constexpr int X_BYTES = K_SUB * X_SUB_BYTES;
constexpr int STAGE_BYTES = W_BYTES + X_BYTES;
constexpr int PITCH = ROWS + 4;  // f32 per token of the partial tile: +4 makes the fragment stores conflict-free
constexpr int WARPS = 4 * CONSUMERS;
static_assert(SPLIT == 1 || SHARE == 1, "a cluster splits k or shares X, not both");
static_assert(TOKENS % (8 * SHARE) == 0, "each CTA loads whole 8-row swizzle groups of X");

constexpr int SMEM_W = 0;
constexpr int SMEM_X = SMEM_W + STAGES * W_BYTES;
constexpr int SMEM_PARTIAL = SMEM_X + STAGES * X_BYTES;
constexpr int SMEM_FULL = SMEM_PARTIAL + TOKENS * PITCH * 4;
constexpr int SMEM_EMPTY = SMEM_FULL + 8 * STAGES;
constexpr int SMEM_READY = SMEM_EMPTY + 8 * STAGES;  // every rank's partial tile is written
constexpr int SMEM_FREE = SMEM_READY + 8;            // every rank has read this CTA's partial tile
constexpr int SMEM_BYTES = SMEM_FREE + 8 + 1024;
static_assert(SMEM_BYTES <= 232448, "shared memory exceeds 227 KiB");

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_skinny(const __grid_constant__ tw::TensorMap map_x, const __grid_constant__ tw::TensorMap map_w,
                u16* __restrict__ out, int T, int N, int K) {
  extern __shared__ char smem_raw[];
  const u32 smem = (tw::smem_addr(smem_raw) + 1023) & ~1023u;
  const u32 warp = tw::warp_index();
  const u32 rank = CLUSTER > 1 ? tw::cluster_cta_rank() : 0;
  const u32 split_rank = SPLIT > 1 ? rank : 0;
  const u32 share_rank = SHARE > 1 ? rank : 0;
  const int cluster_id = blockIdx.x / CLUSTER;
  const int clusters = gridDim.x / CLUSTER;
  const int tiles = (N + ROWS * SHARE - 1) / (ROWS * SHARE);
  const int k_blocks = (K + BK - 1) / BK;
  const int k_begin = k_blocks * static_cast<int>(split_rank) / SPLIT;
  const int k_end = k_blocks * static_cast<int>(split_rank + 1) / SPLIT;

  if (warp == 0 && tw::elect_one()) {
    tw::prefetch_tensormap(&map_x);
    tw::prefetch_tensormap(&map_w);
    for (int s = 0; s < STAGES; ++s) {
      tw::mbarrier_init(smem + SMEM_FULL + 8 * s, 1);
      tw::mbarrier_init(smem + SMEM_EMPTY + 8 * s, WARPS * SHARE);
    }
    tw::mbarrier_init(smem + SMEM_READY, WARPS * SPLIT);
    tw::mbarrier_init(smem + SMEM_FREE, WARPS * SPLIT);
    tw::fence_mbarrier_init();
  }
  if (PDL) tw::grid_dependency_launch();
  if (CLUSTER > 1)
    tw::cluster_arrive_relaxed();
  else
    __syncthreads();
  if (warp == 0 && tw::elect_one() && cluster_id < tiles) {  // the first ring of W needs no other CTA and no X
    const u64 hint_w = tw::l2_evict_first();
    for (int s = 0; s < min(STAGES, k_end - k_begin); ++s) {
      tw::mbarrier_arrive_expect_tx(smem + SMEM_FULL + 8 * s, STAGE_BYTES);
#pragma unroll
      for (int ks = 0; ks < K_SUB; ++ks)
        tw::tma_load_2d_hint(smem + SMEM_W + s * W_BYTES + ks * W_SUB_BYTES, &map_w, smem + SMEM_FULL + 8 * s,
                             (k_begin + s) * BK + ks * 64, (cluster_id * SHARE + share_rank) * ROWS, hint_w);
    }
  }
  if (CLUSTER > 1) tw::cluster_wait();

  if (warp < 4) {
    // ------------------------------------------------------------ producer
    if (warp == 0 && tw::elect_one()) {
      const u64 hint_w = tw::l2_evict_first();
      const u64 hint_x = tw::l2_evict_last();
      if (PDL) tw::grid_dependency_wait();
      u32 slot = 0, parity = 1;
      for (int tile = cluster_id; tile < tiles; tile += clusters) {
        const int n0 = (tile * SHARE + share_rank) * ROWS;
        for (int kb = k_begin; kb < k_end; ++kb) {
          const u32 full = smem + SMEM_FULL + 8 * slot;
          if (SHARE > 1)
            tw::mbarrier_wait_relaxed_cluster(smem + SMEM_EMPTY + 8 * slot, parity);
          else
            tw::mbarrier_wait(smem + SMEM_EMPTY + 8 * slot, parity);
          const bool w_issued = tile == cluster_id && kb - k_begin < STAGES;
          if (!w_issued) tw::mbarrier_arrive_expect_tx(full, STAGE_BYTES);
#pragma unroll
          for (int ks = 0; ks < K_SUB; ++ks) {
            const u32 w = smem + SMEM_W + slot * W_BYTES + ks * W_SUB_BYTES;
            const u32 x = smem + SMEM_X + slot * X_BYTES + ks * X_SUB_BYTES;
            if (!w_issued) tw::tma_load_2d_hint(w, &map_w, full, kb * BK + ks * 64, n0, hint_w);
            if (SHARE == 1) {
              tw::tma_load_2d_hint(x, &map_x, full, kb * BK + ks * 64, 0, hint_x);
            } else {
              const u32 part = share_rank * (TOKENS / SHARE);
              tw::tma_load_2d_multicast_hint(x + part * 128, &map_x, full, kb * BK + ks * 64, part, (1 << SHARE) - 1,
                                             hint_x);
            }
          }
          if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
          }
        }
      }
    }
  } else {
    // ------------------------------------------------------------ consumers
    const u32 consumer = warp / 4 - 1;
    const u32 lane = tw::lane_index();
    const u32 thread = threadIdx.x - 128;
    const u32 partial = smem + SMEM_PARTIAL;
    float acc[TOKENS / 2];
    u32 slot = 0, parity = 0, tile_parity = 0;
    for (int tile = cluster_id; tile < tiles; tile += clusters) {
      const int n0 = (tile * SHARE + share_rank) * ROWS;
      u32 previous = slot;
#pragma unroll
      for (int i = 0; i < TOKENS / 2; ++i) acc[i] = 0.0f;  // a rank whose k range is empty contributes zero
      for (int kb = k_begin; kb < k_end; ++kb) {
        tw::mbarrier_wait(smem + SMEM_FULL + 8 * slot, parity);
        tw::wgmma_fence();
        const u64 w = tw::descriptor_k_major_128b(smem + SMEM_W + slot * W_BYTES + consumer * (64 * 128));
        const u64 x = tw::descriptor_k_major_128b(smem + SMEM_X + slot * X_BYTES);
#pragma unroll
        for (int kk = 0; kk < BK / 16; ++kk)
          TW_CAT(TW_CAT(tw::wgmma_m64n, TOKENS), k16_bf16_ss)
          (acc, w + (kk / 4) * (W_SUB_BYTES >> 4) + (kk % 4) * 2, x + (kk / 4) * (X_SUB_BYTES >> 4) + (kk % 4) * 2, 1);
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (kb > k_begin) {
          if (SHARE > 1) {
            if (lane < SHARE) tw::mbarrier_arrive_relaxed_cluster(smem + SMEM_EMPTY + 8 * previous, lane);
          } else {
            if (lane == 0) tw::mbarrier_arrive(smem + SMEM_EMPTY + 8 * previous);
          }
        }
        previous = slot;
        if (++slot == STAGES) {
          slot = 0;
          parity ^= 1;
        }
      }
      tw::wgmma_wait<0>();
      if (k_end > k_begin) {
        if (SHARE > 1) {
          if (lane < SHARE) tw::mbarrier_arrive_relaxed_cluster(smem + SMEM_EMPTY + 8 * previous, lane);
        } else {
          if (lane == 0) tw::mbarrier_arrive(smem + SMEM_EMPTY + 8 * previous);
        }
      }

      // The f32 tile, token-major, in this CTA's shared memory ...
      if (tile != cluster_id) {  // ... once every reader of the previous one is done
        if (SPLIT > 1)
          tw::mbarrier_wait_cluster(smem + SMEM_FREE, tile_parity ^ 1);
        else
          tw::named_barrier_sync(1, 128 * CONSUMERS);
      }
      const u32 row = consumer * 64 + (warp % 4) * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < TOKENS / 8; ++j) {
        const u32 at = partial + ((8 * j + 2 * (lane % 4)) * PITCH + row) * 4;
        tw::st_shared_f32(at, acc[4 * j]);
        tw::st_shared_f32(at + PITCH * 4, acc[4 * j + 1]);
        tw::st_shared_f32(at + 32, acc[4 * j + 2]);
        tw::st_shared_f32(at + PITCH * 4 + 32, acc[4 * j + 3]);
      }
      if (SPLIT > 1) {
        __syncwarp();
        if (lane < SPLIT) tw::mbarrier_arrive_cluster(smem + SMEM_READY, lane);
        tw::mbarrier_wait_cluster(smem + SMEM_READY, tile_parity);
      } else {
        tw::named_barrier_sync(1, 128 * CONSUMERS);
      }
      // ... then tokens rank, rank + SPLIT, ... are summed over the ranks, in rank order, rounded and stored.
      constexpr int QUADS = ROWS / 4;
      for (u32 i = thread; i < TOKENS / SPLIT * QUADS; i += 128 * CONSUMERS) {
        const u32 token = i / QUADS * SPLIT + split_rank;
        const u32 quad = i % QUADS * 4;
        const u32 at = partial + (token * PITCH + quad) * 4;
        float4 sum = tw::ld_cluster_f32x4(SPLIT > 1 ? tw::map_to_rank(at, 0) : at);
#pragma unroll
        for (u32 s = 1; s < SPLIT; ++s) {
          const float4 part = tw::ld_cluster_f32x4(tw::map_to_rank(at, s));
          sum.x += part.x;
          sum.y += part.y;
          sum.z += part.z;
          sum.w += part.w;
        }
        if (static_cast<int>(token) < T && n0 + static_cast<int>(quad) < N)
          *reinterpret_cast<uint2*>(out + static_cast<tw::i64>(token) * N + n0 + quad) =
              make_uint2(tw::pack_bf16(sum.x, sum.y), tw::pack_bf16(sum.z, sum.w));
      }
      if (SPLIT > 1) {
        __syncwarp();
        if (lane < SPLIT) tw::mbarrier_arrive_cluster(smem + SMEM_FREE, lane);
      }
      tile_parity ^= 1;
    }
  }
  // No CTA leaves while a peer may still read its partial tile (SPLIT) or write its ring (SHARE).
  if (SPLIT > 1) tw::cluster_sync();
  if (SHARE > 1) tw::cluster_sync_relaxed();
}
