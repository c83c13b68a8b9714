// expect: TW4604 tile 2 of 96 along mode 0 is not inside its extent of 256
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) first_tile(float* X) {
  __shared__ float memory[256 * 8];
  Tensor s = make_tensor(make_smem_ptr(memory), Layout<Shape<_256, _8>, Stride<_8, _1>>{});
  Tensor part = local_tile(s, Shape<_96, _8>{}, make_coord(2, 0));
  auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _1>>{});
  auto thr = tc.get_slice(threadIdx.x);
  Tensor g = make_tensor(make_gmem_ptr(X), Layout<Shape<_96, _8>, Stride<_8, _1>>{});
  copy(tc, thr.partition_S(g), thr.partition_D(part));
}
