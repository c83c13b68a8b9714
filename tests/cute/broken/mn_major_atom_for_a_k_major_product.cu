// expect: TW4606 is K-major
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;

// One tile by TMA and wgmma; the result goes out by TMA.
using TA = half_t;
using SmemA = decltype(tile_to_shape(GMMA::Layout_MN_SW128_Atom<TA>{}, Shape<_128, _64>{}));
using SmemB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<TA>{}, Shape<_128, _64>{}));
using SmemC = Layout<Shape<_128, _128>, Stride<_128, _1>>;

template <class TmaA, class TmaB, class TmaC>
__global__ void __launch_bounds__(128) wgmma_kernel(CUTE_GRID_CONSTANT TmaA const tmaA, CUTE_GRID_CONSTANT TmaB const tmaB, CUTE_GRID_CONSTANT TmaC const tmaC, int M, int N, int K) {
  __shared__ alignas(128) TA smemA[128 * 64];
  __shared__ alignas(128) TA smemB[128 * 64];
  __shared__ alignas(128) TA smemC[128 * 128];
  __shared__ uint64_t full[1];
  Tensor sA = make_tensor(make_smem_ptr(smemA), SmemA{});
  Tensor sB = make_tensor(make_smem_ptr(smemB), SmemB{});
  Tensor sC = make_tensor(make_smem_ptr(smemC), SmemC{});
  auto loadA = make_tma_copy(SM90_TMA_LOAD{}, sA, SmemA{});
  auto loadB = make_tma_copy(SM90_TMA_LOAD{}, sB, SmemB{});
  auto storeC = make_tma_copy(SM90_TMA_STORE{}, sC, SmemC{});
  auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto thr = mma.get_slice(threadIdx.x);
  Tensor tCrA = thr.make_fragment_A(thr.partition_A(sA));
  Tensor tCrB = thr.make_fragment_B(thr.partition_B(sB));
  Tensor acc = partition_fragment_C(mma, Shape<_128, _128>{});
  auto gA = loadA.get_slice(0).partition_S(sA);
  auto gB = loadB.get_slice(0).partition_S(sB);
  auto gC = storeC.get_slice(0).partition_D(sC);
  if (threadIdx.x == 0) {
    cute::initialize_barrier(full[0], 1);
  }
  __syncthreads();
  int phase = 0;
  for (int k = 0; k < K / 64; ++k) {
    if (threadIdx.x == 0) {
      cute::set_barrier_transaction_bytes(full[0], 2 * 128 * 64 * 2);
      copy(loadA.with(full[0]), gA, loadA.get_slice(0).partition_D(sA));
      copy(loadB.with(full[0]), gB, loadB.get_slice(0).partition_D(sB));
    }
    cute::wait_barrier(full[0], phase);
    phase ^= 1;
    warpgroup_arrive();
    gemm(mma, tCrA, tCrB, acc);
    warpgroup_commit_batch();
    warpgroup_wait<0>();
    __syncthreads();
  }
  for (int i = 0; i < size(acc); ++i) {
    sC(i * 128 + threadIdx.x) = TA(acc(i));
  }
  tma_store_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    copy(storeC, storeC.get_slice(0).partition_S(sC), gC);
    tma_store_arrive();
    tma_store_wait<0>();
  }
}
