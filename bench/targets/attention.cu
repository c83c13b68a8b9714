// Flash attention forward, bf16 in and out, fp32 accumulation, sm_90a.
//   O[b,h,i,:] = sum_j softmax_j(scale * Q[b,h,i,:].K[b,h/group,j,:]) V[b,h/group,j,:]      (causal: j <= i)
//   LSE[b,h,i] = log sum_j exp(scale * Q.K)                                                 (natural logarithm)
//
// One block owns QUERY_ROWS = 64 * CONSUMERS query rows of one head at a time and walks the keys from the last tile to
// the first (so that the tiles that need a mask come first). Persistent: the stream of (tile, key tile) pairs never
// stops, the first scores of the next tile are computed together with the last values product of the present one.
//
//   warpgroup 0       producer: one thread, TMA of Q, K, V into rings of swizzled shared memory
//   warpgroups 1..C   consumers, 64 rows each. In one step of the stream, a consumer
//                       issues  S(g+1) = Q K(g+1)^T   (both operands from shared memory)
//                       issues  O     += P(g) V(g)    (P from registers, V as it lies: MN-major)
//                       lets the next consumer issue (named barriers in a ring), and meanwhile
//                       waits for S(g+1), exponentiates it relative to the row's reference, sums (masked tiles: masks
//                       first, and moves the reference to the maximum)
//                       waits for O, rescales it if the reference moved, packs P(g+1)
//
// tw-variants: -DHEAD_DIM=64 -DBN=128 -DCONSUMERS=3 -DKV_STAGES=4 -DQ_STAGES=2 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=64 -DBN=128 -DCONSUMERS=3 -DKV_STAGES=3 -DQ_STAGES=2 -DCAUSAL=1 -DDYNAMIC=1
// tw-variants: -DHEAD_DIM=128 -DBN=80 -DCONSUMERS=3 -DKV_STAGES=4 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=128 -DBN=80 -DCONSUMERS=3 -DKV_STAGES=4 -DCAUSAL=1 -DDYNAMIC=1 -DPINGPONG=0
// tw-variants: -DHEAD_DIM=256 -DBN=64 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=256 -DBN=64 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=1 -DDYNAMIC=1
#include "tw_device.cuh"

using namespace tw;

// ---------------------------------------------------------------- constants of the variant

#ifndef HEAD_DIM
#define HEAD_DIM 128  // d: 64, 128 or 256
#endif
#ifndef BN
#define BN 128  // keys per tile, a multiple of 16
#endif
#ifndef CONSUMERS
#define CONSUMERS 2  // consumer warpgroups, 64 query rows each
#endif
#ifndef KV_STAGES
#define KV_STAGES 2  // slots of the K ring and of the V ring
#endif
#ifndef Q_STAGES
#define Q_STAGES 1  // slots of each consumer's Q ring
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif
#ifndef PINGPONG
#define PINGPONG 1  // consumers take turns to issue their matrix products
#endif
#ifndef SKIP
#define SKIP CAUSAL  // a consumer passes over key tiles that lie beyond all of its own rows
#endif
#ifndef DYNAMIC
#define DYNAMIC 0  // 1: tiles come from a global counter; 0: tile r of block c is r*grid + c, odd rounds reversed
#endif
#ifndef RESCALE_SLACK
#define RESCALE_SLACK 8.0f  // O is rescaled only when the maximum has grown by more than this many powers of two
#endif
#ifndef OPTIMISTIC
#define OPTIMISTIC 1  // unmasked steps keep the reference as it is and check afterwards that nothing grew out of range
#endif
#ifndef PRODUCER_REGS
#define PRODUCER_REGS (CONSUMERS == 2 ? 24 : 32)
#endif
#ifndef CONSUMER_REGS
#define CONSUMER_REGS (CONSUMERS == 2 ? 240 : 160)
#endif

constexpr int WG_ROWS = 64;
constexpr int QUERY_ROWS = CONSUMERS * WG_ROWS;
constexpr int THREADS = 128 * (CONSUMERS + 1);
// Q, K and V lie in shared memory as HEAD_DIM / 64 panels, each 64 bf16 = 128 bytes wide: the swizzle's width.
constexpr int Q_PANEL_BYTES = WG_ROWS * 128;
constexpr int Q_BYTES = WG_ROWS * HEAD_DIM * 2;     // one consumer's rows
constexpr int KV_PANEL_BYTES = BN * 128;
constexpr int KV_BYTES = BN * HEAD_DIM * 2;
constexpr int KEY_STEPS = HEAD_DIM / 16;            // wgmma k-steps of Q K^T
constexpr int VALUE_STEPS = BN / 16;                // wgmma k-steps of P V

