// expect: TW4605 .
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k(float const* X, int M, int K) {
  Tensor m = make_tensor(make_gmem_ptr(X), make_shape(M, K), make_stride(Int<1>{}, M));
  Tensor g = local_tile(m, Shape<_64, _32>{}, make_coord(0, 0));
  auto c = make_tiled_copy(Copy_Atom<UniversalCopy<float4>, float>{}, Layout<Shape<_16, _8>>{}, Layout<Shape<_1, _4>>{});
  Tensor t = c.get_slice(threadIdx.x).partition_S(g);
}
