// Grouped GEMM: out[r, n] = bf16(sum over k of X[row(r), k] * W[g(r), n, k]), f32 accumulation.
// Rows r of group g are ends[g-1] <= r < ends[g] (ends: cumulative, int32, non-decreasing); row(r) = r, or index[r] when
// GATHER. W is E x N x K with k contiguous.
//
// W is the wgmma M side (BW rows, 64 per consumer warpgroup) and the tokens are its N side, because n of a wgmma is any
// multiple of 8 while m is 64: a group's rows are cut into ceil(rows / BT) nearly equal token tiles, rounded up only to
// TOKEN_STEP. Few-token groups therefore cost the weights' bandwidth and not a padded tile.
// Roles: warpgroup 0 produces (one elected thread issues TMA; with GATHER all 128 threads copy the gathered token rows by
// cp.async), warpgroups 1 and 2 compute and store. One FIFO ring; every role walks the same tile sequence by scanning ends.
// A tile never crosses a group. It may *read* rows past its group's end; it stores only its own rows.
// Preconditions: K % 8 == 0, N % 8 == 0, 16-byte aligned bases.
//
// tw-variants: -DCLUSTER=2 -DTOKEN_BOX=32
// tw-variants: -DCLUSTER=1 -DTOKEN_BOX=32
// tw-variants: -DCLUSTER=1 -DTOKEN_BOX=16
// tw-variants: -DCLUSTER=1 -DGATHER=1
#include "tw_device.cuh"

#ifndef BW
#define BW 128  // weight rows of one CTA's tile
#endif
#ifndef BT
#define BT 256  // most tokens of a tile
#endif
#ifndef BK
#define BK 64
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef CLUSTER
#define CLUSTER 2  // CTAs along the weight rows that share (multicast) the token tile
#endif
#ifndef TOKEN_BOX
#define TOKEN_BOX 16  // token rows of one TMA box; a tile loads only the boxes it needs
#endif
#ifndef TOKEN_CHUNK
#define TOKEN_CHUNK 64  // token rows of the store staging buffer
#endif
#ifndef STAGGER
#define STAGGER 0  // consumer 1 starts this many slots behind consumer 0, so that their epilogues do not coincide
#endif
#ifndef GATHER
#define GATHER 0
#endif
#ifndef GATHER_LAG
#define GATHER_LAG 2  // slots of cp.async in flight per loader thread
#endif
#ifndef HINT_W
#define HINT_W first  // weights pass through once; tokens are read by every weight tile
#endif
#ifndef HINT_X
#define HINT_X last
#endif
#ifndef PRODUCER_REGS
#define PRODUCER_REGS (GATHER ? 72 : 40)
#endif
#ifndef CONSUMER_REGS
#define CONSUMER_REGS (GATHER ? 216 : 232)
#endif

using tw::i64;
using tw::u16;
using tw::u32;
using tw::u64;

constexpr int CONSUMERS = BW / 64;
constexpr int THREADS = 128 * (1 + CONSUMERS);
constexpr int TOKEN_STEP = 16;
constexpr int W_BYTES = BW * 128;
constexpr int X_BYTES = BT * 128;
constexpr int STAGING_BYTES = TOKEN_CHUNK * 128;  // per consumer: TOKEN_CHUNK tokens x 64 weight rows
static_assert(BT == 64 || BT == 128 || BT == 192 || BT == 256, "the k loop is written out for these");
static_assert(BK == 64, "a slot is one 128-byte swizzled row wide");
static_assert(!GATHER || (CLUSTER == 1 && GATHER_LAG <= STAGES - 2), "gathered rows are not multicast");

constexpr int SMEM_W = 0;
constexpr int SMEM_X = SMEM_W + STAGES * W_BYTES;
constexpr int SMEM_STAGING = SMEM_X + STAGES * X_BYTES;
constexpr int SMEM_FULL = SMEM_STAGING + CONSUMERS * STAGING_BYTES;
constexpr int SMEM_EMPTY = SMEM_FULL + 8 * STAGES;
constexpr int SMEM_BYTES = SMEM_EMPTY + 8 * STAGES + 1024;
static_assert(SMEM_BYTES <= 232448, "shared memory exceeds 227 KiB");

