// expect: TW4608 without a barrier
#include <cute/tensor.hpp>
using namespace cute;

// C = A * B^T with mma.sync: one stage, cp.async, ldmatrix.
using TA = bfloat16_t;
constexpr int BM = 128, BN = 128, BK = 32;
using SmemA = decltype(composition(Swizzle<2, 3, 3>{}, Layout<Shape<Int<BM>, Int<BK>>, Stride<Int<BK>, _1>>{}));
using SmemB = decltype(composition(Swizzle<2, 3, 3>{}, Layout<Shape<Int<BN>, Int<BK>>, Stride<Int<BK>, _1>>{}));

__global__ void __launch_bounds__(128) gemm_kernel(TA const* A, TA const* B, float* C, int M, int N, int K) {
  __shared__ TA smemA[BM * BK];
  __shared__ TA smemB[BN * BK];
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, Int<1>{}));
  Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(K, Int<1>{}));
  Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, Int<1>{}));
  Tensor gA = local_tile(mA, Shape<Int<BM>, Int<BK>>{}, make_coord(blockIdx.x, _));
  Tensor gB = local_tile(mB, Shape<Int<BN>, Int<BK>>{}, make_coord(blockIdx.y, _));
  Tensor gC = local_tile(mC, Shape<Int<BM>, Int<BN>>{}, make_coord(blockIdx.x, blockIdx.y));
  Tensor sA = make_tensor(make_smem_ptr(smemA), SmemA{});
  Tensor sB = make_tensor(make_smem_ptr(smemB), SmemB{});

  auto copyA = make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, TA>{}, Layout<Shape<_32, _4>, Stride<_4, _1>>{}, Layout<Shape<_1, _8>>{});
  auto mma = make_tiled_mma(MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>{}, Layout<Shape<_2, _2, _1>>{}, Tile<_32, _32, _16>{});
  auto thrA = copyA.get_slice(threadIdx.x);
  Tensor tAgA = thrA.partition_S(gA);
  Tensor tAsA = thrA.partition_D(sA);
  Tensor tBgB = thrA.partition_S(gB);
  Tensor tBsB = thrA.partition_D(sB);
  auto thr = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr.partition_A(sA);
  Tensor tCsB = thr.partition_B(sB);
  Tensor tCgC = thr.partition_C(gC);
  Tensor tCrC = thr.make_fragment_C(tCgC);
  clear(tCrC);
  for (int k = 0; k < K / BK; ++k) {
    copy(copyA, tAgA(_, _, _, k), tAsA);
    copy(copyA, tBgB(_, _, _, k), tBsB);
    cp_async_fence();
    cp_async_wait<0>();
    __syncwarp();
    gemm(mma, tCsA, tCsB, tCrC);
    __syncthreads();
  }
  copy(tCrC, tCgC);
}
