// Row layer normalisation, persistent, rows fetched ahead by bulk copies:
//   y[r, c] = (x[r, c] - mean_r) / sqrt(var_r + eps) * weight[c] + bias[c], var the biased variance.
//
// Teams, segments, private rings and the exchange of states are those of softmax_ring.cu; a state here is (mean, sum of
// squared deviations from it) of one warp's segment, whose count of elements follows from the index.
// A warp keeps the same columns in every row, so weight and bias are fetched once per launch:
//   WEIGHTS 0  not kept: read for every row through L1 and L2 (the only choice for ROW_KIND 2, where columns shift)
//   WEIGHTS 1  in registers, packed
//   WEIGHTS 2  in shared memory, one copy per block
// STAGES 0 leaves the ring out: rows are loaded straight into registers, and other resident blocks hide the latency.
// Launch: grid a multiple of CLUSTER, any size; dynamic shared memory
//   (WARPS * GROUPS * STAGES + (WEIGHTS == 2 ? 2 * WARPS : 0)) * VECS * 512 bytes.
//
// tw-variants: -DELEM_BYTES=2 -DWARPS=1 -DGROUPS=8 -DVECS=4 -DSTAGES=2 -DCLUSTER=1 -DROW_KIND=0 -DWEIGHTS=1
// tw-variants: -DELEM_BYTES=2 -DWARPS=4 -DGROUPS=2 -DVECS=4 -DSTAGES=2 -DCLUSTER=1 -DROW_KIND=0 -DWEIGHTS=2
// tw-variants: -DELEM_BYTES=2 -DWARPS=16 -DGROUPS=1 -DVECS=8 -DSTAGES=1 -DCLUSTER=2 -DROW_KIND=0 -DWEIGHTS=2
// tw-variants: -DELEM_BYTES=4 -DWARPS=16 -DGROUPS=1 -DVECS=4 -DSTAGES=3 -DCLUSTER=8 -DROW_KIND=0 -DWEIGHTS=2
// tw-variants: -DELEM_BYTES=4 -DWARPS=16 -DGROUPS=1 -DVECS=8 -DSTAGES=1 -DCLUSTER=4 -DROW_KIND=2 -DWEIGHTS=0
#ifndef ELEM_BYTES
#define ELEM_BYTES 2  // 2: bf16, 4: fp32
#endif
#ifndef WARPS
#define WARPS 4  // warps of one block that share a row
#endif
#ifndef GROUPS
#define GROUPS 2  // rows a block works on at a time
#endif
#ifndef VECS
#define VECS 4  // 16-byte vectors per thread and row
#endif
#ifndef STAGES
#define STAGES 2  // rows in flight per warp; 0: no ring, rows go from global memory straight to registers
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks that share a row
#endif
#ifndef ROW_KIND
#define ROW_KIND 0
#endif
#ifndef WEIGHTS
#define WEIGHTS 2
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#ifndef EVICT_FIRST
#define EVICT_FIRST 0  // 1: rows are fetched with the L2 policy for data that is read once
#endif
#include "tw_rows.cuh"

using tw::kPerVec;
using tw::u32;
constexpr int kThreads = WARPS * GROUPS * 32;
constexpr int kSegmentSlots = VECS * 32;           // 16-byte slots of a row that one warp owns
[[maybe_unused]] constexpr int kSegmentBytes = kSegmentSlots * 16;
constexpr int kStates = CLUSTER * WARPS;           // states that make up a row
constexpr bool kAnyPitch = ROW_KIND == 2;
static_assert(CLUSTER == 1 || GROUPS == 1, "the exchange across blocks serves one row at a time");
static_assert(WEIGHTS == 0 || ROW_KIND != 2, "with any pitch a warp's columns change from row to row");
static_assert(GROUPS <= 16 || WARPS == 1, "one named barrier per team");
static_assert(kThreads <= 1024, "a block has at most 1024 threads");

