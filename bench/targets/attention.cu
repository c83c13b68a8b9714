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
//                       waits for S(g+1), masks it, updates the running maximum, exponentiates, sums
//                       waits for O, rescales it if the maximum moved far, packs P(g+1)
//
// tw-variants: -DHEAD_DIM=64 -DBN=128 -DCONSUMERS=3 -DKV_STAGES=2 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=64 -DBN=128 -DCONSUMERS=3 -DKV_STAGES=2 -DCAUSAL=1
// tw-variants: -DHEAD_DIM=128 -DBN=176 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=128 -DBN=128 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=1
// tw-variants: -DHEAD_DIM=256 -DBN=80 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=0
// tw-variants: -DHEAD_DIM=256 -DBN=80 -DCONSUMERS=2 -DKV_STAGES=2 -DCAUSAL=1
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
#ifndef CLUSTER
#define CLUSTER 1  // 2: two blocks on neighbouring query rows of one head load half of each K and V tile for both
#endif
#ifndef PINGPONG
#define PINGPONG 1  // consumers take turns to issue their matrix products
#endif
#ifndef SKIP
#define SKIP CAUSAL  // a consumer passes over key tiles that lie beyond all of its own rows
#endif
#ifndef DYNAMIC
#define DYNAMIC 0  // 1: tiles come from a global counter; 0: tile r of block c is r*grid + c, every other round reversed
#endif
#ifndef RESCALE_SLACK
#define RESCALE_SLACK 8.0f  // O is rescaled only when the maximum has grown by more than this many powers of two
#endif
#ifndef SPLIT
#define SPLIT (BN / 8)  // 8-column groups of the first part of the softmax; the second part waits until after P V
#endif
#ifndef POLY_NUM
#define POLY_NUM 0  // POLY_NUM of every POLY_DEN 8-column groups take exp2 on the FMA pipe instead of the MUFU
#endif
#ifndef POLY_DEN
#define POLY_DEN 4
#endif
#ifndef PRODUCER_REGS
#define PRODUCER_REGS (CONSUMERS == 2 ? (CLUSTER == 1 ? 24 : 40) : 32)
#endif
#ifndef CONSUMER_REGS
#define CONSUMER_REGS (CONSUMERS == 2 ? (CLUSTER == 1 ? 240 : 232) : 160)
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
static_assert(CLUSTER == 1 || (!CAUSAL && !DYNAMIC && HEAD_DIM % (64 * CLUSTER) == 0), "blocks of a cluster run in step");
static_assert(BN % 16 == 0 && BN <= 256 && HEAD_DIM % 64 == 0, "tile shape");

constexpr int WARPS_PER_CONSUMER = 4;
constexpr int TURN_BARRIER = 1;  // named barriers TURN_BARRIER + consumer index
#define NEG_INF __int_as_float(static_cast<int>(0xff800000u))
constexpr float EXP2_C0 = 0.99992807f, EXP2_C1 = 0.69326099f, EXP2_C2 = 0.24261112f, EXP2_C3 = 0.055171669f;

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

// Query rows go to clusters: a tile is one block's rows, a tile index names the tiles of the cluster's blocks.
TW_DEVICE int query_blocks(const Problem& pb) {
  return (pb.queries + CLUSTER * QUERY_ROWS - 1) / (CLUSTER * QUERY_ROWS);
}
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
  t.row = (CAUSAL ? blocks - 1 - rank : rank) * QUERY_ROWS * CLUSTER;
  if (CLUSTER > 1) t.row += cluster_cta_rank() * QUERY_ROWS;
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
  const int workers = gridDim.x / CLUSTER, me = blockIdx.x / CLUSTER;
  return round * workers + ((round & 1) ? workers - 1 - me : me);
}