// Shared memory, from a 1024-byte aligned base.
constexpr int SMEM_Q = 0;
constexpr int SMEM_K = SMEM_Q + CONSUMERS * Q_STAGES * Q_BYTES;
constexpr int SMEM_V = SMEM_K + KV_STAGES * KV_BYTES;
constexpr int SMEM_BARRIERS = SMEM_V + KV_STAGES * KV_BYTES;
constexpr int BAR_Q_FULL = SMEM_BARRIERS;                          // [CONSUMERS][Q_STAGES]
constexpr int BAR_Q_EMPTY = BAR_Q_FULL + 8 * CONSUMERS * Q_STAGES;
constexpr int BAR_K_FULL = BAR_Q_EMPTY + 8 * CONSUMERS * Q_STAGES; // [KV_STAGES] each
constexpr int BAR_K_EMPTY = BAR_K_FULL + 8 * KV_STAGES;
constexpr int BAR_V_FULL = BAR_K_EMPTY + 8 * KV_STAGES;
constexpr int BAR_V_EMPTY = BAR_V_FULL + 8 * KV_STAGES;
constexpr int BAR_TILE_FULL = BAR_V_EMPTY + 8 * KV_STAGES;         // [2] each, only with DYNAMIC
constexpr int BAR_TILE_EMPTY = BAR_TILE_FULL + 16;
constexpr int SMEM_TILE_INDEX = BAR_TILE_EMPTY + 16;               // int[2]
constexpr int SMEM_SCRATCH = SMEM_TILE_INDEX + 8;                  // one word, see finish_before_wait
constexpr int SMEM_BYTES = SMEM_SCRATCH + 8 + 1024;                // + slack for the base alignment
static_assert(SMEM_BYTES <= 232448, "shared memory of one block");
static_assert(BN % 16 == 0 && BN <= 256 && HEAD_DIM % 64 == 0, "tile shape");

constexpr int WARPS_PER_CONSUMER = 4;
constexpr int TURN_BARRIER = 1;  // named barriers TURN_BARRIER + consumer index
constexpr float SUM_LIMIT = 1.0e18f;  // a key tile's sum may reach 2^60; a float has room for 2^67 more
#define NEG_INF __int_as_float(static_cast<int>(0xff800000u))

// Whole register arrays: between a wgmma wait and the first use; before the first accumulation.
#define PIN(array) \
  _Pragma("unroll") for (int i_ = 0; i_ < int(sizeof(array) / 4); ++i_) wgmma_pin(array[i_])
#define ZERO(array) \
  _Pragma("unroll") for (int i_ = 0; i_ < int(sizeof(array) / 4); ++i_) array[i_] = 0.0f

#define WGMMA_SCORES TW_CAT(TW_CAT(wgmma_m64n, BN), k16_bf16_ss)
#define WGMMA_VALUES TW_CAT(TW_CAT(wgmma_m64n, HEAD_DIM), k16_bf16_rs)

// ---------------------------------------------------------------- tiles

struct Problem {
  int batch, heads, group;  // group: query heads per key/value head
  int queries, keys;        // sequence lengths
  int section;              // heads that are walked together, longest tiles first (their K and V stay in L2)
  float scale_log2;         // softmax scale * log2(e)
};

struct Tile {
  int batch, head;
  int row;        // first query row
  int key_tiles;  // key tiles that some row of the tile attends to
};

TW_DEVICE int query_blocks(const Problem& pb) { return (pb.queries + QUERY_ROWS - 1) / QUERY_ROWS; }
TW_DEVICE int tile_count(const Problem& pb) { return query_blocks(pb) * pb.batch * pb.heads; }

// Sections of `section` heads; inside one, blocks of query rows from the longest to the shortest, heads innermost.
TW_DEVICE Tile tile_at(int index, const Problem& pb) {
  const int blocks = query_blocks(pb);
  const int section = index / (pb.section * blocks);
  const int rest = index - section * pb.section * blocks;
  const int first_head = section * pb.section;
  const int heads = min(pb.section, pb.batch * pb.heads - first_head);
  const int rank = rest / heads;
  const int flat_head = first_head + rest - rank * heads;
  Tile t;
  t.batch = flat_head / pb.heads;
  t.head = flat_head - t.batch * pb.heads;
  t.row = (CAUSAL ? blocks - 1 - rank : rank) * QUERY_ROWS;
  const int keys = CAUSAL ? min(pb.keys, t.row + QUERY_ROWS) : pb.keys;
  t.key_tiles = (keys + BN - 1) / BN;
  return t;
}

// The key tiles of the tile, from the last, that lie beyond the rows of consumer w.
TW_DEVICE u32 skipped_key_tiles(const Tile& tile, u32 w) {
  if (!SKIP) return 0;
  return max(0, tile.key_tiles - 1 - (tile.row + static_cast<int>(w) * WG_ROWS + WG_ROWS - 1) / BN);
}

