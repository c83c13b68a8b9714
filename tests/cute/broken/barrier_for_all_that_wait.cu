// expect: TW4610 initialised for 128 arrivals
// The result of a product through shared memory and out by TMA.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using OutSmem = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _128>{}));
using Op = SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>;
using SA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _64>{}));
using SB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_128, _64>{}));
template <class LA, class LB, class ST>
__global__ void __launch_bounds__(128) k(CUTE_GRID_CONSTANT LA const la, CUTE_GRID_CONSTANT LB const lb, CUTE_GRID_CONSTANT ST const st, int M, int N, int K) {
  __shared__ alignas(1024) half_t a_[cosize_v<SA>];
  __shared__ alignas(1024) half_t b_[cosize_v<SB>];
  __shared__ alignas(1024) half_t o_[cosize_v<OutSmem>];
  __shared__ alignas(8) uint64_t bar;
  Tensor sA = make_tensor(make_smem_ptr(a_), SA{});
  Tensor sB = make_tensor(make_smem_ptr(b_), SB{});
  Tensor sO = make_tensor(make_smem_ptr(o_), OutSmem{});
  TiledMMA mma = make_tiled_mma(Op{});
  auto thr = mma.get_slice(threadIdx.x);
  Tensor fA = thr.make_fragment_A(thr.partition_A(sA));
  Tensor fB = thr.make_fragment_B(thr.partition_B(sB));
  Tensor acc = partition_fragment_C(mma, Shape<_64, _128>{});
  if (threadIdx.x == 0) {
    initialize_barrier(bar, 128);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  auto ga = local_tile(la.get_tma_tensor(make_shape(M, K)), Shape<_64, _64>{}, make_coord(blockIdx.x, _));
  auto gb = local_tile(lb.get_tma_tensor(make_shape(N, K)), Shape<_128, _64>{}, make_coord(blockIdx.y, _));
  auto sa = la.get_slice(0), sb = lb.get_slice(0);
  mma.accumulate_ = GMMA::ScaleOut::Zero;
  int ph = 0;
  for (int k = 0; k < K / 64; ++k) {
    if (threadIdx.x == 0) {
      set_barrier_transaction_bytes(bar, 64 * 64 * 2 + 128 * 64 * 2);
      copy(la.with(bar), sa.partition_S(ga(_, _, k)), sa.partition_D(sA));
      copy(lb.with(bar), sb.partition_S(gb(_, _, k)), sb.partition_D(sB));
    }
    wait_barrier(bar, ph);
    ph ^= 1;
    warpgroup_fence_operand(acc);
    warpgroup_arrive();
    gemm(mma, fA, fB, acc);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    warpgroup_fence_operand(acc);
    mma.accumulate_ = GMMA::ScaleOut::One;
    __syncthreads();
  }
  auto r2s = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, half_t>{}, mma);
  auto r2s_thr = r2s.get_slice(threadIdx.x);
  Tensor h = make_fragment_like<half_t>(acc);
  for (int i = 0; i < size(acc); ++i) h(i) = half_t(acc(i));
  copy(r2s, r2s_thr.retile_S(h), r2s_thr.partition_D(sO));
  tma_store_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    auto go = local_tile(st.get_tma_tensor(make_shape(M, N)), Shape<_64, _128>{}, make_coord(blockIdx.x, blockIdx.y));
    auto so = st.get_slice(0);
    copy(st, so.partition_S(sO), so.partition_D(go));
    tma_store_arrive();
    tma_store_wait<0>();
  }
}
void launch(half_t* A, half_t* B, half_t* C, int M, int N, int K) {
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, _1{}));
  Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(K, _1{}));
  Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{}));
  auto la = make_tma_copy(SM90_TMA_LOAD{}, mA, SA{});
  auto lb = make_tma_copy(SM90_TMA_LOAD{}, mB, SB{});
  auto st = make_tma_copy(SM90_TMA_STORE{}, mC, OutSmem{});
  k<<<dim3(M / 64, N / 128), 128>>>(la, lb, st, M, N, K);
}
