// expect: TW4609 while cp
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using E = cutlass::half_t;
using LayoutQ = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<E>{}, Shape<_64, _64>{}));
using LayoutK = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<E>{}, Shape<_128, _64>{}));
// One product with A from registers, filled by cp.async, in the async proxy.
__global__ void __launch_bounds__(128) scores(E const* Q, E const* K, float* S, int n) {
  __shared__ alignas(1024) E q[cosize_v<LayoutQ>];
  __shared__ alignas(1024) E k[cosize_v<LayoutK>];
  Tensor sQ = make_tensor(make_smem_ptr(q), LayoutQ{});
  Tensor sK = make_tensor(make_smem_ptr(k), LayoutK{});
  Tensor gQ = make_tensor(make_gmem_ptr(Q), Shape<_64, _64>{}, Stride<_64, _1>{});
  Tensor gK = make_tensor(make_gmem_ptr(K), Shape<_128, _64>{}, Stride<_64, _1>{});
  Tensor gS = make_tensor(make_gmem_ptr(S), Shape<_64, _128>{}, Stride<_128, _1>{});
  auto ld = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, E>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{});
  auto t = ld.get_slice(threadIdx.x);
  copy(ld, t.partition_S(gQ), t.partition_D(sQ));
  copy(ld, t.partition_S(gK), t.partition_D(sK));
  cp_async_fence();
  cutlass::arch::fence_view_async_shared();
  __syncthreads();
  auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto thr = mma.get_slice(threadIdx.x);
  Tensor rQ = thr.partition_fragment_A(sQ);
  Tensor rK = thr.partition_fragment_B(sK);
  Tensor acc = partition_fragment_C(mma, Shape<_64, _128>{});
  warpgroup_fence_operand(acc);
  warpgroup_arrive();
  mma.accumulate_ = GMMA::ScaleOut::Zero;
  for (int i = 0; i < size<2>(rQ); ++i) {
    gemm(mma, rQ(_, _, i), rK(_, _, i), acc);
    mma.accumulate_ = GMMA::ScaleOut::One;
  }
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  warpgroup_fence_operand(acc);
  copy(acc, thr.partition_C(gS));
}