// K or V: this block's panels of `row`.. go to the same place in every block of the cluster.
TW_DEVICE void load_kv(u32 dst, const TensorMap* map, u32 full, int row, int kv_head, int batch) {
#if CLUSTER == 1
  tma_load_5d(dst, map, full, 0, row, 0, kv_head, batch);
#else
  const int panel = cluster_cta_rank() * (HEAD_DIM / 64 / CLUSTER);
  tma_load_5d_multicast(dst + panel * KV_PANEL_BYTES, map, full, 0, row, panel, kv_head, batch, (1 << CLUSTER) - 1);
#endif
}
// A K or V slot is free when every warp of every consumer in the cluster has said so to every producer.
TW_DEVICE void release_kv(u32 empty, u32 lane) {
#if CLUSTER == 1
  if (lane == 0) mbarrier_arrive(empty);
#else
  if (lane < CLUSTER) mbarrier_arrive_relaxed_cluster(empty, lane);
#endif
}
TW_DEVICE void wait_kv_empty(u32 empty, u32 parity) {
#if CLUSTER == 1
  mbarrier_wait(empty, parity);
#else
  mbarrier_wait_relaxed_cluster(empty, parity);
#endif
}

// The n-th use of a ring of `stages` slots: slot n % stages, in the phase of parity n / stages % 2.
TW_DEVICE u32 slot_of(u32 n, u32 stages) { return n % stages; }
TW_DEVICE u32 phase_of(u32 n, u32 stages) { return n / stages & 1; }

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

// limit0, limit1: columns of this thread's rows that count, relative to the thread's own first column.
TW_DEVICE void mask_scores(float (&s)[BN / 2], int limit0, int limit1) {
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

// 2^(s*scale - ref) without the MUFU: 2^round by exponent arithmetic, 2^fraction by a cubic (relative error 7.5e-5 on
// [-1/2, 1/2], a twenty-fifth of a bf16 rounding step). The exponent is clamped to [-120, 8] by one saturating FMA
// on the scale of 128 powers of two: scale_128 = scale/128, ref_128 = (120 - ref)/128.
TW_DEVICE float exp2_fma(float s, float scale_128, float ref_128) {
  const float magic = 12582912.0f - 120.0f;  // 1.5 * 2^23: adding it leaves the rounded integer in the low mantissa bits
  float x;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(x) : "f"(s), "f"(scale_128), "f"(ref_128));
  const float t = fmaf(x, 128.0f, magic);
  const float f = fmaf(x, 128.0f, magic - t);
  float y = fmaf(f, EXP2_C3, EXP2_C2);
  y = fmaf(y, f, EXP2_C1);
  y = fmaf(y, f, EXP2_C0);
  return __uint_as_float((__float_as_uint(t) << 23) + __float_as_uint(y));
}

// Running state of the thread's two rows. `max` is the reference the exponentials are relative to: a true running
// maximum up to RESCALE_SLACK; `sum` is this thread's share of the row sum, relative to the same reference.
struct RowState {
  float max0, max1, sum0, sum1;
};

// Largest of the thread's scores in the 8-column groups lo..hi-1, per row.
TW_DEVICE void part_max(const float (&s)[BN / 2], int lo, int hi, float& max0, float& max1) {
  float a0 = s[4 * lo], b0 = s[4 * lo + 1], a1 = s[4 * lo + 2], b1 = s[4 * lo + 3];
#pragma unroll
  for (int i = lo + 1; i < hi; ++i) {
    a0 = fmaxf(a0, s[4 * i + 0]);
    b0 = fmaxf(b0, s[4 * i + 1]);
    a1 = fmaxf(a1, s[4 * i + 2]);
    b1 = fmaxf(b1, s[4 * i + 3]);
  }
  max0 = fmaxf(a0, b0);
  max1 = fmaxf(a1, b1);
}

// Takes the part's maxima into account. Returns true (warp-uniform) if the reference moved: what is relative to it (the
// sums, here; O and earlier exponentials, the caller) must then be multiplied by alpha.
TW_DEVICE bool move_reference(RowState& r, float part0, float part1, float& alpha0, float& alpha1, float scale_log2) {
  const float max0 = fmaxf(r.max0, quad_max(part0));
  const float max1 = fmaxf(r.max1, quad_max(part1));
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
  return moved;
}

