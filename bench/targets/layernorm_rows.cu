// Row layer normalisation with the row held in registers:
//   y[r, c] = (x[r, c] - mean_r) / sqrt(var_r + eps) * weight[c] + bias[c], var the biased variance.
//
// LANES threads share one row; a block of THREADS holds THREADS / LANES rows at a time and strides over the rows. A thread
// holds VECS vectors of 16 bytes; a warp owns consecutive 16-byte slots of the row.
// Each warp folds its part to a state (mean, sum of squared deviations from that mean), in two passes over registers, the
// second of which also corrects the mean, so nothing cancels; a row's states are combined once (count known from the index),
// so a row costs one exchange between warps.
//
// ROW_KIND, preconditions: as softmax_rows.cu; weight and bias are 16-byte aligned too.
//
// tw-variants: -DELEM_BYTES=2 -DTHREADS=128 -DLANES=32 -DVECS=4 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=128 -DVECS=4 -DROW_KIND=1 -DWEIGHTS=1
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=256 -DVECS=4 -DROW_KIND=2
// tw-variants: -DELEM_BYTES=4 -DTHREADS=256 -DLANES=256 -DVECS=4 -DROW_KIND=0 -DWEIGHTS=1 -DPREFETCH=1
// tw-variants: -DELEM_BYTES=4 -DTHREADS=128 -DLANES=32 -DVECS=8 -DROW_KIND=2
#ifndef ELEM_BYTES
#define ELEM_BYTES 2  // 2: bf16, 4: fp32
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef LANES
#define LANES 32  // threads per row: a multiple of 32, or a power of two below it
#endif
#ifndef VECS
#define VECS 4  // 16-byte vectors per thread
#endif
#ifndef ROW_KIND
#define ROW_KIND 0
#endif
#ifndef PREFETCH
#define PREFETCH 0  // 1: the next row's loads are issued before this row is worked on
#endif
#ifndef WEIGHTS
#define WEIGHTS 0  // 0: weight and bias are read for every row (L1), 1: held in registers from row to row (ROW_KIND 0, 1)
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#include "tw_rows.cuh"

using tw::kPerVec;
constexpr int kRowsPerBlock = THREADS / LANES;
[[maybe_unused]] constexpr int kWarpsPerRow = LANES > 32 ? LANES / 32 : 1;
// Width of the butterflies over a row's warps: the next power of two.
[[maybe_unused]] constexpr int kWarpsSpan = kWarpsPerRow > 16 ? 32 : kWarpsPerRow > 8 ? 16 : kWarpsPerRow > 4 ? 8 : kWarpsPerRow > 2 ? 4 : kWarpsPerRow;
constexpr int kWarpLanes = LANES > 32 ? 32 : LANES;  // lanes of one warp that share a row
constexpr bool kAnyPitch = ROW_KIND == 2;
static_assert(THREADS % LANES == 0 && (LANES % 32 == 0 || (LANES & (LANES - 1)) == 0), "rows share a block; warps do not straddle rows");
static_assert(WEIGHTS == 0 || ROW_KIND != 2, "with any pitch a thread's columns change from row to row");
static_assert(LANES <= 32 || kRowsPerBlock <= 16, "one named barrier per row group");

// The 16-byte slot of its row that vector v of thread `lane` holds.
__device__ __forceinline__ int slot_of(int lane, int v) {
  return lane / kWarpLanes * (VECS * kWarpLanes) + v * kWarpLanes + lane % kWarpLanes;
}

