#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k(half_t const* X, int n) {
  __shared__ half_t sm[2 * 128 * 8];
  Tensor s = make_tensor(make_smem_ptr(sm), Layout<Shape<_128, _8, _2>, Stride<_8, _1, _1024>>{});
  Tensor g = make_tensor(make_gmem_ptr(X), make_shape(128, 8, n), make_stride(8, Int<1>{}, 1024));
  auto c = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, half_t>{}, Layout<Shape<_128, _1>>{}, Layout<Shape<_1, _8>>{});
  auto thr = c.get_slice(threadIdx.x);
  Tensor tg = thr.partition_S(g);
  Tensor ts = thr.partition_D(s);
  copy(c, tg(_, _, _, 0), ts(_, _, _, 0));
  cp_async_fence();
  for (int i = 0; i < n; ++i) {
    cp_async_wait<0>();
    __syncthreads();
    if (i + 1 < n) copy(c, tg(_, _, _, i + 1), ts(_, _, _, (i + 1) % 2));
    cp_async_fence();
    Tensor r = make_fragment_like(ts(_, _, _, 0));
    copy(ts(_, _, _, i % 2), r);
  }
}
