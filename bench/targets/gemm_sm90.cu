// C[m, n] = bf16(sum over k of A[m, k] * B[n, k]), f32 accumulation. A is M x K, B is N x K, C is M x N, rows contiguous.
//
// Roles: warpgroup 0 is the producer (one elected thread issues TMA), warpgroups 1..CONSUMERS compute and store.
// One FIFO ring of STAGES slots (A tile + B tile); full[slot]: bytes landed, empty[slot]: every reader is done.
// Persistent: each cluster walks tiles cluster_id, cluster_id + clusters, ... in a grouped, serpentine raster.
// Preconditions: K % 8 == 0, N % 8 == 0 (TMA row pitch), 16-byte aligned bases. M, N, K need not divide the tile:
// TMA fills out-of-range loads with zero (the identity of the sum) and clips stores.
//
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_M=2 -DEPI_BUFS=2
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_M=2 -DEPI_BUFS=2 -DSTORE_ROWS=16 -DEARLY_A=1
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_M=2 -DEPI_BUFS=2 -DSTORE_ROWS=16 -DEARLY_A=1 -DPDL=1
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_M=1 -DEPI_BUFS=2
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_N=2 -DCLUSTER_M=1 -DEPI_BUFS=2
// tw-variants: -DBM=128 -DBN=128 -DSTAGES=5 -DCLUSTER_M=2 -DPINGPONG=1 -DEPI_BUFS=2
// tw-variants: -DBM=256 -DBN=128 -DSTAGES=4 -DCLUSTER_M=2 -DEPI_BUFS=2
// tw-variants: -DBM=128 -DBN=256 -DSTAGES=4 -DCLUSTER_M=2 -DSTORE_DIRECT=1
// tw-variants: -DBM=128 -DBN=192 -DSTAGES=5 -DCLUSTER_M=2 -DEPI_BUFS=1 -DREPACK=1
// tw-variants: -DBM=128 -DBN=208 -DSTAGES=5 -DCLUSTER_M=2 -DEPI_BUFS=1 -DSTORE_VECTOR=1 -DPDL=1
// tw-variants: -DBM=128 -DBN=112 -DSTAGES=7 -DCLUSTER_M=2 -DEPI_BUFS=1 -DSTORE_VECTOR=1 -DPDL=1
// tw-variants: -DBM=128 -DBN=192 -DSTAGES=5 -DCLUSTER_M=2 -DEPI_BUFS=1
#include "tw_device.cuh"

#ifndef BM
#define BM 128  // tile rows of one CTA
#endif
#ifndef BN
#define BN 256  // tile columns of one CTA: also n of the wgmma
#endif
#ifndef BK
#define BK 64  // k extent of a slot: multiples of 64 bf16 = one 128-byte swizzled row
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef CONSUMERS
#define CONSUMERS 2  // consumer warpgroups
#endif
#ifndef PINGPONG
#define PINGPONG 0  // 0: consumers split the tile's rows; 1: consumers take alternate tiles
#endif
#ifndef CLUSTER_M
#define CLUSTER_M 2  // CTAs along M of a cluster: they share (multicast) the B tile
#endif
#ifndef CLUSTER_N
#define CLUSTER_N 1  // CTAs along N of a cluster: they share (multicast) the A tile
#endif
#ifndef GROUP
#define GROUP 8  // cluster-tile rows per raster group
#endif
#ifndef EPI_BUFS
#define EPI_BUFS 2  // store staging buffers (64 x 64 bf16) per consumer warpgroup
#endif
#ifndef STORE_ROWS
#define STORE_ROWS 64  // rows of one TMA store: 64: a warpgroup stages and stores together; 16: each warp on its own
#endif
#ifndef EARLY_A
#define EARLY_A 0  // 1: the first tile's A loads are issued before the cluster barrier (A is not multicast)
#endif
#ifndef PDL
#define PDL 0  // 1: programmatic dependent launch: set-up overlaps the previous kernel's tail; loads wait for its end
#endif
#ifndef STAGGER
#define STAGGER 0  // consumer 1 starts this many slots behind consumer 0, so that their epilogues do not coincide
#endif
#ifndef STORE_DIRECT
#define STORE_DIRECT 0  // 1: ordinary 4-byte stores: C's rows have any pitch and alignment (N % 8 != 0)
#endif
#ifndef STORE_VECTOR
#define STORE_VECTOR 0  // 1: ordinary 16-byte stores instead of TMA: BN may be any multiple of 16
#endif
#define STORE_TMA (!STORE_DIRECT && !STORE_VECTOR)
#ifndef REPACK
#define REPACK 0  // 1: A's and B's rows have any pitch (K % 8 != 0): first copied to padded buffers, in the same launch
#endif
#ifndef HINT_A
#define HINT_A normal  // L2 eviction policy of each stream: first | last | normal
#endif
#ifndef HINT_B
#define HINT_B normal
#endif
#ifndef HINT_C
#define HINT_C first
#endif
#ifndef PRODUCER_REGS
#define PRODUCER_REGS 40
#endif
#ifndef CONSUMER_REGS
#define CONSUMER_REGS 232
#endif