// How many of a warp's slots are fetched: those that the row touches, as far as they lie in the tensor as a whole.
__device__ __forceinline__ int slots_to_fetch(int first_slot, tw::RowSlots slots, int n) {
  const int end = min((slots.shift + n + (kAnyPitch ? kPerVec - 1 : 0)) / kPerVec, slots.whole);
  return max(0, min(kSegmentSlots, end - first_slot));
}

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
layernorm_ring(const char* __restrict__ x, const char* __restrict__ weight, const char* __restrict__ bias,
               char* __restrict__ y, int rows, int n, float eps) {
  extern __shared__ __align__(128) char ring_bytes[];
#if STAGES > 0
  __shared__ __align__(8) unsigned long long full_barriers[WARPS * GROUPS][STAGES];
#endif
#if WEIGHTS == 2
  __shared__ __align__(8) unsigned long long weights_barriers[WARPS];
#endif
  __shared__ __align__(16) float2 states[2][GROUPS][kStates];
#if CLUSTER > 1
  __shared__ __align__(8) unsigned long long states_barriers[2];
  const u32 rank = tw::cluster_cta_rank();
#else
  constexpr u32 rank = 0;
#endif
  const int lane = threadIdx.x % 32;
  const int warp = tw::warp_index();
  const int team = warp / WARPS;
  const int member = rank * WARPS + warp % WARPS;  // index of this warp among the row's warps
  const int first_slot = member * kSegmentSlots;
#if STAGES > 0
  const u32 ring = tw::smem_addr(ring_bytes) + warp * (STAGES * kSegmentBytes);
  const u32 full = tw::smem_addr(&full_barriers[warp][0]);
#if EVICT_FIRST
  const tw::u64 policy = tw::l2_evict_first();
#endif
  if (lane == 0) {
    for (int s = 0; s < STAGES; ++s) tw::mbarrier_init(full + 8 * s, 1);
  }
#endif
#if WEIGHTS == 2
  // One copy of this block's columns of weight, then of bias, after the rings; the first team's warps fetch them.
  const u32 kept_weight = tw::smem_addr(ring_bytes) + WARPS * GROUPS * STAGES * kSegmentBytes + (warp % WARPS) * kSegmentBytes;
  const u32 kept_bias = kept_weight + WARPS * kSegmentBytes;
  const u32 kept = tw::smem_addr(&weights_barriers[warp % WARPS]);
  if (team == 0 && lane == 0) tw::mbarrier_init(kept, 1);
#endif
#if CLUSTER > 1
  const u32 arrived = tw::smem_addr(states_barriers);
  if (threadIdx.x == 0) {
    tw::mbarrier_init(arrived, 1);
    tw::mbarrier_init(arrived + 8, 1);
  }
#endif
  tw::fence_mbarrier_init();
  __syncwarp();  // rings and their barriers are private to a warp
#if CLUSTER > 1
  tw::cluster_arrive();  // met by the wait before the first message: none may find its barrier uninitialised
#elif WEIGHTS == 2
  __syncthreads();  // the other teams wait on the first team's barriers for the weights
#endif

  const int stride = (int)(gridDim.x / CLUSTER) * GROUPS;
  const int first_row = (int)(blockIdx.x / CLUSTER) * GROUPS + team;

#if STAGES > 0
  // One elected lane asks for this warp's part of `row`; completes full[stage].
  auto fetch = [&](int row, int stage) {
    const tw::RowSlots slots = tw::row_slots(row, rows, n, kAnyPitch);
    const u32 bytes = (ROW_KIND == 0 ? kSegmentSlots : slots_to_fetch(first_slot, slots, n)) * 16;
    tw::mbarrier_arrive_expect_tx(full + 8 * stage, bytes);
    if (ROW_KIND == 0 || bytes > 0) {
      const u32 to = ring + stage * kSegmentBytes;
      const char* from = x + slots.start * ELEM_BYTES + (long long)first_slot * 16;
#if EVICT_FIRST
      tw::bulk_load_hint(to, from, bytes, full + 8 * stage, policy);
#else
      tw::bulk_load(to, from, bytes, full + 8 * stage);
#endif
    }
  };
  if (lane == 0) {
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
      if (first_row + s * stride < rows) fetch(first_row + s * stride, s);
    }
  }
  int stage = 0;
  u32 phase = 0;
#endif

