#include <cute/tensor.hpp>
using namespace cute;
// One block for a row of N <= 4096 f32.
template <int kThreads, int kN>
__global__ void __launch_bounds__(kThreads) softmax_kernel(float const* x, float* y, int M) {
  constexpr int kVec = 4;
  constexpr int kWarps = kThreads / 32;
  __shared__ float red[kWarps];
  __shared__ float total;
  int row = blockIdx.x;
  Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(row) * kN), make_layout(Int<kN>{}));
  Tensor gY = make_tensor(make_gmem_ptr(y + int64_t(row) * kN), make_layout(Int<kN>{}));
  auto tiled = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Int<kThreads>>{}, Layout<Int<kVec>>{});
  auto thr = tiled.get_slice(threadIdx.x);
  Tensor tX = thr.partition_S(gX);
  Tensor tY = thr.partition_D(gY);
  Tensor r = make_fragment_like(tX);
  copy(tiled, tX, r);
  float m = -INFINITY;
  for (int i = 0; i < size(r); ++i) m = max(m, r(i));
  for (int o = 16; o > 0; o >>= 1) m = max(m, __shfl_xor_sync(0xffffffff, m, o));
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) red[warp] = m;
  __syncthreads();
  if (warp == 0) {
    float v = lane < kWarps ? red[lane] : -INFINITY;
    for (int o = 16; o > 0; o >>= 1) v = max(v, __shfl_xor_sync(0xffffffff, v, o));
    if (lane == 0) total = v;
  }
  __syncthreads();
  m = total;
  __syncthreads();
  float s = 0;
  for (int i = 0; i < size(r); ++i) { r(i) = __expf(r(i) - m); s += r(i); }
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(0xffffffff, s, o);
  if (lane == 0) red[warp] = s;
  __syncthreads();
  if (warp == 0) {
    float v = lane < kWarps ? red[lane] : 0.f;
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
    if (lane == 0) total = v;
  }
  __syncthreads();
  float inv = 1.f / total;
  for (int i = 0; i < size(r); ++i) r(i) *= inv;
  copy(tiled, r, tY);
}
template __global__ void softmax_kernel<256, 4096>(float const*, float*, int);
