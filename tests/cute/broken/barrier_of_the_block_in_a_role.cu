// expect: TW4613 .
// Warp-specialised: one producer warpgroup (one thread issues TMA), two consumer warpgroups; hand-rolled rings of barriers.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
#include <cutlass/arch/reg_reconfig.h>
using namespace cute;
using bf16 = cute::bfloat16_t;
constexpr int STAGES = 4;
constexpr int BM = 128, BN = 256, BK = 64;
using SmemLayoutA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<bf16>{}, make_shape(Int<BM>{}, Int<BK>{}, Int<STAGES>{})));
using SmemLayoutB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<bf16>{}, make_shape(Int<BN>{}, Int<BK>{}, Int<STAGES>{})));
struct alignas(1024) Smem {
  alignas(1024) bf16 A[cosize_v<SmemLayoutA>];
  alignas(1024) bf16 B[cosize_v<SmemLayoutB>];
  cutlass::arch::ClusterTransactionBarrier full[STAGES];
  cutlass::arch::ClusterBarrier empty[STAGES];
};

template <class TmaA, class TmaB>
__global__ void __launch_bounds__(384, 1) ws_gemm(CUTE_GRID_CONSTANT TmaA const tma_a, CUTE_GRID_CONSTANT TmaB const tma_b, bf16* C, int M, int N, int K) {
  extern __shared__ __align__(1024) uint8_t raw[];
  Smem& s = *reinterpret_cast<Smem*>(raw);
  Tensor sA = make_tensor(make_smem_ptr(s.A), SmemLayoutA{});
  Tensor sB = make_tensor(make_smem_ptr(s.B), SmemLayoutB{});
  Tensor mA = tma_a.get_tma_tensor(make_shape(M, K));
  Tensor mB = tma_b.get_tma_tensor(make_shape(N, K));
  Tensor gA = local_tile(mA, make_shape(Int<BM>{}, Int<BK>{}), make_coord(blockIdx.y, _));
  Tensor gB = local_tile(mB, make_shape(Int<BN>{}, Int<BK>{}), make_coord(blockIdx.x, _));
  int const wg = threadIdx.x / 128;
  int const tiles = K / BK;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      s.full[i].init(1);
      s.empty[i].init(2);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (wg == 0) {
    __syncthreads();
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (threadIdx.x == 0) {
      auto cta_a = tma_a.get_slice(0);
      auto cta_b = tma_b.get_slice(0);
      Tensor tAgA = cta_a.partition_S(gA);
      Tensor tAsA = cta_a.partition_D(sA);
      Tensor tBgB = cta_b.partition_S(gB);
      Tensor tBsB = cta_b.partition_D(sB);
      int stage = 0;
      uint32_t phase = 0;
      for (int k = 0; k < tiles; ++k) {
        s.empty[stage].wait(phase ^ 1);
        s.full[stage].arrive_and_expect_tx((BM * BK + BN * BK) * sizeof(bf16));
        copy(tma_a.with(reinterpret_cast<uint64_t&>(s.full[stage])), tAgA(_, _, _, k), tAsA(_, _, _, stage));
        copy(tma_b.with(reinterpret_cast<uint64_t&>(s.full[stage])), tBgB(_, _, _, k), tBsB(_, _, _, stage));
        if (++stage == STAGES) { stage = 0; phase ^= 1; }
      }
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    auto mma = make_tiled_mma(SM90_64x256x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{}, Layout<Shape<_2, _1, _1>>{});
    auto thr = mma.get_slice(threadIdx.x - 128);
    Tensor tCrA = thr.make_fragment_A(thr.partition_A(sA));
    Tensor tCrB = thr.make_fragment_B(thr.partition_B(sB));
    Tensor acc = partition_fragment_C(mma, Shape<Int<BM>, Int<BN>>{});
    clear(acc);
    int stage = 0;
    uint32_t phase = 0;
    for (int k = 0; k < tiles; ++k) {
      s.full[stage].wait(phase);
      warpgroup_fence_operand(acc);
      warpgroup_arrive();
      gemm(mma, tCrA(_, _, _, stage), tCrB(_, _, _, stage), acc);
      warpgroup_commit_batch();
      warpgroup_wait<0>();
      warpgroup_fence_operand(acc);
      if (threadIdx.x % 128 == 0) s.empty[stage].arrive();
      if (++stage == STAGES) { stage = 0; phase ^= 1; }
    }
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{}));
    Tensor gC = local_tile(mC, Shape<Int<BM>, Int<BN>>{}, make_coord(blockIdx.y, blockIdx.x));
    Tensor tCgC = thr.partition_C(gC);
    for (int i = 0; i < size(acc); ++i) tCgC(i) = bf16(acc(i));
  }
}
