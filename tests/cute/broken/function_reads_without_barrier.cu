// expect: TW4608 without a barrier
#include <cute/tensor.hpp>
#include <cuda_bf16.h>
using namespace cute;
static constexpr int N = 2048, THREADS = 256;
__device__ float block_sum(float v, float* scratch) {
  for (int o = 16; o; o /= 2) v += __shfl_down_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = v;
  float t = 0;
  for (int i = 0; i < THREADS / 32; ++i) t += scratch[i];
  __syncthreads();
  return t;
}
extern "C" __global__ void __launch_bounds__(THREADS) layernorm(bfloat16_t const* x, bfloat16_t const* w, bfloat16_t const* b, bfloat16_t* y, float eps) {
  __shared__ float scratch[THREADS / 32];
  using Copy = decltype(make_tiled_copy(Copy_Atom<UniversalCopy<cute::uint128_t>, bfloat16_t>{}, Layout<Shape<Int<THREADS>>>{}, Layout<Shape<_8>>{}));
  Tensor gx = make_tensor(make_gmem_ptr(x + blockIdx.x * N), Shape<Int<N>>{});
  Tensor gy = make_tensor(make_gmem_ptr(y + blockIdx.x * N), Shape<Int<N>>{});
  Tensor gw = make_tensor(make_gmem_ptr(w), Shape<Int<N>>{});
  Tensor gb = make_tensor(make_gmem_ptr(b), Shape<Int<N>>{});
  Copy tiled;
  auto thr = tiled.get_thread_slice(threadIdx.x);
  Tensor rx = make_tensor<bfloat16_t>(shape(thr.partition_S(gx)));
  Tensor rw = make_fragment_like(rx);
  Tensor rb = make_fragment_like(rx);
  copy(tiled, thr.partition_S(gx), rx);
  copy(tiled, thr.partition_S(gw), rw);
  copy(tiled, thr.partition_S(gb), rb);
  float s = 0;
  CUTE_UNROLL
  for (int i = 0; i < size(rx); ++i) s += float(rx(i));
  float mean = block_sum(s, scratch) / N;
  float q = 0;
  CUTE_UNROLL
  for (int i = 0; i < size(rx); ++i) { float d = float(rx(i)) - mean; q += d * d; }
  float inv = rsqrtf(block_sum(q, scratch) / N + eps);
  Tensor ry = make_fragment_like(rx);
  for (int i = 0; i < size(rx); ++i) ry(i) = bfloat16_t((float(rx(i)) - mean) * inv * float(rw(i)) + float(rb(i)));
  copy(tiled, ry, thr.partition_D(gy));
}
