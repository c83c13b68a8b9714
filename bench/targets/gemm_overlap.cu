// C[m, n] = bf16(sum over k of A[m, k] * B[n, k]) as in gemm_sm90.cu, with the epilogue hidden behind the next tile.
//
// BN <= 176 leaves room for two accumulator sets per consumer. While the tensor cores run the first k blocks of tile t + 1
// into one set, the consumer stores tile t from the other, one 64-column chunk after each k block. The tile width is any
// multiple of 8 (16 when B is multicast), chosen so that the tiles fill whole waves of SMs.
// Roles, ring and raster: as in gemm_sm90.cu. Preconditions: K % 8 == 0, N % 8 == 0, 16-byte aligned bases.
//
// tw-variants: -DBN=168 -DSTAGES=5 -DCLUSTER_M=2 -DCLUSTER_N=1
// tw-variants: -DBN=112 -DSTAGES=7 -DCLUSTER_M=1 -DCLUSTER_N=2
// tw-variants: -DBN=176 -DSTAGES=5 -DCLUSTER_M=2 -DCLUSTER_N=1
// tw-variants: -DBN=144 -DSTAGES=6 -DCLUSTER_M=2 -DCLUSTER_N=1
// tw-variants: -DBN=128 -DSTAGES=6 -DCLUSTER_M=2 -DCLUSTER_N=1
#include "tw_device.cuh"

#ifndef BM
#define BM 128  // tile rows of one CTA: 64 per consumer
#endif
#ifndef BN
#define BN 168  // tile columns of one CTA: also n of the wgmma
#endif
#ifndef BK
#define BK 64  // one 128-byte swizzled row
#endif
#ifndef STAGES
#define STAGES 5
#endif
#ifndef CLUSTER_M
#define CLUSTER_M 1  // CTAs along M of a cluster: they share (multicast) the B tile
#endif
#ifndef CLUSTER_N
#define CLUSTER_N 2  // CTAs along N of a cluster: they share (multicast) the A tile
#endif
#ifndef GROUP
#define GROUP 16  // cluster-tile rows per raster group
#endif
#ifndef HINT_A
#define HINT_A normal  // L2 eviction policy of each stream: first | last | normal
#endif
#ifndef HINT_B
#define HINT_B normal
#endif
#ifndef PDL
#define PDL 1  // 1: programmatic dependent launch: set-up overlaps the previous kernel's tail; loads wait for its end
#endif
#ifndef PRODUCER_REGS
#define PRODUCER_REGS 40
#endif
#ifndef CONSUMER_REGS
#define CONSUMER_REGS 232
#endif

using tw::i64;
using tw::u16;
using tw::u32;
using tw::u64;

constexpr int CONSUMERS = 2;
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int A_BYTES = BM * 128;
constexpr int B_BYTES = BN * 128;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int EPI_CHUNKS = (BN + 63) / 64;
static_assert(BM == 128 && BK == 64, "two consumers of 64 rows, one swizzled row of k per slot");
static_assert(BN % 8 == 0 && BN <= 176, "two accumulator sets of BN / 2 registers");
static_assert(BN / CLUSTER_M * CLUSTER_M == BN, "each CTA loads an equal share of B");

// Shared memory, from a 1024-byte aligned base (the 128-byte swizzle repeats every 1024 bytes).
constexpr int SMEM_A = 0;
constexpr int SMEM_B = SMEM_A + STAGES * A_BYTES;
constexpr int SMEM_C = SMEM_B + STAGES * B_BYTES;         // per warp: 16 rows x 64 columns of staging
constexpr int SMEM_FULL = SMEM_C + CONSUMERS * 64 * 128;
constexpr int SMEM_EMPTY = SMEM_FULL + 8 * STAGES;
constexpr int SMEM_BYTES = SMEM_EMPTY + 8 * STAGES;
static_assert(SMEM_BYTES <= 232448, "shared memory exceeds 227 KiB");

// First row of a load: a box that lies wholly outside the matrix is moved to its start.
TW_DEVICE int inside(int row, int rows) { return row < rows ? row : 0; }

// Linear tile -> (row, column) in cluster tiles: groups of GROUP rows, column by column, alternate groups reversed.
TW_DEVICE void tile_at(int linear, int tiles_m, int tiles_n, int& tile_m, int& tile_n) {
  int per_group = GROUP * tiles_n;
  int group = linear / per_group;
  int first = group * GROUP;
  int rows = min(GROUP, tiles_m - first);
  int inside = linear - group * per_group;
  tile_m = first + inside % rows;
  tile_n = inside / rows;
  if (group & 1) tile_n = tiles_n - 1 - tile_n;
}

// A consumer's position in the ring. `previous` is the slot of the newest wgmma batch, not yet given back.
struct RingPosition {
  u32 slot, parity, previous;
  bool any;  // a batch has been issued
};

TW_DEVICE void release(u32 empty, u32 lane) {
  if (CLUSTER > 1) {
    if (lane < CLUSTER) tw::mbarrier_arrive_relaxed_cluster(empty, lane);
  } else {
    if (lane == 0) tw::mbarrier_arrive(empty);
  }
}

