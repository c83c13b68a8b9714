// Cumulative sum along rows, the row held in registers: y[r, c] = sum of x[r, 0 .. c].
//
// LANES threads share one row; a block of THREADS holds THREADS / LANES rows at a time. A warp owns consecutive 16-byte slots
// of the row, so the order of the sum is: inside a vector, across the lanes of a warp (a shuffle scan of vector totals), from
// one vector of a lane to the next (a running carry), across the row's warps (one exchange of warp totals).
// Partial sums are fp32. ROW_KIND, preconditions: as softmax_rows.cu.
//
// tw-variants: -DELEM_BYTES=2 -DTHREADS=128 -DLANES=32 -DVECS=4 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=128 -DVECS=4 -DROW_KIND=1
// tw-variants: -DELEM_BYTES=4 -DTHREADS=256 -DLANES=256 -DVECS=4 -DROW_KIND=2
// tw-variants: -DELEM_BYTES=4 -DTHREADS=1024 -DLANES=1024 -DVECS=4 -DROW_KIND=1
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
cumsum_rows(const char* __restrict__ x, char* __restrict__ y, int rows, int n) {
  const int lane = threadIdx.x % LANES;
  const int group = threadIdx.x / LANES;
  const int place = threadIdx.x % kWarpLanes;  // among the lanes of this warp that share the row
  const unsigned sharers = kWarpLanes == 32 ? 0xffffffffu : ((1u << (kWarpLanes % 32)) - 1u) << (threadIdx.x % 32 / kWarpLanes * kWarpLanes);
#if LANES > 32
  __shared__ float totals[2][kRowsPerBlock][kWarpsPerRow];  // two sets: a fast warp may be one row ahead, never two
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
          tw::load_clipped(x + slots.start * ELEM_BYTES + slot * 16, first, n, 0.0f, value + v * kPerVec);
        }
        tw::mask_clipped(first, n, 0.0f, value + v * kPerVec);
      }
    }
    if (PREFETCH && row + stride < rows) load_row(next, x, row + stride, rows, n, lane);

    float before[VECS];  // what this warp has summed in front of each of this thread's vectors
    float carry = 0.0f;
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
#pragma unroll
      for (int e = 1; e < kPerVec; ++e) value[v * kPerVec + e] += value[v * kPerVec + e - 1];
      float through = value[v * kPerVec + kPerVec - 1];
#pragma unroll
      for (int offset = 1; offset < kWarpLanes; offset <<= 1) {
        const float left = __shfl_up_sync(sharers, through, offset, kWarpLanes);
        if (place >= offset) through += left;
      }
      const float left = __shfl_up_sync(sharers, through, 1, kWarpLanes);
      before[v] = carry + (place > 0 ? left : 0.0f);
      carry += __shfl_sync(sharers, through, kWarpLanes - 1, kWarpLanes);
    }
    float row_before = 0.0f;
#if LANES > 32
    if (threadIdx.x % 32 == 0) totals[parity][group][lane / 32] = carry;
    tw::named_barrier_sync(kRowsPerBlock == 1 ? 0 : group, LANES);
    row_before = threadIdx.x % 32 < lane / 32 ? totals[parity][group][threadIdx.x % 32] : 0.0f;
    parity ^= 1;
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) row_before += __shfl_xor_sync(sharers, row_before, offset);
#endif

#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = slot_of(lane, v);
      const int first = slot * kPerVec - slots.shift;
      char* out = y + slots.start * ELEM_BYTES + slot * 16;
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) value[v * kPerVec + e] += row_before + before[v];
      if (ROW_KIND == 0 || tw::slot_is_full(first, n)) {
        tw::store_streamed_16(out, tw::pack(value + v * kPerVec));
      } else if (kAnyPitch) {
        tw::store_clipped(out, first, n, value + v * kPerVec);
      }
    }
  }
}