// s := 2^(s*scale - reference) in the groups lo..hi-1; the sums follow.
TW_DEVICE void exponentiate(float (&s)[BN / 2], int lo, int hi, RowState& r, float scale_log2, int poly_num) {
  const float ref0 = r.max0 == NEG_INF ? 0.0f : r.max0 * scale_log2;
  const float ref1 = r.max1 == NEG_INF ? 0.0f : r.max1 * scale_log2;
  float u0 = 0.0f, u1 = 0.0f, w0 = 0.0f, w1 = 0.0f;
#pragma unroll
  for (int i = lo; i < hi; ++i) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      s[4 * i + c] = i % POLY_DEN < poly_num ? exp2_fma(s[4 * i + c], scale_log2 / 128, (120.0f - (c < 2 ? ref0 : ref1)) / 128)
                                             : exp2_approx(fmaf(s[4 * i + c], scale_log2, c < 2 ? -ref0 : -ref1));
    }
    u0 += s[4 * i + 0];
    w0 += s[4 * i + 1];
    u1 += s[4 * i + 2];
    w1 += s[4 * i + 3];
  }
  r.sum0 += u0 + w0;
  r.sum1 += u1 + w1;
}

// What of the softmax overlaps with P V: the first part's exponentials and the second part's maxima. The result says
// whether O must be multiplied by alpha.
TW_DEVICE bool softmax_before_wait(float (&s)[BN / 2], RowState& r, float& alpha0, float& alpha1, float scale_log2,
                                   int poly_num) {
  float max0, max1;
  part_max(s, 0, SPLIT, max0, max1);
  bool moved = move_reference(r, max0, max1, alpha0, alpha1, scale_log2);
  exponentiate(s, 0, SPLIT, r, scale_log2, poly_num);
  if (SPLIT < BN / 8) {
    float beta0, beta1;
    part_max(s, SPLIT, BN / 8, max0, max1);
    if (move_reference(r, max0, max1, beta0, beta1, scale_log2)) {
#pragma unroll
      for (int i = 0; i < 4 * SPLIT; ++i) s[i] *= i % 4 < 2 ? beta0 : beta1;
      alpha0 *= beta0;
      alpha1 *= beta1;
      moved = true;
    }
  }
  return moved;
}