TW_DEVICE int static_tile_index(int round) {
  return round * gridDim.x + ((round & 1) ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

// The n-th use of a ring of `stages` slots: slot n % stages, in the phase of parity n / stages % 2.
TW_DEVICE u32 slot_of(u32 n, u32 stages) { return n % stages; }
TW_DEVICE u32 phase_of(u32 n, u32 stages) { return n / stages & 1; }

// threadIdx.x, read again at each use: rarely needed values derived from it take no registers in the main loop.
TW_DEVICE u32 thread_index() {
  u32 t;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
  return t;
}
// Accumulator fragments: the first of the thread's two rows in the tile (the other is 8 below), its first column.
TW_DEVICE int fragment_row(u32 thread) { return (thread / 32 - 4) * 16 + thread % 32 / 4; }
TW_DEVICE int fragment_col(u32 thread) { return 2 * (thread % 4); }

// ---------------------------------------------------------------- the two products

// S = Q K^T: 64 x BN, both K-major.
TW_DEVICE void issue_scores(float (&s)[BN / 2], u64 q, u64 k) {
#pragma unroll
  for (int step = 0; step < KEY_STEPS; ++step) {
    const u64 in_panel = (step % 4) * 2;
    WGMMA_SCORES(s, q + in_panel + (step / 4) * (Q_PANEL_BYTES / 16), k + in_panel + (step / 4) * (KV_PANEL_BYTES / 16),
                 step != 0);
  }
  wgmma_commit();
}

// O += P V: P is the A fragment in registers, V is MN-major (its rows are keys).
TW_DEVICE void issue_values(float (&o)[HEAD_DIM / 2], const u32 (&p)[BN / 4], u64 v) {
#pragma unroll
  for (int step = 0; step < VALUE_STEPS; ++step) {
    WGMMA_VALUES<1>(o, p[4 * step], p[4 * step + 1], p[4 * step + 2], p[4 * step + 3], v + step * (2048 / 16), 1);
  }
  wgmma_commit();
}

// ---------------------------------------------------------------- softmax on the accumulator fragment
// Thread t of a warp holds, of 16 rows x BN columns, rows t/4 and t/4 + 8 (named 0 and 1 below) and columns
// 8i + 2(t%4) + {0,1}: s[4i], s[4i+1] of row 0, s[4i+2], s[4i+3] of row 1.

// first_row, first_col: of the tile and of the key tile. A column counts if it is a key and, causal, not after the row.
TW_DEVICE void mask_scores(float (&s)[BN / 2], int first_row, int first_col, int keys) {
  const u32 thread = thread_index();
  const int row = first_row + fragment_row(thread), col = first_col + fragment_col(thread);
  const int limit0 = (CAUSAL ? min(keys, row + 1) : keys) - col;
  const int limit1 = (CAUSAL ? min(keys, row + 9) : keys) - col;
#pragma unroll
  for (int i = 0; i < BN / 8; ++i) {
    s[4 * i + 0] = 8 * i + 0 < limit0 ? s[4 * i + 0] : NEG_INF;
    s[4 * i + 1] = 8 * i + 1 < limit0 ? s[4 * i + 1] : NEG_INF;
    s[4 * i + 2] = 8 * i + 0 < limit1 ? s[4 * i + 2] : NEG_INF;
    s[4 * i + 3] = 8 * i + 1 < limit1 ? s[4 * i + 3] : NEG_INF;
  }
}

TW_DEVICE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
TW_DEVICE float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

// Running state of the thread's two rows. `max` is the reference the exponentials are relative to: some score of the
// row, not far below the largest so far; `sum` is this thread's share of the row sum, relative to the same reference.
struct RowState {
  float max0, max1, sum0, sum1;
};

// s := 2^((s - reference) * scale); sum0, sum1: the thread's share of the two row sums of this key tile.
TW_DEVICE void exponentiate(float (&s)[BN / 2], float ref0, float ref1, float scale_log2, float& sum0, float& sum1) {
  float u0 = 0.0f, u1 = 0.0f, w0 = 0.0f, w1 = 0.0f;
#pragma unroll
  for (int i = 0; i < BN / 8; ++i) {
    u0 += s[4 * i + 0] = exp2_approx(fmaf(s[4 * i + 0], scale_log2, -ref0));
    w0 += s[4 * i + 1] = exp2_approx(fmaf(s[4 * i + 1], scale_log2, -ref0));
    u1 += s[4 * i + 2] = exp2_approx(fmaf(s[4 * i + 2], scale_log2, -ref1));
    w1 += s[4 * i + 3] = exp2_approx(fmaf(s[4 * i + 3], scale_log2, -ref1));
  }
  sum0 = u0 + w0;
  sum1 = u1 + w1;
}

// Scores to exponentials with a look at the maximum first. If the maximum has grown by more than RESCALE_SLACK powers
// of two the reference moves to it. Returns true (warp-uniform) if it moved: O must then be multiplied by alpha.
TW_DEVICE bool softmax_with_maximum(float (&s)[BN / 2], RowState& r, float& alpha0, float& alpha1, float scale_log2) {
  float a0 = s[0], b0 = s[1], a1 = s[2], b1 = s[3];
#pragma unroll
  for (int i = 1; i < BN / 8; ++i) {
    a0 = fmaxf(a0, s[4 * i + 0]);
    b0 = fmaxf(b0, s[4 * i + 1]);
    a1 = fmaxf(a1, s[4 * i + 2]);
    b1 = fmaxf(b1, s[4 * i + 3]);
  }
  const float max0 = fmaxf(r.max0, quad_max(fmaxf(a0, b0)));
  const float max1 = fmaxf(r.max1, quad_max(fmaxf(a1, b1)));
  // A row that has seen no column yet has max = -inf; (-inf) - (-inf) is NaN and compares false.
  const bool moved = __any_sync(0xffffffffu, (max0 - r.max0) * scale_log2 > RESCALE_SLACK ||
                                                 (max1 - r.max1) * scale_log2 > RESCALE_SLACK);
  alpha0 = 1.0f;
  alpha1 = 1.0f;
  if (moved) {
    alpha0 = exp2_approx((r.max0 - (max0 == NEG_INF ? 0.0f : max0)) * scale_log2);
    alpha1 = exp2_approx((r.max1 - (max1 == NEG_INF ? 0.0f : max1)) * scale_log2);
    r.max0 = max0;
    r.max1 = max1;
    r.sum0 *= alpha0;
    r.sum1 *= alpha1;
  }
  float sum0, sum1;
  exponentiate(s, r.max0 == NEG_INF ? 0.0f : r.max0 * scale_log2, r.max1 == NEG_INF ? 0.0f : r.max1 * scale_log2,
               scale_log2, sum0, sum1);
  r.sum0 += sum0;
  r.sum1 += sum1;
  return moved;
}

// This warp's scores once more, with mma.sync: the exponentials have overwritten them. q, k: shared addresses of the
// consumer's Q and of the key tile, both in panels of swizzled 128-byte rows.
TW_DEVICE void recompute_scores(float (&s)[BN / 2], u32 q, u32 k) {
  ZERO(s);
  const u32 lane = thread_index() % 32;
  q += thread_index() / 32 % 4 * (16 * 128);  // this warp's 16 rows
  const u32 q_row = lane % 16, k_row = lane % 8 + lane / 16 * 8;
#pragma unroll 1
  for (int step = 0; step < KEY_STEPS; ++step) {
    const u32 chunk = step % 4 * 2;  // 16-byte chunks of a panel's row; chunk c of row r lies at c ^ (r % 8)
    u32 a0, a1, a2, a3;
    ldmatrix_x4(a0, a1, a2, a3, q + step / 4 * Q_PANEL_BYTES + q_row * 128 + ((chunk + lane / 16) ^ q_row % 8) * 16);
    const u32 k_lane = k + step / 4 * KV_PANEL_BYTES + k_row * 128 + ((chunk + lane / 8 % 2) ^ k_row % 8) * 16;
#pragma unroll
    for (int i = 0; i < BN / 8; i += 2) {
      u32 b0, b1, b2, b3;
      ldmatrix_x4(b0, b1, b2, b3, k_lane + i * 8 * 128);
      mma_m16n8k16_bf16(reinterpret_cast<float(&)[4]>(s[4 * i]), a0, a1, a2, a3, b0, b1);
      mma_m16n8k16_bf16(reinterpret_cast<float(&)[4]>(s[4 * i + 4]), a0, a1, a2, a3, b2, b3);
    }
  }
}

// Scores to exponentials without a look at the maximum: any finite reference is right as long as nothing leaves the
// range of a float, and the sums show whether it did. (A NaN compares false and goes through to the output, as it
// should.)
TW_DEVICE bool softmax_optimistic(float (&s)[BN / 2], RowState& r, float& alpha0, float& alpha1, float scale_log2,
                                  u32 q, u32 k) {
  float sum0, sum1;
  exponentiate(s, r.max0 * scale_log2, r.max1 * scale_log2, scale_log2, sum0, sum1);
  if (__any_sync(0xffffffffu, sum0 > SUM_LIMIT || sum1 > SUM_LIMIT)) {
    wgmma_wait<0>();  // P is free: its registers are needed
    recompute_scores(s, q, k);
    return softmax_with_maximum(s, r, alpha0, alpha1, scale_log2);
  }
  r.sum0 += sum0;
  r.sum1 += sum1;
  return false;
}

TW_DEVICE void rescale(float (&o)[HEAD_DIM / 2], float alpha0, float alpha1) {
#pragma unroll
  for (int i = 0; i < HEAD_DIM / 8; ++i) {
    o[4 * i + 0] *= alpha0;
    o[4 * i + 1] *= alpha0;
    o[4 * i + 2] *= alpha1;
    o[4 * i + 3] *= alpha1;
  }
}

// The accumulator's fragment of columns 16k..16k+15 is the A fragment of k-step k.
TW_DEVICE void pack_probabilities(u32 (&p)[BN / 4], const float (&s)[BN / 2]) {
#pragma unroll
  for (int i = 0; i < BN / 4; ++i) p[i] = pack_bf16(s[2 * i], s[2 * i + 1]);
}

// ptxas schedules freely inside a basic block and hoists a wgmma wait above arithmetic that does not need it, which
// would keep the exponentials from overlapping P V. It does not hoist a wait above a store, and a store of the sums
// needs every exponential: one lane writes a word that nobody reads. (The optimistic way ends in a branch on the sums,
// which does the same.)
TW_DEVICE void finish_before_wait(const RowState& r, u32 scratch, bool leader) {
  if (leader) asm volatile("st.shared.f32 [%0], %1;" ::"r"(scratch), "f"(r.sum0 + r.sum1) : "memory");
}

// ---------------------------------------------------------------- output

// 4 x 4 transpose over a quad: in, thread t holds word t of the 16-byte chunks 0..3; out, words 0..3 of chunk t.
TW_DEVICE void quad_transpose(u32& a0, u32& a1, u32& a2, u32& a3, u32 t) {
  const bool odd = t & 1, high = t & 2;
  u32 x = __shfl_xor_sync(0xffffffffu, odd ? a0 : a1, 1);
  u32 y = __shfl_xor_sync(0xffffffffu, odd ? a2 : a3, 1);
  (odd ? a0 : a1) = x;
  (odd ? a2 : a3) = y;
  x = __shfl_xor_sync(0xffffffffu, high ? a0 : a2, 2);
  y = __shfl_xor_sync(0xffffffffu, high ? a1 : a3, 2);
  (high ? a0 : a2) = x;
  (high ? a1 : a3) = y;
}

struct Output {
  u16* o;                                          // bf16
  float* lse;                                      // [batch, heads, queries]
  i64 o_batch_stride, o_head_stride, o_row_stride;  // elements
};

// Divides by the row sums, rounds, and writes the thread's two rows and their LSE. Rows past the end are not written.
TW_DEVICE void store_tile(const float (&o)[HEAD_DIM / 2], const RowState& r, int index, const Output& out,
                          const Problem& pb) {
  asm volatile("" : "+r"(index));  // the tile is decoded again here: its fields need no registers in the main loop
  const Tile tile = tile_at(index, pb);
  const u32 thread = thread_index();
  const int row = tile.row + fragment_row(thread);
  const float sum0 = quad_sum(r.sum0), sum1 = quad_sum(r.sum1);
  const float inv0 = 1.0f / sum0, inv1 = 1.0f / sum1;
  const u32 t = thread % 4;
  u16* base = out.o + tile.batch * out.o_batch_stride + tile.head * out.o_head_stride + 8 * t;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float inv = half ? inv1 : inv0;
    const int my_row = row + 8 * half;
    u16* p = base + my_row * out.o_row_stride;
#pragma unroll
    for (int i = 0; i < HEAD_DIM / 8; i += 4) {
      const int e = 4 * i + 2 * half;
      u32 a0 = pack_bf16(o[e] * inv, o[e + 1] * inv), a1 = pack_bf16(o[e + 4] * inv, o[e + 5] * inv);
      u32 a2 = pack_bf16(o[e + 8] * inv, o[e + 9] * inv), a3 = pack_bf16(o[e + 12] * inv, o[e + 13] * inv);
      quad_transpose(a0, a1, a2, a3, t);
      if (my_row < pb.queries) *reinterpret_cast<uint4*>(p + 8 * i) = make_uint4(a0, a1, a2, a3);
    }
    if (t == 0 && my_row < pb.queries) {
      const float max = half ? r.max1 : r.max0;
      out.lse[(static_cast<i64>(tile.batch) * pb.heads + tile.head) * pb.queries + my_row] =
          (max * pb.scale_log2 + log2_approx(half ? sum1 : sum0)) * 0.6931471805599453f;
    }
  }
}

// ---------------------------------------------------------------- the kernel
// q_map:        dims (64, queries, d/64, heads, batch),  box (64, 64, d/64, 1, 1), 128-byte swizzle
// k_map, v_map: dims (64, keys, d/64, kv heads, batch),  box (64, BN, d/64, 1, 1), 128-byte swizzle
// counter:      two words, zero before the first launch (DYNAMIC)
// Launch: THREADS threads, SMEM_BYTES of dynamic shared memory, at most one block per multiprocessor or per tile.

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
              const __grid_constant__ TensorMap v_map, u16* o, float* lse, i64 o_batch_stride, i64 o_head_stride,
              i64 o_row_stride, int batch, int heads, int group, int queries, int keys, int section, float scale_log2,
              u32* counter) {
  extern __shared__ u8 smem_raw[];
  const u32 smem = (smem_addr(smem_raw) + 1023) & ~1023u;
  const Problem pb = {batch, heads, group, queries, keys, section, scale_log2};
  const u32 warp = warp_index();
  const u32 lane = lane_index();
  const int tiles = tile_count(pb);

  if (threadIdx.x == 0) {
    for (int i = 0; i < CONSUMERS * Q_STAGES; ++i) {
      mbarrier_init(smem + BAR_Q_FULL + 8 * i, 1);
      mbarrier_init(smem + BAR_Q_EMPTY + 8 * i, WARPS_PER_CONSUMER);
    }
    for (int i = 0; i < KV_STAGES; ++i) {
      mbarrier_init(smem + BAR_K_FULL + 8 * i, 1);
      mbarrier_init(smem + BAR_V_FULL + 8 * i, 1);
      mbarrier_init(smem + BAR_K_EMPTY + 8 * i, CONSUMERS * WARPS_PER_CONSUMER);
      mbarrier_init(smem + BAR_V_EMPTY + 8 * i, CONSUMERS * WARPS_PER_CONSUMER);
    }
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(smem + BAR_TILE_FULL + 8 * i, 1);
      mbarrier_init(smem + BAR_TILE_EMPTY + 8 * i, CONSUMERS * WARPS_PER_CONSUMER);
    }
    fence_mbarrier_init();
    fence_proxy_async_shared();
  }
  __syncthreads();

  if (warp < 4) {
    // ------------------------------------------------------------ producer
    TW_SETMAXNREG_DEC(PRODUCER_REGS);
    if (warp == 0 && elect_one()) {
      prefetch_tensormap(&q_map);
      prefetch_tensormap(&k_map);
      prefetch_tensormap(&v_map);
      u32 step = 0;  // key tiles so far: K(step) is loaded together with V(step - 1), in the order of their use
      int v_row = 0, v_head = 0, v_batch = 0;
      int index = static_tile_index(0);
      u32 round = 0;
      for (; index < tiles; ++round) {
        const Tile tile = tile_at(index, pb);
        const int kv_head = tile.head / group;
        for (int n = tile.key_tiles - 1; n >= 0; --n, ++step) {
          {
            const u32 slot = slot_of(step, KV_STAGES), full = smem + BAR_K_FULL + 8 * slot;
            mbarrier_wait(smem + BAR_K_EMPTY + 8 * slot, phase_of(step, KV_STAGES) ^ 1);
            mbarrier_arrive_expect_tx(full, KV_BYTES);
            tma_load_5d(smem + SMEM_K + slot * KV_BYTES, &k_map, full, 0, n * BN, 0, kv_head, tile.batch);
          }
          if (step > 0) {
            const u32 slot = slot_of(step - 1, KV_STAGES), full = smem + BAR_V_FULL + 8 * slot;
            mbarrier_wait(smem + BAR_V_EMPTY + 8 * slot, phase_of(step - 1, KV_STAGES) ^ 1);
            mbarrier_arrive_expect_tx(full, KV_BYTES);
            tma_load_5d(smem + SMEM_V + slot * KV_BYTES, &v_map, full, 0, v_row, 0, v_head, v_batch);
          }
          v_row = n * BN;
          v_head = kv_head;
          v_batch = tile.batch;
          if (n == tile.key_tiles - 1) {
            for (int w = 0; w < CONSUMERS; ++w) {
              const u32 slot = w * Q_STAGES + slot_of(round, Q_STAGES), full = smem + BAR_Q_FULL + 8 * slot;
              mbarrier_wait(smem + BAR_Q_EMPTY + 8 * slot, phase_of(round, Q_STAGES) ^ 1);
              mbarrier_arrive_expect_tx(full, Q_BYTES);
              tma_load_5d(smem + SMEM_Q + slot * Q_BYTES, &q_map, full, 0, tile.row + w * WG_ROWS, 0, tile.head,
                          tile.batch);
            }
          }
        }
#if DYNAMIC
        index = gridDim.x + atomicAdd(counter, 1);
        const u32 slot = slot_of(round, 2);
        mbarrier_wait(smem + BAR_TILE_EMPTY + 8 * slot, phase_of(round, 2) ^ 1);
        const int published = index < tiles ? index : -1;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(smem + SMEM_TILE_INDEX + 4 * slot), "r"(published) : "memory");
        mbarrier_arrive(smem + BAR_TILE_FULL + 8 * slot);
#else
        index = static_tile_index(round + 1);
#endif
      }
      if (step > 0) {
        const u32 slot = slot_of(step - 1, KV_STAGES), full = smem + BAR_V_FULL + 8 * slot;
        mbarrier_wait(smem + BAR_V_EMPTY + 8 * slot, phase_of(step - 1, KV_STAGES) ^ 1);
        mbarrier_arrive_expect_tx(full, KV_BYTES);
        tma_load_5d(smem + SMEM_V + slot * KV_BYTES, &v_map, full, 0, v_row, 0, v_head, v_batch);
      }
#if DYNAMIC
      // The last block to get here leaves the counters at zero for the next launch.
      if (atom_add_acq_rel_gpu(counter + 1, 1) == gridDim.x - 1) {
        counter[0] = 0;
        counter[1] = 0;
      }
#endif
    }
  } else {
    // ------------------------------------------------------------ consumers
    TW_SETMAXNREG_INC(CONSUMER_REGS);
    const u32 w = warp / 4 - 1;
    const bool leader = lane == 0;  // speaks for its warp
    const Output out = {o, lse, o_batch_stride, o_head_stride, o_row_stride};
    const u64 q_desc = descriptor_k_major_128b(smem + SMEM_Q + w * Q_STAGES * Q_BYTES);
    const u64 k_desc = descriptor_k_major_128b(smem + SMEM_K);
    const u64 v_desc = descriptor_mn_major_128b(smem + SMEM_V, KV_PANEL_BYTES);
    const u32 q_full = smem + BAR_Q_FULL + 8 * w * Q_STAGES, q_empty = smem + BAR_Q_EMPTY + 8 * w * Q_STAGES;
    [[maybe_unused]] const u32 my_turn = TURN_BARRIER + w, next_turn = TURN_BARRIER + (w + 1 == CONSUMERS ? 0 : w + 1);
    const u32 scratch = smem + SMEM_SCRATCH;

    float s[BN / 2];           // scores, then exponentials, of the newest key tile
    float acc[HEAD_DIM / 2];   // O, unnormalised
    u32 p[BN / 4];             // P of the key tile before, bf16 pairs
    RowState rows = {NEG_INF, NEG_INF, 0.0f, 0.0f};
    float alpha0, alpha1;

    int index = static_tile_index(0);
    if (index < tiles) {
      Tile tile = tile_at(index, pb);
#if PINGPONG
      if (w == CONSUMERS - 1) named_barrier_arrive(TURN_BARRIER, 256);  // the first consumer has the first turn
#endif
      // Prologue of the stream: scores and softmax of the first key tile of the first tile.
      u32 skipped = skipped_key_tiles(tile, w);
      for (u32 i = 0; i < skipped; ++i) {
        mbarrier_wait(smem + BAR_K_FULL + 8 * slot_of(i, KV_STAGES), phase_of(i, KV_STAGES));
        if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * slot_of(i, KV_STAGES));
      }
      u32 step = skipped;  // key tiles of the stream so far: a step takes K(step) and the V before
      {
        const u32 k_slot = slot_of(step, KV_STAGES);
        mbarrier_wait(q_full, 0);
        mbarrier_wait(smem + BAR_K_FULL + 8 * k_slot, phase_of(step, KV_STAGES));
        wgmma_fence();
        issue_scores(s, q_desc, k_desc + k_slot * (KV_BYTES / 16));
        wgmma_wait<0>();
        PIN(s);
        if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * k_slot);
        if (leader && tile.key_tiles == 1 + skipped) mbarrier_arrive(q_empty);
        mask_scores(s, tile.row, (tile.key_tiles - 1 - skipped) * BN, keys);
        softmax_with_maximum(s, rows, alpha0, alpha1, scale_log2);
        pack_probabilities(p, s);
        ZERO(acc);
      }
      for (u32 i = 0; i < skipped; ++i) {
#if PINGPONG
        named_barrier_sync(my_turn, 256);
        named_barrier_arrive(next_turn, 256);
#endif
        mbarrier_wait(smem + BAR_V_FULL + 8 * slot_of(i, KV_STAGES), phase_of(i, KV_STAGES));
        if (leader) mbarrier_arrive(smem + BAR_V_EMPTY + 8 * slot_of(i, KV_STAGES));
      }
      ++step;

      for (u32 round = 0;; ++round) {
        for (int n = tile.key_tiles - 2 - skipped; n >= 0; --n, ++step) {
          const u32 k_slot = slot_of(step, KV_STAGES), v_slot = slot_of(step - 1, KV_STAGES);
          mbarrier_wait(smem + BAR_K_FULL + 8 * k_slot, phase_of(step, KV_STAGES));
#if PINGPONG
          named_barrier_sync(my_turn, 256);
#endif
          wgmma_fence();
          issue_scores(s, q_desc + slot_of(round, Q_STAGES) * (Q_BYTES / 16), k_desc + k_slot * (KV_BYTES / 16));
          mbarrier_wait(smem + BAR_V_FULL + 8 * v_slot, phase_of(step - 1, KV_STAGES));
          wgmma_fence();
          issue_values(acc, p, v_desc + v_slot * (KV_BYTES / 16));
#if PINGPONG
          named_barrier_arrive(next_turn, 256);
#endif
          wgmma_wait<1>();
          PIN(s);
          // Near the diagonal some columns lie after some of this consumer's rows. Those tiles take the masked way; the
          // last of them holds a column for every row: each row has a reference when the optimistic way begins.
          const bool masked = CAUSAL && (n + 1) * BN > tile.row + static_cast<int>(w) * WG_ROWS;
          bool moved;
          if (!OPTIMISTIC || masked) {
            if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * k_slot);
            if (masked) mask_scores(s, tile.row, n * BN, keys);
            moved = softmax_with_maximum(s, rows, alpha0, alpha1, scale_log2);
            finish_before_wait(rows, scratch, leader);
          } else {
            moved = softmax_optimistic(s, rows, alpha0, alpha1, scale_log2,
                                       smem + SMEM_Q + (w * Q_STAGES + slot_of(round, Q_STAGES)) * Q_BYTES,
                                       smem + SMEM_K + k_slot * KV_BYTES);
            if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * k_slot);
          }
          if (leader && n == 0) mbarrier_arrive(q_empty + 8 * slot_of(round, Q_STAGES));
          wgmma_wait<0>();
          PIN(acc);
          if (leader) mbarrier_arrive(smem + BAR_V_EMPTY + 8 * v_slot);
          if (moved) rescale(acc, alpha0, alpha1);
          pack_probabilities(p, s);
        }