using tw::i32;
using tw::u16;
using tw::u32;
using tw::u64;

constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int CLUSTER = CLUSTER_M * CLUSTER_N;
constexpr int WG_ROWS = PINGPONG ? BM : BM / CONSUMERS;  // rows of one warpgroup's accumulator
constexpr int M64 = WG_ROWS / 64;                        // wgmma row blocks of one warpgroup
constexpr int K_SUB = BK / 64;                           // 128-byte-wide sub-tiles of a slot
constexpr int A_SUB_BYTES = BM * 128;
constexpr int B_SUB_BYTES = BN * 128;
constexpr int A_BYTES = K_SUB * A_SUB_BYTES;
constexpr int B_BYTES = K_SUB * B_SUB_BYTES;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int EPI_BYTES = 64 * 128;  // one staging buffer
constexpr int EPI_CHUNKS = (BN + 63) / 64;
constexpr int EMPTY_ARRIVALS = 4 * (PINGPONG ? 1 : CONSUMERS) * CLUSTER;  // one per consumer warp that reads the slot
static_assert(BK % 64 == 0 && WG_ROWS % 64 == 0 && BN % 16 == 0, "tile must be whole wgmma blocks");
static_assert(BN % 64 == 0 || STORE_VECTOR, "TMA stores whole 64-column chunks");
static_assert(M64 * BN / 2 <= 192, "accumulators exceed the register budget");
static_assert(!STORE_TMA || M64 * EPI_CHUNKS % EPI_BUFS == 0, "staging buffers must be used round robin across tiles");
static_assert(!EARLY_A || (CLUSTER_N == 1 && !REPACK), "only a CTA's own loads may precede the cluster barrier");
static_assert(!PDL || !REPACK, "the copy would have to wait for the previous kernel too");
static_assert(!PINGPONG || CONSUMERS == 2, "ping-pong is between two consumers");
static_assert(STAGGER < STAGES, "the stagger must be a slot of the first round");

// Shared memory, from a 1024-byte aligned base (the 128-byte swizzle repeats every 1024 bytes).
constexpr int SMEM_A = 0;
constexpr int SMEM_B = SMEM_A + STAGES * A_BYTES;
constexpr int SMEM_C = SMEM_B + STAGES * B_BYTES;
constexpr int SMEM_FULL = SMEM_C + CONSUMERS * EPI_BUFS * EPI_BYTES;
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

