#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k() {
  __shared__ half_t sm[64 * 64];
  Tensor s = make_tensor(make_smem_ptr(sm), composition(Swizzle<3, 3, 3>{}, Layout<Shape<_64, _64>, Stride<_64, _1>>{}));
  auto c = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, half_t>{}, Layout<Shape<_32, _4>>{}, Layout<Shape<_1, _8>>{});
  Tensor t = c.get_slice(threadIdx.x).partition_S(s);
}
