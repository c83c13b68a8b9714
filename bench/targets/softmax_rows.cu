// Row softmax with the row held in registers: y[r, c] = exp(x[r, c] - m_r) / sum_c exp(x[r, c] - m_r), m_r = max_c x[r, c].
//
// LANES threads share one row; a block of THREADS holds THREADS / LANES rows at a time and strides over the rows. A thread
// holds VECS vectors of 16 bytes; a warp owns consecutive 16-byte slots of the row, vector v of its lanes being consecutive
// too: every access of a warp is 512 consecutive bytes, and all VECS loads are issued before the first is used.
// Each warp folds its part to a state (max, sum of exponentials relative to that max); states are combined once per row, so
// a row costs one exchange between warps (none when LANES <= 32), and each exponential is computed once.
//
// ROW_KIND 0  n == LANES * VECS * (16 / ELEM_BYTES): no predicate at all
// ROW_KIND 1  n * ELEM_BYTES % 16 == 0: a vector is there or not
// ROW_KIND 2  any n: a row may begin anywhere; 16-byte slots are counted from the aligned address below its first element,
//             and the at most two slots that it shares with its neighbours are read whole, masked, and written one element
//             at a time (where the tensor ends inside a slot, it is read one element at a time too)
// Preconditions: x and y are 16-byte aligned, rows are dense, n + (ROW_KIND == 2 ? 16 / ELEM_BYTES - 1 : 0) <= capacity.
//
// tw-variants: -DELEM_BYTES=2 -DTHREADS=128 -DLANES=32 -DVECS=4 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=128 -DVECS=4 -DROW_KIND=1
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=256 -DVECS=4 -DROW_KIND=2
// tw-variants: -DELEM_BYTES=4 -DTHREADS=256 -DLANES=256 -DVECS=4 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=4 -DTHREADS=128 -DLANES=32 -DVECS=8 -DROW_KIND=2 -DPREFETCH=1
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
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#include "tw_rows.cuh"

using tw::kLog2E;
using tw::kPerVec;
constexpr int kRowsPerBlock = THREADS / LANES;
[[maybe_unused]] constexpr int kWarpsPerRow = LANES > 32 ? LANES / 32 : 1;
// Width of the butterflies over a row's warps: the next power of two.
[[maybe_unused]] constexpr int kWarpsSpan = kWarpsPerRow > 16 ? 32 : kWarpsPerRow > 8 ? 16 : kWarpsPerRow > 4 ? 8 : kWarpsPerRow > 2 ? 4 : kWarpsPerRow;
constexpr int kWarpLanes = LANES > 32 ? 32 : LANES;  // lanes of one warp that share a row
constexpr bool kAnyPitch = ROW_KIND == 2;
static_assert(THREADS % LANES == 0 && (LANES % 32 == 0 || (LANES & (LANES - 1)) == 0), "rows share a block; warps do not straddle rows");
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
softmax_rows(const char* __restrict__ x, char* __restrict__ y, int rows, int n) {
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
          tw::load_clipped(x + slots.start * ELEM_BYTES + slot * 16, first, n, tw::minus_infinity(), value + v * kPerVec);
        }
        tw::mask_clipped(first, n, tw::minus_infinity(), value + v * kPerVec);
      }
    }
    if (PREFETCH && row + stride < rows) load_row(next, x, row + stride, rows, n, lane);

    float top = value[0];
#pragma unroll
    for (int i = 1; i < VECS * kPerVec; ++i) top = fmaxf(top, value[i]);
#pragma unroll
    for (int offset = kWarpLanes / 2; offset > 0; offset >>= 1) top = fmaxf(top, __shfl_xor_sync(sharers, top, offset));

    // A part with nothing but -inf has no finite maximum; relative to 0 its exponentials are 0, as they must be.
    const float base = top == tw::minus_infinity() ? 0.0f : top;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < VECS * kPerVec; ++i) {
      value[i] = tw::exp2_approx((value[i] - base) * kLog2E);
      sum += value[i];
    }
#pragma unroll
    for (int offset = kWarpLanes / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(sharers, sum, offset);

#if LANES > 32
    // One exchange: every warp publishes (max, sum), every warp combines all states of its row.
    if (threadIdx.x % 32 == 0) states[parity][group][lane / 32] = make_float2(top, sum);
    tw::named_barrier_sync(kRowsPerBlock == 1 ? 0 : group, LANES);
    const int peer = threadIdx.x % kWarpsSpan;  // the warp of this row whose state this lane holds
    const float2 state = peer < kWarpsPerRow ? states[parity][group][peer] : make_float2(tw::minus_infinity(), 0.0f);
    parity ^= 1;
    float row_top = state.x;
#pragma unroll
    for (int offset = kWarpsSpan / 2; offset > 0; offset >>= 1) row_top = fmaxf(row_top, __shfl_xor_sync(sharers, row_top, offset));
    const float row_base = row_top == tw::minus_infinity() ? 0.0f : row_top;
    float row_sum = state.y * tw::exp2_approx((state.x - row_base) * kLog2E);
#pragma unroll
    for (int offset = kWarpsSpan / 2; offset > 0; offset >>= 1) row_sum += __shfl_xor_sync(sharers, row_sum, offset);
    const float scale = tw::exp2_approx((top - row_base) * kLog2E) / row_sum;
#else
    const float scale = 1.0f / sum;
#endif

#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = slot_of(lane, v);
      const int first = slot * kPerVec - slots.shift;
      char* out = y + slots.start * ELEM_BYTES + slot * 16;
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) value[v * kPerVec + e] *= scale;
      if (ROW_KIND == 0 || tw::slot_is_full(first, n)) {
        tw::store_streamed_16(out, tw::pack(value + v * kPerVec));
      } else if (kAnyPitch) {
        tw::store_clipped(out, first, n, value + v * kPerVec);
      }
    }
  }
}