// The tile sequence: groups in order; in a group, weight tiles in order; for a weight tile, the group's token tiles.
struct Cursor {
  int group, first_tile;    // current group and its first tile's number
  int row_begin, row_end;   // its rows
  int token_tiles, tokens;  // its number of token tiles, and the rows of each (the last may be shorter)
};
TW_DEVICE void enter_group(Cursor& c, const int* ends) {
  c.row_begin = c.row_end;
  c.row_end = __ldg(ends + c.group);
  const int rows = c.row_end - c.row_begin;
  c.token_tiles = (rows + BT - 1) / BT;
  c.tokens = c.token_tiles == 0 ? 0 : ((rows + c.token_tiles - 1) / c.token_tiles + TOKEN_STEP - 1) / TOKEN_STEP * TOKEN_STEP;
}
// Moves to the group of `tile`; false when there is no such tile.
TW_DEVICE bool seek(Cursor& c, int tile, int weight_tiles, const int* ends, int groups) {
  while (tile >= c.first_tile + c.token_tiles * weight_tiles) {
    c.first_tile += c.token_tiles * weight_tiles;
    if (++c.group >= groups) return false;
    enter_group(c, ends);
  }
  return true;
}

// One tile's k loop with wgmma n = NT. Reads k_blocks slots from the ring, releasing each once its readers are done.
#define MAINLOOP(NT)                                                                                        \
  for (int kb = 0; kb < k_blocks; ++kb) {                                                                   \
    tw::mbarrier_wait(smem + SMEM_FULL + 8 * slot, parity);                                                 \
    tw::wgmma_fence();                                                                                      \
    const u64 w = tw::descriptor_k_major_128b(smem + SMEM_W + slot * W_BYTES + consumer * (64 * 128));      \
    const u64 x = tw::descriptor_k_major_128b(smem + SMEM_X + slot * X_BYTES);                              \
    _Pragma("unroll") for (int kk = 0; kk < 4; ++kk) tw::wgmma_m64n##NT##k16_bf16_ss(                       \
        reinterpret_cast<float(&)[NT / 2]>(acc), w + kk * 2, x + kk * 2, kk > 0 || kb > 0);                 \
    tw::wgmma_commit();                                                                                     \
    tw::wgmma_wait<1>();                                                                                    \
    if (kb > 0) release(smem + SMEM_EMPTY + 8 * previous, lane);                                            \
    previous = slot;                                                                                        \
    if (++slot == STAGES) {                                                                                 \
      slot = 0;                                                                                             \
      parity ^= 1;                                                                                          \
    }                                                                                                       \
  }                                                                                                         \
  tw::wgmma_wait<0>();

