// expect: TW4603 part of thread 128 of 128
// mma.sync, the operand's memory used again for the result, vectors of 16 bytes out by half of the block's threads' copies.
#include <cute/tensor.hpp>
using namespace cute;
using E = half_t;
using SmA = decltype(composition(Swizzle<3, 3, 3>{}, Layout<Shape<_64, _64>, Stride<_64, _1>>{}));
using G = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, E>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{}));
using M_ = TiledMMA<MMA_Atom<SM80_16x8x16_F32F16F16F32_TN>, Layout<Shape<_2, _2, _1>>, Tile<_32, _32, _16>>;
__global__ void __launch_bounds__(128) k(E const* A, E const* B, E* C, int K) {
  __shared__ alignas(16) E a[64 * 64];
  __shared__ alignas(16) E b[64 * 64];
  Tensor sA = make_tensor(make_smem_ptr(a), SmA{});
  Tensor sB = make_tensor(make_smem_ptr(b), SmA{});
  Tensor sC = make_tensor(make_smem_ptr(a), SmA{});
  Tensor gA = local_tile(make_tensor(make_gmem_ptr(A), make_shape(512, K), make_stride(K, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.x, _));
  Tensor gB = local_tile(make_tensor(make_gmem_ptr(B), make_shape(512, K), make_stride(K, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.y, _));
  Tensor gC = local_tile(make_tensor(make_gmem_ptr(C), make_shape(512, 512), make_stride(512, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.x, blockIdx.y));
  G g;
  auto t = g.get_slice(threadIdx.x);
  M_ m;
  auto tm = m.get_slice(threadIdx.x);
  Tensor fa = tm.partition_fragment_A(sA), fb = tm.partition_fragment_B(sB), acc = partition_fragment_C(m, Shape<_64, _64>{});
  clear(acc);
  auto la = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, E>{}, m);
  auto lb = make_tiled_copy_B(Copy_Atom<SM75_U32x4_LDSM_N, E>{}, m);
  for (int k = 0; k < K / 64; ++k) {
    copy(g, t.partition_S(gA)(_, _, _, k), t.partition_D(sA));
    copy(g, t.partition_S(gB)(_, _, _, k), t.partition_D(sB));
    cp_async_fence();
    cp_async_wait<0>();
    __syncthreads();
    copy(la, la.get_slice(threadIdx.x).partition_S(sA), la.get_slice(threadIdx.x).retile_D(fa));
    copy(lb, lb.get_slice(threadIdx.x).partition_S(sB), lb.get_slice(threadIdx.x).retile_D(fb));
    gemm(m, fa, fb, acc);
    __syncthreads();
  }
  Tensor h = make_fragment_like<E>(acc);
  for (int i = 0; i < size(h); ++i) h(i) = E(acc(i));
  auto r2s = make_tiled_copy_C(Copy_Atom<UniversalCopy<int>, E>{}, m);
  auto tr = r2s.get_slice(threadIdx.x);
  copy(r2s, tr.retile_S(h), tr.partition_D(sC));
  __syncthreads();
  auto s2g = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, E>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
  auto ts = s2g.get_slice(threadIdx.x + 1);
  copy(s2g, ts.partition_S(sC), ts.partition_D(gC));
}