#if DYNAMIC
        int next;
        const u32 slot = slot_of(round, 2);
        mbarrier_wait(smem + BAR_TILE_FULL + 8 * slot, phase_of(round, 2));
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(smem + SMEM_TILE_INDEX + 4 * slot) : "memory");
        __syncwarp();
        if (leader) mbarrier_arrive(smem + BAR_TILE_EMPTY + 8 * slot);
#else
        int next = static_tile_index(round + 1);
        if (next >= tiles) next = -1;
#endif
        if (next < 0) break;

        // Between two tiles: the first scores of the next with the last values of this one.
#if DYNAMIC
        const int done = index;
#else
        const int done = static_tile_index(round);  // again, rather than a register across the main loop
#endif
        const RowState done_rows = rows;
        index = next;
        tile = tile_at(index, pb);
        rows = {NEG_INF, NEG_INF, 0.0f, 0.0f};
        skipped = skipped_key_tiles(tile, w);
        for (u32 i = 0; i < skipped; ++i) {
          const u32 k_slot = slot_of(step + i, KV_STAGES);
          mbarrier_wait(smem + BAR_K_FULL + 8 * k_slot, phase_of(step + i, KV_STAGES));
#if PINGPONG
          named_barrier_sync(my_turn, 256);
          named_barrier_arrive(next_turn, 256);
#endif
          if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * k_slot);
        }
        const u32 k_slot = slot_of(step + skipped, KV_STAGES), v_slot = slot_of(step - 1, KV_STAGES);
        const u32 q_slot = slot_of(round + 1, Q_STAGES);
        mbarrier_wait(q_full + 8 * q_slot, phase_of(round + 1, Q_STAGES));
        mbarrier_wait(smem + BAR_K_FULL + 8 * k_slot, phase_of(step + skipped, KV_STAGES));
