// expect: TW4603 256 threads
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float const* A, float* C, int n) {
  auto cp = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_32, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _4>>{});
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(Int<32>{}, Int<32>{}), make_stride(Int<32>{}, Int<1>{}));
  Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(Int<32>{}, Int<32>{}), make_stride(Int<32>{}, Int<1>{}));
  auto thr = cp.get_slice(threadIdx.x);
  Tensor r = make_fragment_like(thr.partition_S(mA));
  copy(cp, thr.partition_S(mA), r);
  copy(cp, r, thr.partition_D(mC));
}
void launch(float const* A, float* C, int n) {
  dim3 block(128);
  dim3 grid(1);
  k<<<grid, block>>>(A, C, n);
}