// Issues one k block into acc and returns when the batch before it is complete (and its slot given back).
TW_DEVICE void k_step(float (&acc)[BN / 2], RingPosition& at, u32 smem, u32 wg_row, u32 lane, int accumulate) {
  tw::mbarrier_wait(smem + SMEM_FULL + 8 * at.slot, at.parity);
  tw::wgmma_fence();
  const u64 a = tw::descriptor_k_major_128b(smem + SMEM_A + at.slot * A_BYTES + wg_row * 128);
  const u64 b = tw::descriptor_k_major_128b(smem + SMEM_B + at.slot * B_BYTES);
#pragma unroll
  for (int kk = 0; kk < 4; ++kk)
    TW_CAT(TW_CAT(tw::wgmma_m64n, BN), k16_bf16_ss)(acc, a + kk * 2, b + kk * 2, accumulate || kk > 0);
  tw::wgmma_commit();
  tw::wgmma_wait<1>();
  if (at.any) release(smem + SMEM_EMPTY + 8 * at.previous, lane);
  at.any = true;
  at.previous = at.slot;
  if (++at.slot == STAGES) {
    at.slot = 0;
    at.parity ^= 1;
  }
}

// Stores columns 64 * chunk .. of a finished accumulator set: this warp's 16 rows, through its own staging rows.
TW_DEVICE void store_chunk(const float (&acc)[BN / 2], int chunk, u32 staging, u32 lane, u16* c_ptr, int M, int N, int m0,
                           int n0) {
  constexpr u32 FULL_WARP = 0xffffffffu;
  __syncwarp(FULL_WARP);
#pragma unroll
  for (int j = 0; j < 4; ++j) {  // 16 columns per stmatrix.x4; the tile's last 8 columns by .x2
    const int first = chunk * 64 + j * 16;
    const u32 to = staging + (lane % 16) * 128 + (((2 * j + lane / 16) ^ (lane % 8)) << 4);
    if (first + 16 <= BN) {
      const float* d = &acc[first / 2];
      tw::stmatrix_x4(to, tw::pack_bf16(d[0], d[1]), tw::pack_bf16(d[2], d[3]), tw::pack_bf16(d[4], d[5]),
                      tw::pack_bf16(d[6], d[7]));
    } else if (first < BN) {
      const float* d = &acc[first / 2];
      tw::stmatrix_x2(to, tw::pack_bf16(d[0], d[1]), tw::pack_bf16(d[2], d[3]));
    }
  }
  __syncwarp(FULL_WARP);
  const int column = static_cast<int>(lane % 8) * 8;
  const int n = n0 + chunk * 64 + column;
  const bool in_n = column < BN - chunk * 64 && n < N;
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // eight lanes to a row of up to 64 columns
    const int r = i * 4 + static_cast<int>(lane) / 8;
    const uint4 v = tw::ld_shared_16(staging + r * 128 + (((lane % 8) ^ (r % 8)) << 4));
    if (in_n && m0 + r < M) *reinterpret_cast<uint4*>(c_ptr + static_cast<i64>(m0 + r) * N + n) = v;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm_overlap(const __grid_constant__ tw::TensorMap map_a, const __grid_constant__ tw::TensorMap map_b,
                 u16* __restrict__ c_ptr, int M, int N, int K) {
  extern __shared__ __align__(1024) char smem_raw[];
  const u32 smem = tw::smem_addr(smem_raw);
  if (smem % 1024 != 0) __trap();  // the swizzle patterns would be off
  const u32 warp = tw::warp_index();
  const u32 rank = CLUSTER > 1 ? tw::cluster_cta_rank() : 0;
  const u32 rank_m = rank % CLUSTER_M;
  const u32 rank_n = rank / CLUSTER_M;
  const int cluster_id = blockIdx.x / CLUSTER;
  const int clusters = gridDim.x / CLUSTER;
  const int tiles_m = (M + BM * CLUSTER_M - 1) / (BM * CLUSTER_M);
  const int tiles_n = (N + BN * CLUSTER_N - 1) / (BN * CLUSTER_N);
  const int tiles = tiles_m * tiles_n;
  const int k_blocks = (K + BK - 1) / BK;

  if (warp == 0 && tw::elect_one()) {
    tw::prefetch_tensormap(&map_a);
    tw::prefetch_tensormap(&map_b);
    for (int s = 0; s < STAGES; ++s) {
      tw::mbarrier_init(smem + SMEM_FULL + 8 * s, 1);
      tw::mbarrier_init(smem + SMEM_EMPTY + 8 * s, 4 * CONSUMERS * CLUSTER);
    }
    tw::fence_mbarrier_init();
  }
  if (PDL) tw::grid_dependency_launch();
  if (CLUSTER > 1)
    tw::cluster_sync_relaxed();
  else
    __syncthreads();

  if (warp < 4) {
    // ------------------------------------------------------------ producer
    TW_SETMAXNREG_DEC(PRODUCER_REGS);
    if (warp == 0 && tw::elect_one()) {
      const u64 hint_a = TW_CAT(tw::l2_evict_, HINT_A)();
      const u64 hint_b = TW_CAT(tw::l2_evict_, HINT_B)();
      if (PDL) tw::grid_dependency_wait();
      u32 slot = 0, parity = 1;  // the first STAGES waits pass: nothing has been put into the ring yet
      for (int tile = cluster_id; tile < tiles; tile += clusters) {
        int tile_m, tile_n;
        tile_at(tile, tiles_m, tiles_n, tile_m, tile_n);
        const int m0 = (tile_m * CLUSTER_M + rank_m) * BM;
        const int n0 = (tile_n * CLUSTER_N + rank_n) * BN;
        // A box that lies wholly outside the matrix is very slow to fill, so it is taken from the matrix's start
        // instead; rows and columns past the end are never stored, whatever they were computed from.
        for (int kb = 0; kb < k_blocks; ++kb) {
          const u32 full = smem + SMEM_FULL + 8 * slot;
          if (CLUSTER > 1)
            tw::mbarrier_wait_relaxed_cluster(smem + SMEM_EMPTY + 8 * slot, parity);
          else
            tw::mbarrier_wait(smem + SMEM_EMPTY + 8 * slot, parity);
          tw::mbarrier_arrive_expect_tx(full, STAGE_BYTES);
          const u32 a = smem + SMEM_A + slot * A_BYTES;
          const u32 b = smem + SMEM_B + slot * B_BYTES;
          if (CLUSTER_N == 1) {
            tw::tma_load_2d_hint(a, &map_a, full, kb * BK, inside(m0, M), hint_a);
          } else {  // this rank loads its share of the rows for every CTA in its cluster row
            const u32 part = rank_n * (BM / CLUSTER_N);
            const u16 mask = static_cast<u16>((CLUSTER_N == 2 ? (1 | 1 << CLUSTER_M) : 1) << rank_m);
            tw::tma_load_2d_multicast_hint(a + part * 128, &map_a, full, kb * BK, inside(m0 + part, M), mask,
                                           hint_a);
          }
          if (CLUSTER_M == 1) {
            tw::tma_load_2d_hint(b, &map_b, full, kb * BK, inside(n0, N), hint_b);
          } else {
            const u32 part = rank_m * (BN / CLUSTER_M);
            const u16 mask = static_cast<u16>(((1 << CLUSTER_M) - 1) << (rank_n * CLUSTER_M));
            tw::tma_load_2d_multicast_hint(b + part * 128, &map_b, full, kb * BK, inside(n0 + part, N), mask,
                                           hint_b);
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
    TW_SETMAXNREG_INC(CONSUMER_REGS);
    const u32 lane = tw::lane_index();
    const u32 wg_row = (warp / 4 - 1) * 64;                               // first tile row of this warpgroup
    const u32 warp_row = wg_row + (warp % 4) * 16;                        // first tile row of this warp
    const u32 staging = smem + SMEM_C + warp_row * 128;
    RingPosition at = {0, 0, 0, false};
    float even[BN / 2], odd[BN / 2];  // accumulators of this CTA's even and odd tiles
    int done_m = 0, done_n = 0;       // first row (of this warp) and column of the tile that waits to be stored

// One tile into ACC, storing the previous tile from OTHER behind its first k blocks (STORE: there is one).
#define TILE(ACC, OTHER, STORE)                                                                  \
  {                                                                                              \
    int tile_m, tile_n;                                                                          \
    tile_at(tile, tiles_m, tiles_n, tile_m, tile_n);                                             \
    _Pragma("unroll") for (int c = 0; c < EPI_CHUNKS; ++c) {                                     \
      if (c == 0 || c < k_blocks) k_step(ACC, at, smem, wg_row, lane, c > 0);                    \
      if (STORE) store_chunk(OTHER, c, staging, lane, c_ptr, M, N, done_m, done_n);              \
    }                                                                                            \
    for (int kb = EPI_CHUNKS; kb < k_blocks; ++kb) k_step(ACC, at, smem, wg_row, lane, 1);       \
    done_m = (tile_m * CLUSTER_M + rank_m) * BM + warp_row;                                      \
    done_n = (tile_n * CLUSTER_N + rank_n) * BN;                                                 \
    tile += clusters;                                                                            \
  }
// The last tile has no next one to hide behind.
#define LAST(ACC)                                                                                \
  {                                                                                              \
    tw::wgmma_wait<0>();                                                                         \
    release(smem + SMEM_EMPTY + 8 * at.previous, lane);                                          \
    _Pragma("unroll") for (int c = 0; c < EPI_CHUNKS; ++c)                                       \
        store_chunk(ACC, c, staging, lane, c_ptr, M, N, done_m, done_n);                         \
  }

    int tile = cluster_id;
    if (tile < tiles) {
      TILE(even, odd, false)
      while (true) {
        if (tile >= tiles) {
          LAST(even)
          break;
        }
        TILE(odd, even, true)
        if (tile >= tiles) {
          LAST(odd)
          break;
        }
        TILE(even, odd, true)
      }
    }
  }
  // No CTA leaves while a peer may still write its shared memory or arrive on its barriers.
  if (CLUSTER > 1) tw::cluster_sync_relaxed();
}
