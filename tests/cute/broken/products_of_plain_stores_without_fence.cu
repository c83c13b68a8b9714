// expect: TW4612 wgmma reads
#include <cute/tensor.hpp>
using namespace cute;
using TA = half_t;
using SmemA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<TA>{}, Shape<_64, _64>{}));
using SmemB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<TA>{}, Shape<_128, _64>{}));
__global__ void __launch_bounds__(128) k(TA const* A, TA const* B, float* C) {
  __shared__ alignas(1024) TA smemA[64 * 64];
  __shared__ alignas(1024) TA smemB[128 * 64];
  Tensor sA = make_tensor(make_smem_ptr(smemA), SmemA{});
  Tensor sB = make_tensor(make_smem_ptr(smemB), SmemB{});
  for (int i = threadIdx.x; i < 64 * 64; i += 128) sA(i) = A[i];
  for (int i = threadIdx.x; i < 128 * 64; i += 128) sB(i) = B[i];
  __syncthreads();
  auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto thr = mma.get_slice(threadIdx.x);
  Tensor tCrA = thr.make_fragment_A(thr.partition_A(sA));
  Tensor tCrB = thr.make_fragment_B(thr.partition_B(sB));
  Tensor acc = partition_fragment_C(mma, Shape<_64, _128>{});
  warpgroup_arrive();
  gemm(mma, tCrA, tCrB, acc);
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  for (int i = 0; i < size(acc); ++i) C[i * 128 + threadIdx.x] = acc(i);
}