#if PINGPONG
        named_barrier_sync(my_turn, 256);
#endif
        wgmma_fence();
        issue_scores(s, q_desc + q_slot * (Q_BYTES / 16), k_desc + k_slot * (KV_BYTES / 16));
        mbarrier_wait(smem + BAR_V_FULL + 8 * v_slot, phase_of(step - 1, KV_STAGES));
        wgmma_fence();
        issue_values(acc, p, v_desc + v_slot * (KV_BYTES / 16));
#if PINGPONG
        named_barrier_arrive(next_turn, 256);
#endif
        wgmma_wait<1>();
        PIN(s);
        if (leader) mbarrier_arrive(smem + BAR_K_EMPTY + 8 * k_slot);
        if (leader && tile.key_tiles == 1 + skipped) mbarrier_arrive(q_empty + 8 * q_slot);
        mask_scores(s, tile.row, (tile.key_tiles - 1 - skipped) * BN, keys);
        softmax_with_maximum(s, rows, alpha0, alpha1, scale_log2);
        finish_before_wait(rows, scratch, leader);
        wgmma_wait<0>();
        PIN(acc);
        if (leader) mbarrier_arrive(smem + BAR_V_EMPTY + 8 * v_slot);
        pack_probabilities(p, s);
        for (u32 i = 0; i < skipped; ++i) {
          const u32 slot = slot_of(step + i, KV_STAGES);
          mbarrier_wait(smem + BAR_V_FULL + 8 * slot, phase_of(step + i, KV_STAGES));
          if (leader) mbarrier_arrive(smem + BAR_V_EMPTY + 8 * slot);
        }
        store_tile(acc, done_rows, done, out, pb);
        ZERO(acc);
        step += 1 + skipped;
      }

      // Epilogue of the stream: the last values product.
      const u32 v_slot = slot_of(step - 1, KV_STAGES);
      mbarrier_wait(smem + BAR_V_FULL + 8 * v_slot, phase_of(step - 1, KV_STAGES));
#if PINGPONG
      named_barrier_sync(my_turn, 256);
#endif
      wgmma_fence();
      issue_values(acc, p, v_desc + v_slot * (KV_BYTES / 16));
#if PINGPONG
      if (w + 1 < CONSUMERS) named_barrier_arrive(next_turn, 256);
#endif
      wgmma_wait<0>();
      PIN(acc);
      store_tile(acc, rows, index, out, pb);
    }
  }
}
