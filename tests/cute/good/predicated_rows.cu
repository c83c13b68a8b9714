#include <cute/tensor.hpp>
using namespace cute;
// Rows of any length through shared memory, with predicates.
__global__ void __launch_bounds__(128) copy_if_kernel(float const* S, float* D, int M, int N) {
  Tensor mS = make_tensor(make_gmem_ptr(S), make_shape(M, N), make_stride(N, _1{}));
  Tensor mD = make_tensor(make_gmem_ptr(D), make_shape(M, N), make_stride(N, _1{}));
  Tensor cS = make_identity_tensor(shape(mS));
  auto tile = Shape<_16, _64>{};
  auto blk = make_coord(blockIdx.x, blockIdx.y);
  Tensor gS = local_tile(mS, tile, blk);
  Tensor gD = local_tile(mD, tile, blk);
  Tensor gC = local_tile(cS, tile, blk);
  auto tc = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<_2, _64>, Stride<_64, _1>>{}, Layout<Shape<_1, _1>>{});
  auto thr = tc.get_slice(threadIdx.x);
  Tensor tg = thr.partition_S(gS);
  Tensor td = thr.partition_D(gD);
  Tensor tC = thr.partition_S(gC);
  Tensor r = make_fragment_like(tg);
  Tensor p = make_tensor<bool>(shape(tg));
  for (int i = 0; i < size(p); ++i) p(i) = elem_less(tC(i), shape(mS));
  copy_if(tc, p, tg, r);
  for (int i = 0; i < size(r); ++i) r(i) = r(i) * 2.0f;
  copy_if(tc, p, r, td);
}