#if WEIGHTS == 2
  if (team == 0 && lane == 0) {
    const u32 bytes = max(0, min(kSegmentSlots, n / kPerVec - first_slot)) * 16;
    tw::mbarrier_arrive_expect_tx(kept, 2 * bytes);
    if (bytes > 0) {
      tw::bulk_load(kept_weight, weight + (long long)first_slot * 16, bytes, kept);
      tw::bulk_load(kept_bias, bias + (long long)first_slot * 16, bytes, kept);
    }
  }
  tw::mbarrier_wait(kept, 0);
#endif
#if WEIGHTS == 1
  uint4 kept_weight[VECS], kept_bias[VECS];
#pragma unroll
  for (int v = 0; v < VECS; ++v) {
    const int slot = first_slot + lane + v * 32;
    kept_weight[v] = kept_bias[v] = make_uint4(0u, 0u, 0u, 0u);
    if (ROW_KIND == 0 || slot * kPerVec < n) {
      kept_weight[v] = tw::load_cached_16(weight + (long long)slot * 16);
      kept_bias[v] = tw::load_cached_16(bias + (long long)slot * 16);
    }
  }
#endif

  u32 round = 0;
  for (int row = first_row; row < rows; row += stride, ++round) {
#if CLUSTER > 1
    const u32 set = round & 1;
    if (threadIdx.x == 0) tw::mbarrier_arrive_expect_tx(arrived + 8 * set, kStates * 8);
#endif
    const tw::RowSlots slots = tw::row_slots(row, rows, n, kAnyPitch);
    uint4 held[VECS];
#if STAGES > 0
    tw::mbarrier_wait(full + 8 * stage, phase);
#pragma unroll
    for (int v = 0; v < VECS; ++v) held[v] = tw::ld_shared_16(ring + stage * kSegmentBytes + (lane + v * 32) * 16);
    __syncwarp();  // the slot has been read by all lanes
    if (lane == 0 && row + STAGES * stride < rows) fetch(row + STAGES * stride, stage);
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
#else
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = first_slot + lane + v * 32;
      const int first = slot * kPerVec - slots.shift;
      held[v] = make_uint4(0u, 0u, 0u, 0u);
      if (ROW_KIND == 0 || (kAnyPitch ? tw::slot_is_touched(first, n) && slot < slots.whole : tw::slot_is_full(first, n))) {
        held[v] = tw::load_streamed_16(x + slots.start * ELEM_BYTES + (long long)slot * 16);
      }
    }
#endif

    float value[VECS * kPerVec];
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = first_slot + lane + v * 32;
      const int first = slot * kPerVec - slots.shift;
      tw::unpack(held[v], value + v * kPerVec);
      if (ROW_KIND != 0 && !tw::slot_is_full(first, n)) {
        if (kAnyPitch && slot >= slots.whole) {  // the end of the tensor is in the middle of this slot
          tw::load_clipped(x + slots.start * ELEM_BYTES + (long long)slot * 16, first, n, 0.0f, value + v * kPerVec);
        }
        tw::mask_clipped(first, n, 0.0f, value + v * kPerVec);
      }
    }

    // This warp's state.
    const int own = ROW_KIND == 0 ? kSegmentSlots * kPerVec : tw::elements_in_slots(first_slot, kSegmentSlots, slots.shift, n);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS * kPerVec; ++i) sum += value[i];
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    float mean = own > 0 ? sum / (float)own : 0.0f;
    float squares = 0.0f, rest = 0.0f;  // of the deviations; `rest` is what rounding left in the mean
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int first = (first_slot + lane + v * 32) * kPerVec - slots.shift;
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) {
        const float deviation = value[v * kPerVec + e] - mean;
        if (ROW_KIND == 0 || (first + e >= 0 && first + e < n)) {
          squares += deviation * deviation;
          rest += deviation;
        }
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) {
      squares += __shfl_xor_sync(0xffffffffu, squares, offset);
      rest += __shfl_xor_sync(0xffffffffu, rest, offset);
    }
    const float correction = own > 0 ? rest / (float)own : 0.0f;
    mean += correction;
    squares -= rest * correction;

    if (kStates > 1) {
#if CLUSTER > 1
      if (round == 0) tw::cluster_wait();
      if (lane < CLUSTER) {
        const u32 to = tw::map_to_rank(tw::smem_addr(&states[set][0][member]), lane);
        tw::st_async_f32x2(to, mean, squares, tw::map_to_rank(arrived + 8 * set, lane));
      }
      tw::mbarrier_wait_cluster(arrived + 8 * set, (round >> 1) & 1);
      const float2* row_states = states[set][0];
#else
      float2* row_states = states[round & 1][team];
      if (lane == 0) row_states[member] = make_float2(mean, squares);
      tw::named_barrier_sync(GROUPS == 1 ? 0 : team, WARPS * 32);
#endif
      const float pivot = row_states[0].x;
      float moved = 0.0f;
#pragma unroll
      for (int s = 0; s < kStates; s += 32) {
        const int peer = s + lane;
        const float count = ROW_KIND == 0 ? (float)(kSegmentSlots * kPerVec)
                                          : (float)tw::elements_in_slots(peer * kSegmentSlots, kSegmentSlots, slots.shift, n);
        if (peer < kStates) moved += count * (row_states[peer].x - pivot);
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset >>= 1) moved += __shfl_xor_sync(0xffffffffu, moved, offset);
      mean = pivot + moved / (float)n;
      squares = 0.0f;
#pragma unroll
      for (int s = 0; s < kStates; s += 32) {
        const int peer = s + lane;
        const float count = ROW_KIND == 0 ? (float)(kSegmentSlots * kPerVec)
                                          : (float)tw::elements_in_slots(peer * kSegmentSlots, kSegmentSlots, slots.shift, n);
        if (peer < kStates) {
          const float apart = row_states[peer].x - mean;
          squares += row_states[peer].y + count * apart * apart;
        }
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset >>= 1) squares += __shfl_xor_sync(0xffffffffu, squares, offset);
    }
    const float scale = rsqrtf(squares / (float)n + eps);

