// expect: TW4602 the thread layout
#include <cute/tensor.hpp>
using namespace cute;
template <class T>
__global__ void __launch_bounds__(256) transpose_kernel(T const* S, T* D, int M, int N) {
  using SmemLayout = decltype(composition(Swizzle<5, 0, 5>{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{}));
  __shared__ T smem[32 * 32];
  Tensor sS = make_tensor(make_smem_ptr(smem), SmemLayout{});
  Tensor sD = make_tensor(make_smem_ptr(smem), composition(SmemLayout{}, Layout<Shape<_32, _32>, Stride<_32, _1>>{}));
  Tensor mS = make_tensor(make_gmem_ptr(S), make_shape(M, N), make_stride(N, _1{}));
  Tensor mD = make_tensor(make_gmem_ptr(D), make_shape(N, M), make_stride(M, _1{}));
  Tensor gS = local_tile(mS, Shape<_32, _32>{}, make_coord(blockIdx.x, blockIdx.y));
  Tensor gD = local_tile(mD, Shape<_32, _32>{}, make_coord(blockIdx.y, blockIdx.x));
  auto tS = Layout<Shape<_8, _32>, Stride<_16, _1>>{};
  Tensor tSgS = local_partition(gS, tS, threadIdx.x);
  Tensor tSsS = local_partition(sS, tS, threadIdx.x);
  Tensor tDgD = local_partition(gD, tS, threadIdx.x);
  Tensor tDsD = local_partition(sD, tS, threadIdx.x);
  copy(tSgS, tSsS);
  __syncthreads();
  copy(tDsD, tDgD);
}
template __global__ void transpose_kernel<float>(float const*, float*, int, int);
