// Row softmax, persistent, rows fetched ahead by bulk copies: y[r, :] = exp(x[r, :] - max) / sum.
//
// A row belongs to a cluster of CLUSTER blocks; in each block WARPS warps share it; a block holds GROUPS such teams (rows)
// at a time (GROUPS is 1 when CLUSTER > 1). A warp owns VECS * 512 consecutive bytes of its row and a private ring of STAGES
// slots of that size in shared memory: it waits for its slot, moves it to registers, and at once refills the slot with the
// row STAGES rounds ahead. So the current row lives in registers while the next ones are in flight, and no barrier between
// warps guards the ring at all. The only meeting of a row's warps is one exchange of states (max, sum of exponentials
// relative to it):
//   CLUSTER == 1, WARPS == 1   none
//   CLUSTER == 1, WARPS > 1    through shared memory and one named barrier, two sets of states
//   CLUSTER > 1                st.async into every block of the cluster, completing a barrier there, two sets and barriers:
//                              a warp sends row r + 2 only after all warps sent row r + 1, hence after all read row r
//
// ROW_KIND as in softmax_rows.cu (0: exact capacity, 1: pitch a multiple of 16 bytes, 2: any n). Slots that a row shares
// with its neighbours are fetched whole and masked; only where the tensor ends inside a slot are elements read one by one.
// Preconditions: x and y 16-byte aligned, dense rows, n (+ 16 / ELEM_BYTES - 1 for kind 2) <= CLUSTER * WARPS * VECS * 512 bytes.
// STAGES 0 leaves the ring out: rows are loaded straight into registers, and other resident blocks hide the latency.
// Launch: grid a multiple of CLUSTER, any size; dynamic shared memory WARPS * GROUPS * STAGES * VECS * 512 bytes.
//
// tw-variants: -DELEM_BYTES=2 -DWARPS=1 -DGROUPS=8 -DVECS=4 -DSTAGES=2 -DCLUSTER=1 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=2 -DWARPS=4 -DGROUPS=2 -DVECS=4 -DSTAGES=2 -DCLUSTER=1 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=2 -DWARPS=16 -DGROUPS=1 -DVECS=4 -DSTAGES=0 -DCLUSTER=4 -DROW_KIND=0 -DMIN_BLOCKS=2
// tw-variants: -DELEM_BYTES=2 -DWARPS=16 -DGROUPS=1 -DVECS=8 -DSTAGES=1 -DCLUSTER=2 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=4 -DWARPS=32 -DGROUPS=1 -DVECS=8 -DSTAGES=1 -DCLUSTER=2 -DROW_KIND=0
// tw-variants: -DELEM_BYTES=4 -DWARPS=16 -DGROUPS=1 -DVECS=8 -DSTAGES=2 -DCLUSTER=4 -DROW_KIND=2
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
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#ifndef EVICT_FIRST
#define EVICT_FIRST 0  // 1: rows are fetched with the L2 policy for data that is read once
#endif
#include "tw_rows.cuh"

using tw::kLog2E;
using tw::kPerVec;
using tw::u32;
constexpr int kThreads = WARPS * GROUPS * 32;
constexpr int kSegmentSlots = VECS * 32;           // 16-byte slots of a row that one warp owns
[[maybe_unused]] constexpr int kSegmentBytes = kSegmentSlots * 16;
constexpr int kStates = CLUSTER * WARPS;           // states that make up a row
constexpr bool kAnyPitch = ROW_KIND == 2;
static_assert(CLUSTER == 1 || GROUPS == 1, "the exchange across blocks serves one row at a time");
static_assert(WARPS == 1 || (WARPS & (WARPS - 1)) == 0, "states are combined by butterflies");
static_assert(GROUPS <= 16 || WARPS == 1, "one named barrier per team");
static_assert(kThreads <= 1024, "a block has at most 1024 threads");

// How many of a warp's slots are fetched: those that the row touches, as far as they lie in the tensor as a whole.
__device__ __forceinline__ int slots_to_fetch(int first_slot, tw::RowSlots slots, int n) {
  const int end = min((slots.shift + n + (kAnyPitch ? kPerVec - 1 : 0)) / kPerVec, slots.whole);
  return max(0, min(kSegmentSlots, end - first_slot));
}