// The rest: the second part's exponentials, and P.
// The accumulator's fragment of columns 16k..16k+15 is the A fragment of k-step k.
TW_DEVICE void softmax_after_wait(float (&s)[BN / 2], u32 (&p)[BN / 4], RowState& r, float scale_log2, int poly_num) {
  if (SPLIT < BN / 8) exponentiate(s, SPLIT, BN / 8, r, scale_log2, poly_num);
#pragma unroll
  for (int i = 0; i < BN / 4; ++i) p[i] = pack_bf16(s[2 * i], s[2 * i + 1]);
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

// ptxas schedules freely inside a basic block and hoists a wgmma wait above arithmetic that does not need it, which
// would keep the exponentials from overlapping P V. It does not hoist a wait above a store, and a store of the sums
// needs every exponential: one lane writes a word that nobody reads.
TW_DEVICE void finish_before_wait(const RowState& r, u32 scratch, u32 lane) {
  if (lane == 0) asm volatile("st.shared.f32 [%0], %1;" ::"r"(scratch), "f"(r.sum0 + r.sum1) : "memory");
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
TW_DEVICE void store_tile(const float (&o)[HEAD_DIM / 2], const RowState& r, int index, int thread_row, const Output& out,
                          const Problem& pb, u32 lane) {
  asm volatile("" : "+r"(index));  // the tile is decoded again here: its fields need no registers in the main loop
  const Tile tile = tile_at(index, pb);
  const int row = tile.row + thread_row;
  const float sum0 = quad_sum(r.sum0), sum1 = quad_sum(r.sum1);
  const float inv0 = 1.0f / sum0, inv1 = 1.0f / sum1;
  const u32 t = lane % 4;
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

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ TensorMap q_map,  // dims (64, queries, d/64, heads, batch), box (64, 64, d/64, 1, 1)
              const __grid_constant__ TensorMap k_map,  // dims (64, keys, d/64, kv heads, batch), box (64, BN, d/64/CLUSTER, 1, 1)
              const __grid_constant__ TensorMap v_map,  // as k_map
              u16* o, float* lse, i64 o_batch_stride, i64 o_head_stride, i64 o_row_stride, int batch, int heads, int group,
              int queries, int keys, int section, float scale_log2, u32* counter) {
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
      mbarrier_init(smem + BAR_K_EMPTY + 8 * i, CLUSTER * CONSUMERS * WARPS_PER_CONSUMER);
      mbarrier_init(smem + BAR_V_EMPTY + 8 * i, CLUSTER * CONSUMERS * WARPS_PER_CONSUMER);
    }
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(smem + BAR_TILE_FULL + 8 * i, 1);
      mbarrier_init(smem + BAR_TILE_EMPTY + 8 * i, CONSUMERS * WARPS_PER_CONSUMER);
    }
    fence_mbarrier_init();
    fence_proxy_async_shared();
  }
  if (CLUSTER == 1) __syncthreads();
  else cluster_sync();

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
            wait_kv_empty(smem + BAR_K_EMPTY + 8 * slot, phase_of(step, KV_STAGES) ^ 1);
            mbarrier_arrive_expect_tx(full, KV_BYTES);
            load_kv(smem + SMEM_K + slot * KV_BYTES, &k_map, full, n * BN, kv_head, tile.batch);
          }
          if (step > 0) {
            const u32 slot = slot_of(step - 1, KV_STAGES), full = smem + BAR_V_FULL + 8 * slot;
            wait_kv_empty(smem + BAR_V_EMPTY + 8 * slot, phase_of(step - 1, KV_STAGES) ^ 1);
            mbarrier_arrive_expect_tx(full, KV_BYTES);
            load_kv(smem + SMEM_V + slot * KV_BYTES, &v_map, full, v_row, v_head, v_batch);
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
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(smem + SMEM_TILE_INDEX + 4 * slot), "r"(index) : "memory");
        mbarrier_arrive(smem + BAR_TILE_FULL + 8 * slot);
#else
        index = static_tile_index(round + 1);
