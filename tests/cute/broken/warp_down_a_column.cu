// expect: TW4615 32 sectors
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(256) relu2d(float const* x, float* y, int M, int N) {
  Tensor mX = make_tensor(make_gmem_ptr(x), make_shape(M, N), make_stride(N, _1{}));
  Tensor mY = make_tensor(make_gmem_ptr(y), make_shape(M, N), make_stride(N, _1{}));
  Tensor cX = make_identity_tensor(shape(mX));
  auto tile = make_shape(_32{}, _128{});
  auto at = make_coord(blockIdx.x, blockIdx.y);
  Tensor gX = local_tile(mX, tile, at), gY = local_tile(mY, tile, at), cT = local_tile(cX, tile, at);
  auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<_32, _8>, Stride<_1, _32>>{}, Layout<Shape<_1, _1>>{});
  auto thr = tc.get_slice(threadIdx.x);
  Tensor tX = thr.partition_S(gX), tY = thr.partition_D(gY), tc_ = thr.partition_S(cT);
  Tensor r = make_fragment_like(tX);
  Tensor pred = make_tensor<bool>(shape(tX));
  for (int i = 0; i < size(pred); ++i) pred(i) = elem_less(tc_(i), shape(mX));
  clear(r);
  copy_if(tc, pred, tX, r);
  for (int i = 0; i < size(r); ++i) r(i) = r(i) > 0 ? r(i) : 0;
  copy_if(tc, pred, r, tY);
}