#if REPACK
// Copies the K-element rows of A and then of B to rows of KP = K rounded up to 8 elements, zero filled, `pitch` elements
// apart (a multiple of 64: rows that start on 128-byte lines keep TMA at full rate). A warp moves 32
// chunks of 16 bytes at a time. A source chunk starts at any even byte: it is cut out of the two aligned 16-byte blocks
// that hold it. The aligned block may reach past the tensor's ends by less than 16 bytes, within the same 16-byte block.
constexpr int REPACK_UNROLL = 4;
TW_DEVICE void repack(const u16* a, const u16* b, u16* a_padded, u16* b_padded, int M, int N, int K) {
  const int pitch = (K + 63) / 64 * 64;
  const int KP = (K + 7) / 8 * 8;
  const int segments = (KP / 8 + 31) / 32;  // per row
  const int items = (M + N) * segments;
  const int lane = threadIdx.x % 32;
  const int warps = gridDim.x * (THREADS / 32);
  for (int first = blockIdx.x * (THREADS / 32) + threadIdx.x / 32; first < items; first += warps * REPACK_UNROLL) {
    uint4 low[REPACK_UNROLL], high[REPACK_UNROLL];
    u16* to[REPACK_UNROLL];
    u32 shift[REPACK_UNROLL];
    int left[REPACK_UNROLL];  // elements of the row from this chunk on
#pragma unroll
    for (int i = 0; i < REPACK_UNROLL; ++i) {
      const int item = first + i * warps;
      const int row = item / segments;
      const int k = (item % segments * 32 + lane) * 8;
      const bool in_a = row < M;
      const u16* matrix = in_a ? a : b;
      const int matrix_row = in_a ? row : row - M;
      const u16* end = matrix + static_cast<tw::i64>(in_a ? M : N) * K;
      const u64 from = reinterpret_cast<u64>(matrix + static_cast<tw::i64>(matrix_row) * K + k);
      left[i] = item < items ? K - k : 0;
      shift[i] = from % 16;
      to[i] = (in_a ? a_padded : b_padded) + static_cast<tw::i64>(matrix_row) * pitch + k;
      low[i] = high[i] = make_uint4(0, 0, 0, 0);
      if (left[i] > 0) {
        const u64 block = from & ~15ull;
        low[i] = __ldg(reinterpret_cast<const uint4*>(block));
        if (block + 16 < reinterpret_cast<u64>(end)) high[i] = __ldg(reinterpret_cast<const uint4*>(block + 16));
      }
    }
#pragma unroll
    for (int i = 0; i < REPACK_UNROLL; ++i) {
      if (left[i] <= 0) continue;
      u32 w[8] = {low[i].x, low[i].y, low[i].z, low[i].w, high[i].x, high[i].y, high[i].z, high[i].w};
      if (shift[i] & 8) {
#pragma unroll
        for (int j = 0; j < 6; ++j) w[j] = w[j + 2];
      }
      if (shift[i] & 4) {
#pragma unroll
        for (int j = 0; j < 5; ++j) w[j] = w[j + 1];
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        w[j] = __funnelshift_r(w[j], w[j + 1], (shift[i] & 2) * 8);
        if (left[i] <= 2 * j) w[j] = 0;
        if (left[i] == 2 * j + 1) w[j] &= 0xffffu;
      }
      *reinterpret_cast<uint4*>(to[i]) = make_uint4(w[0], w[1], w[2], w[3]);
    }
  }
}
#endif

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    gemm(const __grid_constant__ tw::TensorMap map_a, const __grid_constant__ tw::TensorMap map_b,
#if !STORE_TMA
         u16* __restrict__ c_ptr, int ldc,
#else
         const __grid_constant__ tw::TensorMap map_c,
#endif
#if REPACK
         const u16* __restrict__ a_raw, const u16* __restrict__ b_raw, u16* a_padded, u16* b_padded, u32* arrived,
#endif
         int M, int N, int K) {
  extern __shared__ __align__(1024) char smem_raw[];
  const u32 smem = tw::smem_addr(smem_raw);
  if (smem % 1024 != 0) __trap();  // the swizzle patterns would be off
  const u32 warp = tw::warp_index();
  const u32 warpgroup = warp / 4;
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
#if STORE_TMA
    tw::prefetch_tensormap(&map_c);
#endif
    for (int s = 0; s < STAGES; ++s) {
      tw::mbarrier_init(smem + SMEM_FULL + 8 * s, 1);
      tw::mbarrier_init(smem + SMEM_EMPTY + 8 * s, EMPTY_ARRIVALS);
    }
    tw::fence_mbarrier_init();
  }
  if (PDL) tw::grid_dependency_launch();
  if (CLUSTER > 1)
    tw::cluster_arrive_relaxed();
  else
    __syncthreads();
