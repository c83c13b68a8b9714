// expect: TW4603 8 come here
// A fixed-size version of sgemm_2: register prefetch, two barriers a turn.
#include <cute/tensor.hpp>
#include <cuda_runtime.h>
using namespace cute;

namespace cfg {
  using BM = _128;
  using BN = _128;
  using BK = _8;
  using SmemA = Layout<Shape<BM, BK>, Stride<_1, Int<132>>>;
  using SmemB = Layout<Shape<BN, BK>, Stride<_1, Int<132>>>;
}

__global__ __launch_bounds__(256) void sgemm_nt(int M, int N, int K, float const* A, int ldA, float const* B, int ldB, float* C, int ldC, float alpha, float beta) {
  auto shape = make_shape(M, N, K);
  Tensor mA = make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(Int<1>{}, ldA));
  Tensor mB = make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(Int<1>{}, ldB));
  Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(Int<1>{}, ldC));
  auto tiler = make_shape(cfg::BM{}, cfg::BN{}, cfg::BK{});
  auto coord = make_coord(blockIdx.x, blockIdx.y, _);
  Tensor gA = local_tile(mA, tiler, coord, Step<_1, X, _1>{});
  Tensor gB = local_tile(mB, tiler, coord, Step<X, _1, _1>{});
  Tensor gC = local_tile(mC, tiler, coord, Step<_1, _1, X>{});

  __shared__ float smemA[cosize_v<cfg::SmemA>];
  __shared__ float smemB[cosize_v<cfg::SmemB>];
  Tensor sA = make_tensor(make_smem_ptr(smemA), cfg::SmemA{});
  Tensor sB = make_tensor(make_smem_ptr(smemB), cfg::SmemB{});

  TiledCopy copyA = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_32, _8>>{}, Layout<Shape<_4, _1>>{});
  TiledCopy copyB = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_32, _8>>{}, Layout<Shape<_4, _1>>{});
  TiledMMA mma = make_tiled_mma(UniversalFMA<float, float, float>{}, Layout<Shape<_16, _16, _1>>{});

  ThrCopy thr_copy_a = copyA.get_slice(threadIdx.x / 32);
  Tensor tAgA = thr_copy_a.partition_S(gA);
  Tensor tAsA = thr_copy_a.partition_D(sA);
  Tensor tArA = make_fragment_like(tAsA);
  ThrCopy thr_copy_b = copyB.get_slice(threadIdx.x);
  Tensor tBgB = thr_copy_b.partition_S(gB);
  Tensor tBsB = thr_copy_b.partition_D(sB);
  Tensor tBrB = make_fragment_like(tBsB);

  copy(copyA, tAgA(_, _, _, 0), tArA);
  copy(copyB, tBgB(_, _, _, 0), tBrB);

  ThrMMA thr_mma = mma.get_slice(threadIdx.x);
  Tensor tCsA = thr_mma.partition_A(sA);
  Tensor tCsB = thr_mma.partition_B(sB);
  Tensor tCgC = thr_mma.partition_C(gC);
  Tensor tCrC = thr_mma.make_fragment_C(tCgC);
  clear(tCrC);

  auto K_TILE_MAX = size<3>(tAgA);
  for (int k_tile = 0; k_tile < K_TILE_MAX; ++k_tile) {
    __syncthreads();
    copy(tArA, tAsA);
    copy(tBrB, tBsB);
    __syncthreads();
    int k_tile_next = (k_tile + 1 < K_TILE_MAX) ? k_tile + 1 : k_tile;
    copy(copyA, tAgA(_, _, _, k_tile_next), tArA);
    copy(copyB, tBgB(_, _, _, k_tile_next), tBrB);
    gemm(mma, tCsA, tCsB, tCrC);
  }
  axpby(alpha, tCrC, beta, tCgC);
}
