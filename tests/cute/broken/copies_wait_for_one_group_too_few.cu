// expect: TW4609 waits for nothing
#include <cute/tensor.hpp>
using namespace cute;
using TA = half_t;
using S = Layout<Shape<_64, _32, _3>, Stride<_32, _1, _2048>>;
__global__ void __launch_bounds__(128) k(TA const* A, float* C, int n) {
  __shared__ alignas(16) TA smem[64 * 32 * 3];
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(n, Int<32>{}), make_stride(Int<32>{}, Int<1>{}));
  Tensor gA = local_tile(mA, Shape<_64, _32>{}, make_coord(_, 0));
  Tensor s = make_tensor(make_smem_ptr(smem), S{});
  auto cp = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, TA>{}, Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto thr = cp.get_slice(threadIdx.x);
  Tensor src = thr.partition_S(gA);
  Tensor dst = thr.partition_D(s);
  copy(cp, src(_, _, _, 0), dst(_, _, _, 0));
  cp_async_fence();
  copy(cp, src(_, _, _, 1), dst(_, _, _, 1));
  cp_async_fence();
  cp_async_wait<2>();
  __syncthreads();
  C[threadIdx.x] = float(s(threadIdx.x % 64, 0, 0));
}
