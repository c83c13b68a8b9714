#include <cute/tensor.hpp>
using namespace cute;
// One row of 4096 per block: maximum and sum over eight warps.
__global__ void __launch_bounds__(256) softmax(half_t const* X, half_t* Y, int rows) {
  __shared__ float part[8];
  __shared__ float total[8];
  Tensor gX = make_tensor(make_gmem_ptr(X), make_shape(rows, _4096{}), make_stride(_4096{}, _1{}));
  Tensor gY = make_tensor(make_gmem_ptr(Y), make_shape(rows, _4096{}), make_stride(_4096{}, _1{}));
  auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{}, Layout<Shape<_1, _256>, Stride<_256, _1>>{}, Layout<Shape<_1, _8>>{});
  auto thr = tc.get_slice(threadIdx.x);
  Tensor x = local_tile(gX, Shape<_1, _4096>{}, make_coord(blockIdx.x, 0));
  Tensor y = local_tile(gY, Shape<_1, _4096>{}, make_coord(blockIdx.x, 0));
  Tensor tx = thr.partition_S(x);
  Tensor ty = thr.partition_D(y);
  Tensor r = make_fragment_like(tx);
  copy(tc, tx, r);
  float m = -INFINITY;
  for (int i = 0; i < size(r); ++i) m = max(m, float(r(i)));
  for (int o = 16; o > 0; o /= 2) m = max(m, __shfl_xor_sync(0xffffffff, m, o));
  int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) part[warp] = m;
  __syncthreads();
  for (int w = 0; w < 8; ++w) m = max(m, part[w]);
  float s = 0;
  for (int i = 0; i < size(r); ++i) { float e = exp2f((float(r(i)) - m) * 1.44269504f); s += e; r(i) = half_t(e); }
  for (int o = 16; o > 0; o /= 2) s += __shfl_xor_sync(0xffffffff, s, o);
  if (lane == 0) total[warp] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < 8; ++w) s += total[w];
  for (int i = 0; i < size(r); ++i) r(i) = half_t(float(r(i)) / s);
  copy(tc, r, ty);
}