#if EARLY_A
  if (warp == 0 && tw::elect_one() && cluster_id < tiles) {
    if (PDL) tw::grid_dependency_wait();
    const u64 hint_a = TW_CAT(tw::l2_evict_, HINT_A)();
    int tile_m, tile_n;
    tile_at(cluster_id, tiles_m, tiles_n, tile_m, tile_n);
    for (int kb = 0; kb < min(STAGES, k_blocks); ++kb) {
      tw::mbarrier_arrive_expect_tx(smem + SMEM_FULL + 8 * kb, STAGE_BYTES);
#pragma unroll
      for (int ks = 0; ks < K_SUB; ++ks)
        tw::tma_load_2d_hint(smem + SMEM_A + kb * A_BYTES + ks * A_SUB_BYTES, &map_a, smem + SMEM_FULL + 8 * kb,
                             kb * BK + ks * 64, (tile_m * CLUSTER_M + rank_m) * BM, hint_a);
    }
  }
#endif
  if (CLUSTER > 1) tw::cluster_wait();

#if REPACK
  // Every CTA copies its share and arrives on a counter that grows by gridDim.x per launch; the only waiter is the
  // producer. The CTAs are all resident (one per SM, grid <= SMs). Ordinary writes, then TMA reads: a proxy fence on
  // both sides of the counter.
  repack(a_raw, b_raw, a_padded, b_padded, M, N, K);
  __threadfence();
  tw::fence_proxy_async();
  __syncthreads();