#endif
      }
      if (step > 0) {
        const u32 slot = slot_of(step - 1, KV_STAGES), full = smem + BAR_V_FULL + 8 * slot;
        wait_kv_empty(smem + BAR_V_EMPTY + 8 * slot, phase_of(step - 1, KV_STAGES) ^ 1);
        mbarrier_arrive_expect_tx(full, KV_BYTES);
        load_kv(smem + SMEM_V + slot * KV_BYTES, &v_map, full, v_row, v_head, v_batch);
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
    const Output out = {o, lse, o_batch_stride, o_head_stride, o_row_stride};
    const int thread_row = w * WG_ROWS + (warp % 4) * 16 + lane / 4;  // of the tile; the other row is 8 below
    const int thread_col = 2 * (lane % 4);
    const u64 q_desc = descriptor_k_major_128b(smem + SMEM_Q + w * Q_STAGES * Q_BYTES);
    const u64 k_desc = descriptor_k_major_128b(smem + SMEM_K);
    const u64 v_desc = descriptor_mn_major_128b(smem + SMEM_V, KV_PANEL_BYTES);
    const u32 q_full = smem + BAR_Q_FULL + 8 * w * Q_STAGES, q_empty = smem + BAR_Q_EMPTY + 8 * w * Q_STAGES;
    const u32 my_turn = TURN_BARRIER + w, next_turn = TURN_BARRIER + (w + 1 == CONSUMERS ? 0 : w + 1);
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
        release_kv(smem + BAR_K_EMPTY + 8 * slot_of(i, KV_STAGES), lane);
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
        release_kv(smem + BAR_K_EMPTY + 8 * k_slot, lane);
        if (lane == 0 && tile.key_tiles == 1 + skipped) mbarrier_arrive(q_empty);
        const int row = tile.row + thread_row, col = (tile.key_tiles - 1 - skipped) * BN + thread_col;
        mask_scores(s, (CAUSAL ? min(keys, row + 1) : keys) - col, (CAUSAL ? min(keys, row + 9) : keys) - col);
        softmax_before_wait(s, rows, alpha0, alpha1, scale_log2, 0);
        softmax_after_wait(s, p, rows, scale_log2, 0);
        ZERO(acc);
      }
      for (u32 i = 0; i < skipped; ++i) {
#if PINGPONG
        named_barrier_sync(my_turn, 256);
        named_barrier_arrive(next_turn, 256);
#endif
        mbarrier_wait(smem + BAR_V_FULL + 8 * slot_of(i, KV_STAGES), phase_of(i, KV_STAGES));
        release_kv(smem + BAR_V_EMPTY + 8 * slot_of(i, KV_STAGES), lane);
      }
      ++step;

      for (u32 round = 0;; ++round) {
        // The key tiles from `unmasked` up need a mask in this consumer's rows.
        const int unmasked = CAUSAL ? (tile.row + static_cast<int>(w) * WG_ROWS + 1) / BN : 0;
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
          release_kv(smem + BAR_K_EMPTY + 8 * k_slot, lane);
          if (lane == 0 && n == 0) mbarrier_arrive(q_empty + 8 * slot_of(round, Q_STAGES));
          if (CAUSAL && n >= unmasked) {
            const int row = tile.row + thread_row, col = n * BN + thread_col;
            mask_scores(s, row + 1 - col, row + 9 - col);
          }
          const bool moved = softmax_before_wait(s, rows, alpha0, alpha1, scale_log2, POLY_NUM);
          finish_before_wait(rows, scratch, lane);
          wgmma_wait<0>();
          PIN(acc);
          release_kv(smem + BAR_V_EMPTY + 8 * v_slot, lane);
          if (moved) rescale(acc, alpha0, alpha1);
          softmax_after_wait(s, p, rows, scale_log2, POLY_NUM);
        }

#if DYNAMIC
        int next;
        const u32 slot = slot_of(round, 2);
        mbarrier_wait(smem + BAR_TILE_FULL + 8 * slot, phase_of(round, 2));
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(smem + SMEM_TILE_INDEX + 4 * slot) : "memory");
        __syncwarp();
        if (lane == 0) mbarrier_arrive(smem + BAR_TILE_EMPTY + 8 * slot);
#else
        const int next = static_tile_index(round + 1);
#endif
        if (next >= tiles) break;

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
          release_kv(smem + BAR_K_EMPTY + 8 * k_slot, lane);
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
        release_kv(smem + BAR_K_EMPTY + 8 * k_slot, lane);
        if (lane == 0 && tile.key_tiles == 1 + skipped) mbarrier_arrive(q_empty + 8 * q_slot);
        {
          const int row = tile.row + thread_row, col = (tile.key_tiles - 1 - skipped) * BN + thread_col;
          mask_scores(s, (CAUSAL ? min(keys, row + 1) : keys) - col, (CAUSAL ? min(keys, row + 9) : keys) - col);
        }
        softmax_before_wait(s, rows, alpha0, alpha1, scale_log2, 0);
        finish_before_wait(rows, scratch, lane);
        wgmma_wait<0>();
        PIN(acc);
        release_kv(smem + BAR_V_EMPTY + 8 * v_slot, lane);
        softmax_after_wait(s, p, rows, scale_log2, 0);
        for (u32 i = 0; i < skipped; ++i) {
          const u32 slot = slot_of(step + i, KV_STAGES);
          mbarrier_wait(smem + BAR_V_FULL + 8 * slot, phase_of(step + i, KV_STAGES));
          release_kv(smem + BAR_V_EMPTY + 8 * slot, lane);
        }
        store_tile(acc, done_rows, done, thread_row, out, pb, lane);
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
      store_tile(acc, rows, index, thread_row, out, pb, lane);
    }
  }
#if CLUSTER > 1
  __syncwarp();
  cluster_sync();  // no block leaves while another may still write into it or signal it
#endif
}
