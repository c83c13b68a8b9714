// Sum over rows (axis 0): y[c] = sum over r of x[r, c]; x read once, fp32 partial sums, one launch, the same result every time.
//
// A block owns a strip of LANES vectors of 16 bytes (columns) and one of `splits` ranges of rows; LANES threads cover the
// strip, THREADS / LANES of them work on different rows, each with UNROLL rows in flight. A block adds its threads' sums
// through shared memory and leaves them in partial[split][column]; the block of a strip that finds itself the last to finish
// (a ticket per strip) adds the strip's partials in order of split and writes y.
//
// Preconditions: columns * ELEM_BYTES % 16 == 0; tensors 16-byte aligned; partial holds splits * columns floats; tickets holds
// one zero per strip at the start, and does again at the end.
// Launch: grid (ceil(columns / (LANES * 16 / ELEM_BYTES)), splits) of THREADS.
//
// tw-variants: -DELEM_BYTES=2 -DTHREADS=256 -DLANES=32 -DUNROLL=8
// tw-variants: -DELEM_BYTES=4 -DTHREADS=256 -DLANES=64 -DUNROLL=8
#ifndef ELEM_BYTES
#define ELEM_BYTES 2  // 2: bf16, 4: fp32
#endif
#ifndef THREADS
#define THREADS 256
#endif
#ifndef LANES
#define LANES 32  // threads along the columns
#endif
#ifndef UNROLL
#define UNROLL 8  // rows in flight per thread
#endif
#include "tw_rows.cuh"

using tw::kPerVec;
constexpr int kTeams = THREADS / LANES;
constexpr int kColumns = LANES * kPerVec;  // of a strip

extern "C" __global__ void __launch_bounds__(THREADS)
colsum(const char* __restrict__ x, char* __restrict__ y, float* __restrict__ partial, unsigned* __restrict__ tickets, int rows,
       int columns) {
  __shared__ float sums[kTeams][kColumns + 4];
  __shared__ bool last;
  const int lane = threadIdx.x % LANES;
  const int team = threadIdx.x / LANES;
  const int first_column = blockIdx.x * kColumns;
  const int column = first_column + lane * kPerVec;
  const int splits = gridDim.y;
  const int begin = (int)((long long)rows * blockIdx.y / splits), end = (int)((long long)rows * (blockIdx.y + 1) / splits);

  float sum[kPerVec];
#pragma unroll
  for (int e = 0; e < kPerVec; ++e) sum[e] = 0.0f;
  if (column < columns) {
    const char* from = x + ((long long)(begin + team) * columns + column) * ELEM_BYTES;
    const long long pitch = (long long)kTeams * columns * ELEM_BYTES;
    int row = begin + team;
    for (; row + (UNROLL - 1) * kTeams < end; row += UNROLL * kTeams, from += UNROLL * pitch) {
      uint4 held[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) held[u] = tw::load_streamed_16(from + u * pitch);
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        float value[kPerVec];
        tw::unpack(held[u], value);
#pragma unroll
        for (int e = 0; e < kPerVec; ++e) sum[e] += value[e];
      }
    }
    for (; row < end; row += kTeams, from += pitch) {
      float value[kPerVec];
      tw::unpack(tw::load_streamed_16(from), value);
#pragma unroll
      for (int e = 0; e < kPerVec; ++e) sum[e] += value[e];
    }
  }
#pragma unroll
  for (int e = 0; e < kPerVec; ++e) sums[team][lane * kPerVec + e] = sum[e];
  __syncthreads();
  for (int c = threadIdx.x; c < kColumns; c += THREADS) {
    float total = 0.0f;
#pragma unroll
    for (int t = 0; t < kTeams; ++t) total += sums[t][c];
    if (first_column + c < columns) partial[(long long)blockIdx.y * columns + first_column + c] = total;
  }

  // The partials of this block are visible to whoever takes a later ticket of the strip.
  __syncthreads();
  if (threadIdx.x == 0) {
    tw::fence_acq_rel_gpu();
    last = tw::atom_add_acq_rel_gpu(tickets + blockIdx.x, 1u) == (unsigned)(splits - 1);
    tw::fence_acq_rel_gpu();
  }
  __syncthreads();
  if (!last) return;
  for (int c = threadIdx.x; c < kColumns; c += THREADS) {
    if (first_column + c >= columns) continue;
    float total = 0.0f;
    for (int s = 0; s < splits; ++s) total += __ldcg(partial + (long long)s * columns + first_column + c);
    reinterpret_cast<tw::RowElem*>(y)[first_column + c] = tw::narrow(total);
  }
  if (threadIdx.x == 0) tickets[blockIdx.x] = 0u;
}