// Issues this thread's loads of one row. Slots shared with neighbours are read whole; what is not the row's is masked later.
__device__ __forceinline__ void load_row(uint4 (&held)[VECS], const char* x, int row, int rows, int n, int lane) {
  const tw::RowSlots slots = tw::row_slots(row, rows, n, kAnyPitch);
#pragma unroll
  for (int v = 0; v < VECS; ++v) {
    const int slot = slot_of(lane, v);
    const int first = slot * kPerVec - slots.shift;
    held[v] = make_uint4(0u, 0u, 0u, 0u);
    if (ROW_KIND == 0 || (kAnyPitch ? tw::slot_is_touched(first, n) && slot < slots.whole : tw::slot_is_full(first, n))) {
      held[v] = tw::load_streamed_16(x + slots.start * ELEM_BYTES + slot * 16);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
layernorm_rows(const char* __restrict__ x, const char* __restrict__ weight, const char* __restrict__ bias,
               char* __restrict__ y, int rows, int n, float eps) {
  const int lane = threadIdx.x % LANES;
  const int group = threadIdx.x / LANES;
  const unsigned sharers = kWarpLanes == 32 ? 0xffffffffu : ((1u << (kWarpLanes % 32)) - 1u) << (threadIdx.x % 32 / kWarpLanes * kWarpLanes);
#if LANES > 32
  __shared__ float2 states[2][kRowsPerBlock][kWarpsPerRow];  // two sets: a fast warp may be one row ahead, never two
  int parity = 0;
#endif
  const int stride = (int)gridDim.x * kRowsPerBlock;
  int row = (int)blockIdx.x * kRowsPerBlock + group;
  if (row >= rows) return;  // row groups synchronise only among themselves

#if WEIGHTS == 1
  uint4 held_weight[VECS], held_bias[VECS];
#pragma unroll
  for (int v = 0; v < VECS; ++v) {
    const int slot = slot_of(lane, v);
    held_weight[v] = held_bias[v] = make_uint4(0u, 0u, 0u, 0u);
    if (ROW_KIND == 0 || slot * kPerVec < n) {
      held_weight[v] = tw::load_cached_16(weight + slot * 16);
      held_bias[v] = tw::load_cached_16(bias + slot * 16);
    }
  }
#endif
  uint4 next[VECS];
  if (PREFETCH) load_row(next, x, row, rows, n, lane);

  for (; row < rows; row += stride) {
    if (!PREFETCH) load_row(next, x, row, rows, n, lane);
    const tw::RowSlots slots = tw::row_slots(row, rows, n, kAnyPitch);
    float value[VECS * kPerVec];
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = slot_of(lane, v);
      const int first = slot * kPerVec - slots.shift;
      tw::unpack(next[v], value + v * kPerVec);
      if (ROW_KIND != 0 && !tw::slot_is_full(first, n)) {
        if (kAnyPitch && slot >= slots.whole) {  // the end of the tensor is in the middle of this slot
          tw::load_clipped(x + slots.start * ELEM_BYTES + slot * 16, first, n, 0.0f, value + v * kPerVec);
        }
        tw::mask_clipped(first, n, 0.0f, value + v * kPerVec);
      }
    }
    if (PREFETCH && row + stride < rows) load_row(next, x, row + stride, rows, n, lane);

    // This warp's state.
    const int own = ROW_KIND == 0 ? VECS * kWarpLanes * kPerVec
                                  : tw::elements_in_slots(slot_of(lane - lane % kWarpLanes, 0), VECS * kWarpLanes, slots.shift, n);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS * kPerVec; ++i) sum += value[i];
#pragma unroll
    for (int offset = kWarpLanes / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(sharers, sum, offset);
    float mean = own > 0 ? sum / (float)own : 0.0f;
    float squares = 0.0f, rest = 0.0f;  // of the deviations; `rest` is what rounding left in the mean
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int first = slot_of(lane, v) * kPerVec - slots.shift;
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
    for (int offset = kWarpLanes / 2; offset > 0; offset >>= 1) {
      squares += __shfl_xor_sync(sharers, squares, offset);
      rest += __shfl_xor_sync(sharers, rest, offset);
    }
    const float correction = own > 0 ? rest / (float)own : 0.0f;
    mean += correction;
    squares -= rest * correction;

#if LANES > 32
    // One exchange: every warp publishes (mean, squares), every warp combines all states of its row.
    if (threadIdx.x % 32 == 0) states[parity][group][lane / 32] = make_float2(mean, squares);
    tw::named_barrier_sync(kRowsPerBlock == 1 ? 0 : group, LANES);
    const int peer = threadIdx.x % kWarpsSpan;  // the warp of this row whose state this lane holds
    const float2 state = peer < kWarpsPerRow ? states[parity][group][peer] : make_float2(0.0f, 0.0f);
    const float pivot = states[parity][group][0].x;
    parity ^= 1;
    const float count = ROW_KIND != 0         ? (float)tw::elements_in_slots(peer * VECS * 32, VECS * 32, slots.shift, n)
                        : peer < kWarpsPerRow ? (float)(VECS * 32 * kPerVec)
                                              : 0.0f;
    float moved = count * (state.x - pivot);
#pragma unroll
    for (int offset = kWarpsSpan / 2; offset > 0; offset >>= 1) moved += __shfl_xor_sync(sharers, moved, offset);
    mean = pivot + moved / (float)n;
    squares = state.y + count * (state.x - mean) * (state.x - mean);
#pragma unroll
    for (int offset = kWarpsSpan / 2; offset > 0; offset >>= 1) squares += __shfl_xor_sync(sharers, squares, offset);
#endif
    const float scale = rsqrtf(squares / (float)n + eps);

#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = slot_of(lane, v);
      const int first = slot * kPerVec - slots.shift;
      char* out = y + slots.start * ELEM_BYTES + slot * 16;
      float w[kPerVec], b[kPerVec], result[kPerVec];
      const bool full = ROW_KIND == 0 || tw::slot_is_full(first, n);
#if WEIGHTS == 1
      tw::forget(held_weight[v]);
      tw::forget(held_bias[v]);
      tw::unpack(held_weight[v], w);
      tw::unpack(held_bias[v], b);
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
      } else if (full) {
        tw::unpack(tw::load_cached_16(weight + slot * 16), w);
        tw::unpack(tw::load_cached_16(bias + slot * 16), b);
      }
#endif
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) result[e] = (value[v * kPerVec + e] - mean) * scale * w[e] + b[e];
      if (full) {
        tw::store_streamed_16(out, tw::pack(result));
      } else if (kAnyPitch) {
        tw::store_clipped(out, first, n, result);
      }
    }
  }
}