extern "C" __global__ void __launch_bounds__(kThreads, MIN_BLOCKS)
softmax_ring(const char* __restrict__ x, char* __restrict__ y, int rows, int n) {
  extern __shared__ __align__(128) char ring_bytes[];
#if STAGES > 0
  __shared__ __align__(8) unsigned long long full_barriers[WARPS * GROUPS][STAGES];
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
    float top = tw::minus_infinity();
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = first_slot + lane + v * 32;
      const int first = slot * kPerVec - slots.shift;
      float* part = value + v * kPerVec;
      tw::unpack(held[v], part);
      if (ROW_KIND != 0 && !tw::slot_is_full(first, n)) {
        if (kAnyPitch && slot >= slots.whole) {  // the end of the tensor is in the middle of this slot
          tw::load_clipped(x + slots.start * ELEM_BYTES + (long long)slot * 16, first, n, tw::minus_infinity(), part);
        }
        tw::mask_clipped(first, n, tw::minus_infinity(), part);
      }
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) top = fmaxf(top, part[e]);
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, offset));

    // A part with nothing but -inf has no finite maximum; relative to 0 its exponentials are 0, as they must be.
    const float base = top == tw::minus_infinity() ? 0.0f : top;
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < VECS; ++v) {
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) {
        value[v * kPerVec + e] = tw::exp2_approx((value[v * kPerVec + e] - base) * kLog2E);
        sum += value[v * kPerVec + e];
      }
    }
#pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, offset);

    float scale;
    if (kStates == 1) {
      scale = 1.0f / sum;
    } else {
#if CLUSTER > 1
      if (round == 0) tw::cluster_wait();
      if (lane < CLUSTER) {
        const u32 to = tw::map_to_rank(tw::smem_addr(&states[set][0][member]), lane);
        tw::st_async_f32x2(to, top, sum, tw::map_to_rank(arrived + 8 * set, lane));
      }
      tw::mbarrier_wait_cluster(arrived + 8 * set, (round >> 1) & 1);
      const float2* row_states = states[set][0];
#else
      float2* row_states = states[round & 1][team];
      if (lane == 0) row_states[member] = make_float2(top, sum);
      tw::named_barrier_sync(GROUPS == 1 ? 0 : team, WARPS * 32);
#endif
      float row_top = tw::minus_infinity();
#pragma unroll
      for (int s = 0; s < kStates; s += 32) {
        if (s + lane < kStates) row_top = fmaxf(row_top, row_states[s + lane].x);
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset >>= 1) row_top = fmaxf(row_top, __shfl_xor_sync(0xffffffffu, row_top, offset));
      const float row_base = row_top == tw::minus_infinity() ? 0.0f : row_top;
      float row_sum = 0.0f;
#pragma unroll
      for (int s = 0; s < kStates; s += 32) {
        if (s + lane < kStates) row_sum += row_states[s + lane].y * tw::exp2_approx((row_states[s + lane].x - row_base) * kLog2E);
      }
#pragma unroll
      for (int offset = 16; offset > 0; offset >>= 1) row_sum += __shfl_xor_sync(0xffffffffu, row_sum, offset);
      scale = tw::exp2_approx((top - row_base) * kLog2E) / row_sum;
    }

#pragma unroll
    for (int v = 0; v < VECS; ++v) {
      const int slot = first_slot + lane + v * 32;
      const int first = slot * kPerVec - slots.shift;
      char* out = y + slots.start * ELEM_BYTES + (long long)slot * 16;
      float scaled[kPerVec];
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) scaled[e] = value[v * kPerVec + e] * scale;
      if (ROW_KIND == 0 || tw::slot_is_full(first, n)) {
        tw::store_streamed_16(out, tw::pack(scaled));
      } else if (kAnyPitch) {
        tw::store_clipped(out, first, n, scaled);
      }
    }
  }
#if CLUSTER > 1
  // Every message to this block has been waited for, so it may go; one that had no row owes the wait.
  if (round == 0) tw::cluster_wait();
#endif
}
