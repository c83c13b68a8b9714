#include <cute/tensor.hpp>
using namespace cute;

// A tile through shared memory, with rows padded by one.
__global__ void __launch_bounds__(256) transpose_kernel(float const* X, float* Y, int M, int N) {
  __shared__ float smem[33 * 32];
  Tensor mX = make_tensor(make_gmem_ptr(X), make_shape(M, N), make_stride(N, Int<1>{}));
  Tensor mY = make_tensor(make_gmem_ptr(Y), make_shape(N, M), make_stride(M, Int<1>{}));
  Tensor gX = local_tile(mX, Shape<_32, _32>{}, make_coord(blockIdx.y, blockIdx.x));
  Tensor gY = local_tile(mY, Shape<_32, _32>{}, make_coord(blockIdx.x, blockIdx.y));
  Tensor s = make_tensor(make_smem_ptr(smem), Layout<Shape<_32, _32>, Stride<_33, _1>>{});
  Tensor st = make_tensor(make_smem_ptr(smem), Layout<Shape<_32, _32>, Stride<_1, _33>>{});
  auto rows = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<_8, _32>, Stride<_32, _1>>{}, Layout<Shape<_1, _1>>{});
  auto thr = rows.get_slice(threadIdx.x);
  copy(rows, thr.partition_S(gX), thr.partition_D(s));
  __syncthreads();
  copy(rows, thr.partition_S(st), thr.partition_D(gY));
}