#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = first_slot + lane + v * 32;
      const int first = slot * kPerVec - slots.shift;
      char* out = y + slots.start * ELEM_BYTES + (long long)slot * 16;
      const bool full_slot = ROW_KIND == 0 || tw::slot_is_full(first, n);
      float w[kPerVec], b[kPerVec], result[kPerVec];
#if WEIGHTS == 2
      tw::unpack(tw::ld_shared_16(kept_weight + (lane + v * 32) * 16), w);
      tw::unpack(tw::ld_shared_16(kept_bias + (lane + v * 32) * 16), b);
#elif WEIGHTS == 1
      tw::forget(kept_weight[v]);
      tw::forget(kept_bias[v]);
      tw::unpack(kept_weight[v], w);
      tw::unpack(kept_bias[v], b);
#else
      if (kAnyPitch) {
        // The slot's columns begin `shift` before a 16-byte slot of weight and bias. Past the last whole slot of those, the
        // loads are clamped and the few columns that are left are read one by one.
        const int last = n / kPerVec - 1;
        if (last >= 0) {
          const long long here = min(slot, last), before = min(max(slot - 1, 0), last);
          tw::unpack(tw::shifted_columns(tw::load_cached_16(weight + before * 16), tw::load_cached_16(weight + here * 16), slots.shift), w);
          tw::unpack(tw::shifted_columns(tw::load_cached_16(bias + before * 16), tw::load_cached_16(bias + here * 16), slots.shift), b);
        }
        if (slot > last && tw::slot_is_touched(first, n)) {
          tw::load_clipped(weight + (long long)first * ELEM_BYTES, first, n, 0.0f, w);
          tw::load_clipped(bias + (long long)first * ELEM_BYTES, first, n, 0.0f, b);
        }
      } else if (full_slot) {
        tw::unpack(tw::load_cached_16(weight + (long long)slot * 16), w);
        tw::unpack(tw::load_cached_16(bias + (long long)slot * 16), b);
      }
#endif
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) result[e] = (value[v * kPerVec + e] - mean) * scale * w[e] + b[e];
      if (full_slot) {
        tw::store_streamed_16(out, tw::pack(result));
      } else if (kAnyPitch) {
        tw::store_clipped(out, first, n, result);
      }
    }
  }
#if CLUSTER > 1
  // Every message to this block has been waited for, so it may go; one that had no row owes the wait.
  if (round == 0) tw::cluster_wait();
#endif
}
