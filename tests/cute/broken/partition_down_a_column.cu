// expect: TW4614 passes
#include <cute/tensor.hpp>
using namespace cute;
using Tile = Shape<_64, _64>;
using SmemL = decltype(composition(Swizzle<0, 0, 6>{}, Layout<Tile, Stride<_64, _1>>{}));
using SmemT = decltype(composition(SmemL{}, Layout<Tile, Stride<_64, _1>>{}));
__global__ void __launch_bounds__(256) transpose(float const* in, float* out, int M, int N) {
  __shared__ float smem[cosize_v<SmemL>];
  Tensor mI = make_tensor(make_gmem_ptr(in), make_layout(make_shape(M, N), LayoutRight{}));
  Tensor mO = make_tensor(make_gmem_ptr(out), make_layout(make_shape(N, M), LayoutRight{}));
  Tensor gI = local_tile(mI, Tile{}, make_coord(blockIdx.x, blockIdx.y));
  Tensor gO = local_tile(mO, Tile{}, make_coord(blockIdx.y, blockIdx.x));
  Tensor sI = make_tensor(make_smem_ptr(smem), SmemL{});
  Tensor sO = make_tensor(make_smem_ptr(smem), SmemT{});
  auto tl = make_layout(make_shape(_8{}, _32{}), LayoutRight{});
  Tensor tgI = local_partition(gI, tl, threadIdx.x);
  Tensor tsI = local_partition(sI, tl, threadIdx.x);
  Tensor tsO = local_partition(sO, tl, threadIdx.x);
  Tensor tgO = local_partition(gO, tl, threadIdx.x);
  copy(tgI, tsI);
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();
  copy(tsO, tgO);
}