#endif

  if (warpgroup == 0) {
    // ------------------------------------------------------------ producer
    TW_SETMAXNREG_DEC(PRODUCER_REGS);
    if (warp == 0 && tw::elect_one()) {
      const u64 hint_a = TW_CAT(tw::l2_evict_, HINT_A)();
      const u64 hint_b = TW_CAT(tw::l2_evict_, HINT_B)();
      if (PDL && !EARLY_A) tw::grid_dependency_wait();
#if REPACK
      const u32 ticket = tw::atom_add_acq_rel_gpu(arrived, 1);
      const u32 target = (ticket / gridDim.x + 1) * gridDim.x;
      while (static_cast<tw::i32>(tw::ld_acquire_gpu(arrived) - target) < 0) {
      }
      tw::fence_proxy_async();
#endif
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
          const u32 empty = smem + SMEM_EMPTY + 8 * slot;
          if (CLUSTER > 1)
            tw::mbarrier_wait_relaxed_cluster(empty, parity);
          else
            tw::mbarrier_wait(empty, parity);
          const bool a_issued = EARLY_A && tile == cluster_id && kb < STAGES;
          if (!a_issued) tw::mbarrier_arrive_expect_tx(full, STAGE_BYTES);
#pragma unroll
          for (int ks = 0; ks < K_SUB; ++ks) {
            const int k0 = kb * BK + ks * 64;
            const u32 a = smem + SMEM_A + slot * A_BYTES + ks * A_SUB_BYTES;
            const u32 b = smem + SMEM_B + slot * B_BYTES + ks * B_SUB_BYTES;
            if (CLUSTER_N == 1) {
              if (!a_issued) tw::tma_load_2d_hint(a, &map_a, full, k0, inside(m0, M), hint_a);
            } else {  // this rank loads its share of the rows for every CTA in its cluster row
              const u32 part = rank_n * (BM / CLUSTER_N);
              const u16 mask = static_cast<u16>((CLUSTER_N == 2 ? (1 | 1 << CLUSTER_M) : 1) << rank_m);
              tw::tma_load_2d_multicast_hint(a + part * 128, &map_a, full, k0, inside(m0 + part, M), mask,
                                             hint_a);
            }
            if (CLUSTER_M == 1) {
              tw::tma_load_2d_hint(b, &map_b, full, k0, inside(n0, N), hint_b);
            } else {
              const u32 part = rank_m * (BN / CLUSTER_M);
              const u16 mask = static_cast<u16>(((1 << CLUSTER_M) - 1) << (rank_n * CLUSTER_M));
              tw::tma_load_2d_multicast_hint(b + part * 128, &map_b, full, k0, inside(n0 + part, N), mask,
                                             hint_b);
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
    TW_SETMAXNREG_INC(CONSUMER_REGS);
    const u32 consumer = warpgroup - 1;
    const u32 lane = tw::lane_index();
#if STORE_TMA
    const bool store_thread = STORE_ROWS == 64 ? threadIdx.x % 128 == 0 : lane == 0;
    const u64 hint_c = TW_CAT(tw::l2_evict_, HINT_C)();
#endif
    const u32 wg_row = PINGPONG ? 0 : consumer * WG_ROWS;  // first tile row of this warpgroup
    // stmatrix: lane l addresses row l % 16 of the warp's 16 rows, 16-byte column l / 16; the swizzle XORs row % 8.
    const u32 staging = smem + SMEM_C + consumer * EPI_BUFS * EPI_BYTES;
    const u32 stage_row = (warp % 4) * 16 + lane % 16;
    const u32 stage_addr = staging + stage_row * 128;
    float acc[M64][BN / 2];

    int ring = PINGPONG ? consumer * k_blocks : 0;  // position in the ring's FIFO sequence
    if (STAGGER > 0 && consumer == 1 && k_blocks > STAGGER) tw::mbarrier_wait(smem + SMEM_FULL + 8 * STAGGER, 0);
    for (int tile = cluster_id + (PINGPONG ? consumer * clusters : 0); tile < tiles;
         tile += (PINGPONG ? CONSUMERS : 1) * clusters) {
      int tile_m, tile_n;
      tile_at(tile, tiles_m, tiles_n, tile_m, tile_n);
      const int m0 = (tile_m * CLUSTER_M + rank_m) * BM + wg_row;
      const int n0 = (tile_n * CLUSTER_N + rank_n) * BN;
      u32 slot = ring % STAGES, parity = (ring / STAGES) & 1;
      u32 previous = slot;
      // Ping-pong: the k loops of the two consumers alternate. This also keeps every wait on full[] within one phase of
      // the slot's current one, without which a parity wait is ambiguous.
      if (PINGPONG && tile != cluster_id) tw::named_barrier_sync(1 + CONSUMERS + consumer, 256);
      for (int kb = 0; kb < k_blocks; ++kb) {
        tw::mbarrier_wait(smem + SMEM_FULL + 8 * slot, parity);
        tw::wgmma_fence();
        const u64 a = tw::descriptor_k_major_128b(smem + SMEM_A + slot * A_BYTES + wg_row * 128);
        const u64 b = tw::descriptor_k_major_128b(smem + SMEM_B + slot * B_BYTES);
#pragma unroll
        for (int kk = 0; kk < BK / 16; ++kk) {
          const u32 a_step = (kk / 4) * (A_SUB_BYTES >> 4) + (kk % 4) * 2;
          const u32 b_step = (kk / 4) * (B_SUB_BYTES >> 4) + (kk % 4) * 2;
#pragma unroll
          for (int i = 0; i < M64; ++i)
            TW_CAT(TW_CAT(tw::wgmma_m64n, BN), k16_bf16_ss)
            (acc[i], a + a_step + i * (64 * 128 >> 4), b + b_step, kk > 0 || kb > 0);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (kb > 0) {  // the wgmmas that read the previous slot are complete
          if (CLUSTER > 1) {
            if (lane < CLUSTER) tw::mbarrier_arrive_relaxed_cluster(smem + SMEM_EMPTY + 8 * previous, lane);
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
      if (PINGPONG && tile + clusters < tiles) tw::named_barrier_arrive(1 + CONSUMERS + (consumer ^ 1), 256);
      tw::wgmma_wait<0>();
      if (CLUSTER > 1) {
        if (lane < CLUSTER) tw::mbarrier_arrive_relaxed_cluster(smem + SMEM_EMPTY + 8 * previous, lane);
      } else {
        if (lane == 0) tw::mbarrier_arrive(smem + SMEM_EMPTY + 8 * previous);
      }
      ring += (PINGPONG ? CONSUMERS : 1) * k_blocks;

      // Epilogue: 64 x 64 chunks through the staging buffers; the stores complete behind the next tile.
#pragma unroll
      for (int i = 0; i < M64; ++i) {
#pragma unroll
        for (int c = 0; c < EPI_CHUNKS; ++c) {
          const u32 buf = ((i * EPI_CHUNKS + c) % EPI_BUFS) * EPI_BYTES;
#if !STORE_TMA
          __syncwarp();  // each warp stages and stores its own 16 rows
#else
          if (store_thread) tw::bulk_wait_read<EPI_BUFS - 1>();
          if (STORE_ROWS == 64)
            tw::named_barrier_sync(1 + consumer, 128);
          else
            __syncwarp();
#endif
#pragma unroll
          for (int j = 0; j < min(4, BN / 16 - c * 4); ++j) {
            const float* d = &acc[i][c * 32 + j * 8];
            tw::stmatrix_x4(stage_addr + buf + (((2 * j + lane / 16) ^ (lane % 8)) << 4), tw::pack_bf16(d[0], d[1]),
                            tw::pack_bf16(d[2], d[3]), tw::pack_bf16(d[4], d[5]), tw::pack_bf16(d[6], d[7]));
          }
#if STORE_DIRECT
          __syncwarp();
          const int n_first = n0 + c * 64;
          const int m_first = m0 + i * 64 + (warp % 4) * 16;
          u16* row = c_ptr + static_cast<tw::i64>(m_first) * ldc + n_first;
#pragma unroll 8
          for (int r = 0; r < 16; ++r, row += ldc) {
            // Lanes store aligned 4-byte words: a row that starts 2 bytes off a word begins with half a word (element
            // 0) and ends with half a word (element 63).
            const int off = (reinterpret_cast<u64>(row) >> 1) & 1;
            const u32 src = staging + buf + ((warp % 4) * 16 + r) * 128;
            const int e0 = 2 * static_cast<int>(lane) - off, e1 = e0 + 1;
            const u32 lo = tw::ld_shared_u16(src + ((((e0 & 63) / 8) ^ (r % 8)) << 4) + (e0 & 7) * 2);  // e0 = -1: element 63
            const u32 hi = tw::ld_shared_u16(src + (((e1 / 8) ^ (r % 8)) << 4) + (e1 & 7) * 2);
            const bool in_m = m_first + r < M;
            if (in_m && e0 >= 0 && n_first + e1 < N) {
              *reinterpret_cast<u32*>(row + e0) = lo | hi << 16;
            } else if (in_m) {
              if (n_first + e1 < N) row[e1] = static_cast<u16>(hi);
              const int tail = e0 & 63;
              if (n_first + tail < N) row[tail] = static_cast<u16>(lo);
            }
          }
#elif STORE_VECTOR
          __syncwarp();
          const int n_first = n0 + c * 64;
          const int m_first = m0 + i * 64 + (warp % 4) * 16;
#pragma unroll
          for (int r = lane / 8; r < 16; r += 4) {  // eight lanes to a row of up to 64 columns
            const int column = static_cast<int>(lane % 8) * 8;
            const uint4 v = tw::ld_shared_16(staging + buf + ((warp % 4) * 16 + r) * 128 + (((lane % 8) ^ (r % 8)) << 4));
            if (column < BN - c * 64 && n_first + column < N && m_first + r < M)
              *reinterpret_cast<uint4*>(c_ptr + static_cast<tw::i64>(m_first + r) * ldc + n_first + column) = v;
          }
#else
          tw::fence_proxy_async_shared();
          if (STORE_ROWS == 64)
            tw::named_barrier_sync(1 + consumer, 128);
          else
            __syncwarp();
          if (store_thread) {
            const u32 first = STORE_ROWS == 64 ? 0 : (warp % 4) * 16;
            tw::tma_store_2d_hint(&map_c, staging + buf + first * 128, n0 + c * 64, m0 + i * 64 + first, hint_c);
            tw::bulk_commit();
          }
#endif
        }
      }
    }
#if STORE_TMA
    if (store_thread) tw::bulk_wait_read<0>();  // staging may go; the writes land before the grid ends
#endif
  }
  // No CTA leaves while a peer may still write its shared memory or arrive on its barriers.
  if (CLUSTER > 1) tw::cluster_sync_relaxed();
}