TW_DEVICE void release(u32 empty, u32 lane) {
  if (CLUSTER > 1) {
    if (lane < CLUSTER) tw::mbarrier_arrive_relaxed_cluster(empty, lane);
  } else {
    if (lane == 0) tw::mbarrier_arrive(empty);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    grouped(
#if GATHER
        const u16* __restrict__ x_ptr, const int* __restrict__ index,
#else
        const __grid_constant__ tw::TensorMap map_x,
#endif
        const __grid_constant__ tw::TensorMap map_w, u16* __restrict__ out, const int* __restrict__ ends, int groups, int N,
        int K) {
  extern __shared__ char smem_raw[];
  const u32 smem = (tw::smem_addr(smem_raw) + 1023) & ~1023u;
  const u32 warp = tw::warp_index();
  const u32 rank = CLUSTER > 1 ? tw::cluster_cta_rank() : 0;
  const int cluster_id = blockIdx.x / CLUSTER;
  const int clusters = gridDim.x / CLUSTER;
  const int weight_tiles = (N + BW * CLUSTER - 1) / (BW * CLUSTER);
  const int k_blocks = (K + BK - 1) / BK;

  if (warp == 0 && tw::elect_one()) {
#if !GATHER
    tw::prefetch_tensormap(&map_x);
#endif
    tw::prefetch_tensormap(&map_w);
    for (int s = 0; s < STAGES; ++s) {
      tw::mbarrier_init(smem + SMEM_FULL + 8 * s, GATHER ? 1 + 128 : 1);
      tw::mbarrier_init(smem + SMEM_EMPTY + 8 * s, 4 * CONSUMERS * CLUSTER);
    }
    tw::fence_mbarrier_init();
  }
  if (CLUSTER > 1)
    tw::cluster_sync_relaxed();
  else
    __syncthreads();

  Cursor cursor;
  cursor.group = 0;
  cursor.first_tile = 0;
  cursor.row_end = 0;
  enter_group(cursor, ends);

  if (warp < 4) {
    // ------------------------------------------------------------ producer
    TW_SETMAXNREG_DEC(PRODUCER_REGS);
    const u64 hint_w = TW_CAT(tw::l2_evict_, HINT_W)();
    u32 slot = 0, parity = 1;
#if GATHER
    // Loader thread t copies 16-byte column t % 8 of token rows t / 8, t / 8 + 16, ...
    const u32 column = threadIdx.x % 8;
    const u32 first_row = threadIdx.x / 8;
    const u32 x_dst = smem + SMEM_X + first_row * 128 + ((column ^ (first_row % 8)) << 4);
    u32 done_slot = 0;  // next slot whose copies this thread has yet to publish
    int pending = 0;    // slots issued and not yet published
    for (int tile = cluster_id; seek(cursor, tile, weight_tiles, ends, groups); tile += clusters) {
      const int inside = tile - cursor.first_tile;
      const int w_row = cursor.group * N + inside / cursor.token_tiles * BW;
      const int row0 = cursor.row_begin + inside % cursor.token_tiles * cursor.tokens;
      const int count = min(cursor.tokens, cursor.row_end - row0);
      const int passes = (count + 15) / 16;
      const u16* source[BT / 16];
#pragma unroll
      for (int i = 0; i < BT / 16; ++i) {
        const int r = static_cast<int>(first_row) + 16 * i;
        source[i] = x_ptr + (r < count ? static_cast<i64>(__ldg(index + row0 + r)) * K : 0) + column * 8;
      }
      for (int kb = 0; kb < k_blocks; ++kb) {
        tw::mbarrier_wait(smem + SMEM_EMPTY + 8 * slot, parity);
        if (threadIdx.x == 0) {
          const u32 full = smem + SMEM_FULL + 8 * slot;
          tw::mbarrier_arrive_expect_tx(full, W_BYTES);
          tw::tma_load_2d_hint(smem + SMEM_W + slot * W_BYTES, &map_w, full, kb * BK, w_row, hint_w);
        }
        const u32 in_k = kb * BK + static_cast<int>(column) * 8 < K ? 16 : 0;
#pragma unroll
        for (int i = 0; i < BT / 16; ++i)
          if (i < passes) {
            const bool valid = static_cast<int>(first_row) + 16 * i < count;
            tw::cp_async_16_zfill(x_dst + slot * X_BYTES + i * (16 * 128), source[i] + (in_k ? kb * BK : 0),
                                  valid ? in_k : 0);
          }
        tw::cp_async_commit();
        if (++pending > GATHER_LAG) {  // the oldest slot's copies have landed: publish them to the async proxy
          tw::cp_async_wait<GATHER_LAG>();
          tw::fence_proxy_async_shared();
          tw::mbarrier_arrive(smem + SMEM_FULL + 8 * done_slot);
          if (++done_slot == STAGES) done_slot = 0;
          --pending;
        }
        if (++slot == STAGES) {
          slot = 0;
          parity ^= 1;
        }
      }
    }
    tw::cp_async_wait<0>();
    tw::fence_proxy_async_shared();
    for (; pending > 0; --pending) {
      tw::mbarrier_arrive(smem + SMEM_FULL + 8 * done_slot);
      if (++done_slot == STAGES) done_slot = 0;
    }
#else
    if (warp == 0 && tw::elect_one()) {
      const u64 hint_x = TW_CAT(tw::l2_evict_, HINT_X)();
      for (int tile = cluster_id; seek(cursor, tile, weight_tiles, ends, groups); tile += clusters) {
        const int inside = tile - cursor.first_tile;
        const int w_row = cursor.group * N + (inside / cursor.token_tiles * CLUSTER + rank) * BW;
        const int row0 = cursor.row_begin + inside % cursor.token_tiles * cursor.tokens;
        const int count = min(cursor.tokens, cursor.row_end - row0);
        const int boxes = (count + TOKEN_BOX - 1) / TOKEN_BOX;
        for (int kb = 0; kb < k_blocks; ++kb) {
          const u32 full = smem + SMEM_FULL + 8 * slot;
          if (CLUSTER > 1)
            tw::mbarrier_wait_relaxed_cluster(smem + SMEM_EMPTY + 8 * slot, parity);
          else
            tw::mbarrier_wait(smem + SMEM_EMPTY + 8 * slot, parity);
          tw::mbarrier_arrive_expect_tx(full, W_BYTES + boxes * (TOKEN_BOX * 128));
          tw::tma_load_2d_hint(smem + SMEM_W + slot * W_BYTES, &map_w, full, kb * BK, w_row, hint_w);
          const u32 x = smem + SMEM_X + slot * X_BYTES;
          for (int box = rank; box < boxes; box += CLUSTER) {  // the ranks take turns, each box goes to all of them
            if (CLUSTER > 1)
              tw::tma_load_2d_multicast_hint(x + box * (TOKEN_BOX * 128), &map_x, full, kb * BK, row0 + box * TOKEN_BOX,
                                             (1 << CLUSTER) - 1, hint_x);
            else
              tw::tma_load_2d_hint(x + box * (TOKEN_BOX * 128), &map_x, full, kb * BK, row0 + box * TOKEN_BOX, hint_x);
          }
          if (++slot == STAGES) {
            slot = 0;
            parity ^= 1;
          }
        }
      }
    }
#endif
  } else {
    // ------------------------------------------------------------ consumers
    TW_SETMAXNREG_INC(CONSUMER_REGS);
    const u32 consumer = warp / 4 - 1;
    const u32 lane = tw::lane_index();
    const u32 thread = threadIdx.x % 128;
    const u32 staging = smem + SMEM_STAGING + consumer * STAGING_BYTES;
    // stmatrix.trans: lane l addresses token l % 8 (+ 8 for lanes 16..31), 16-byte column 2 * warp + (l / 8) % 2.
    const u32 stage_token = lane % 8 + lane / 16 * 8;
    const u32 stage_addr = staging + stage_token * 128 + ((((warp % 4) * 2 + lane / 8 % 2) ^ (lane % 8)) << 4);
    float acc[BT / 2];
    u32 slot = 0, parity = 0;
    if (STAGGER > 0 && consumer == 1 && k_blocks > STAGGER && cluster_id < weight_tiles * ((__ldg(ends + groups - 1) + BT - 1) / BT))
      tw::mbarrier_wait(smem + SMEM_FULL + 8 * STAGGER, 0);
    for (int tile = cluster_id; seek(cursor, tile, weight_tiles, ends, groups); tile += clusters) {
      const int inside = tile - cursor.first_tile;
      const int n0 = (inside / cursor.token_tiles * CLUSTER + rank) * BW + consumer * 64;
      const int row0 = cursor.row_begin + inside % cursor.token_tiles * cursor.tokens;
      const int count = min(cursor.tokens, cursor.row_end - row0);
      u32 previous = slot;
      switch ((count + TOKEN_STEP - 1) / TOKEN_STEP) {
        case 1: MAINLOOP(16) break;
        case 2: MAINLOOP(32) break;
        case 3: MAINLOOP(48) break;
        case 4: MAINLOOP(64) break;
#if BT >= 128
        case 5: MAINLOOP(80) break;
        case 6: MAINLOOP(96) break;
        case 7: MAINLOOP(112) break;
        case 8: MAINLOOP(128) break;
#endif
#if BT >= 192
        case 9: MAINLOOP(144) break;
        case 10: MAINLOOP(160) break;
        case 11: MAINLOOP(176) break;
        case 12: MAINLOOP(192) break;
#endif
#if BT >= 256
        case 13: MAINLOOP(208) break;
        case 14: MAINLOOP(224) break;
        case 15: MAINLOOP(240) break;
        case 16: MAINLOOP(256) break;
#endif
      }
      release(smem + SMEM_EMPTY + 8 * previous, lane);

      // Epilogue: TOKEN_CHUNK tokens at a time, transposed into staging (token rows of 64 weights), then 16-byte stores.
#pragma unroll
      for (int chunk = 0; chunk < BT / TOKEN_CHUNK; ++chunk) {
        if (chunk * TOKEN_CHUNK < count) {
          tw::named_barrier_sync(1 + consumer, 128);
#pragma unroll
          for (int j = 0; j < TOKEN_CHUNK / 16; ++j) {
            const float* d = &acc[(chunk * TOKEN_CHUNK + 16 * j) / 2];
            tw::stmatrix_x4_trans(stage_addr + j * (16 * 128), tw::pack_bf16(d[0], d[1]), tw::pack_bf16(d[2], d[3]),
                                  tw::pack_bf16(d[4], d[5]), tw::pack_bf16(d[6], d[7]));
          }
          tw::named_barrier_sync(1 + consumer, 128);
          const u32 column = thread % 8;
#pragma unroll
          for (int i = 0; i < TOKEN_CHUNK / 16; ++i) {
            const int in_chunk = i * 16 + static_cast<int>(thread) / 8;
            const int token = chunk * TOKEN_CHUNK + in_chunk;
            const uint4 v = tw::ld_shared_16(staging + in_chunk * 128 + ((column ^ (in_chunk % 8)) << 4));
            const int n = n0 + static_cast<int>(column) * 8;
            if (token < count && n < N) *reinterpret_cast<uint4*>(out + static_cast<i64>(row0 + token) * N + n) = v;
          }
        }
      }
    }
  }
  if (CLUSTER > 1) tw::cluster_sync_relaxed();
}
