// expect: TW4610 is for
// Two consumer warpgroups take turns with named barriers; a warp brings tiles.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using T = half_t;
using SA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, Shape<_64, _64, _2>{}));
using SB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<T>{}, Shape<_128, _64, _2>{}));
struct Storage { alignas(1024) T a[cosize_v<SA>]; alignas(1024) T b[cosize_v<SB>]; uint64_t full[2]; uint64_t empty[2]; };
template <class LA, class LB>
__global__ void __launch_bounds__(384) pingpong(CUTE_GRID_CONSTANT LA const la, CUTE_GRID_CONSTANT LB const lb, float* C, int M, int N, int K) {
  extern __shared__ char raw[];
  auto& s = *reinterpret_cast<Storage*>(raw);
  Tensor sA = make_tensor(make_smem_ptr(s.a), SA{});
  Tensor sB = make_tensor(make_smem_ptr(s.b), SB{});
  const int warp_group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
  if (threadIdx.x == 0) {
    CUTE_UNROLL
    for (int i = 0; i < 2; i++) {
      cutlass::arch::ClusterTransactionBarrier::init(&s.full[i], 1);
      cutlass::arch::ClusterBarrier::init(&s.empty[i], 256);
    }
  }
  cutlass::arch::fence_barrier_init();
  __syncthreads();
  const int k_tiles = K / 64;
  if (warp_group == 2) {
    if (threadIdx.x / 32 == 8 && elect_one_sync()) {
      auto ga = local_tile(la.get_tma_tensor(make_shape(M, K)), Shape<_64, _64>{}, make_coord(blockIdx.x, _));
      auto gb = local_tile(lb.get_tma_tensor(make_shape(N, K)), Shape<_128, _64>{}, make_coord(blockIdx.y, _));
      for (int k = 0; k < k_tiles; ++k) {
        const int slot = k & 1;
        const uint32_t parity = (k >> 1) & 1;
        cutlass::arch::ClusterBarrier::wait(&s.empty[slot], parity ^ 1);
        cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(&s.full[slot], sizeof(T) * (64 * 64 + 128 * 64));
        copy(la.with(s.full[slot]), la.get_slice(0).partition_S(ga)(_, _, _, k), la.get_slice(0).partition_D(sA)(_, _, _, slot));
        copy(lb.with(s.full[slot]), lb.get_slice(0).partition_S(gb)(_, _, _, k), lb.get_slice(0).partition_D(sB)(_, _, _, slot));
      }
    }
  } else {
    auto mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
    auto thr = mma.get_slice(threadIdx.x % 128);
    auto fA = thr.make_fragment_A(thr.partition_A(sA));
    auto fB = thr.make_fragment_B(thr.partition_B(sB));
    auto acc = partition_fragment_C(mma, Shape<_64, _128>{});
    clear(acc);
    if (warp_group == 1) cutlass::arch::NamedBarrier::arrive(256, 2);
    for (int k = 0; k < k_tiles; ++k) {
      const int slot = k & 1;
      cutlass::arch::ClusterTransactionBarrier::wait(&s.full[slot], (k >> 1) & 1);
      cutlass::arch::NamedBarrier::sync(128, 2 + warp_group);
      warpgroup_arrive();
      gemm(mma, fA(_, _, _, slot), fB(_, _, _, slot), acc);
      warpgroup_commit_batch();
      cutlass::arch::NamedBarrier::arrive(256, 2 + (warp_group ^ 1));
      warpgroup_wait<0>();
      cutlass::arch::ClusterBarrier::arrive(&s.empty[slot]);
    }
    if (warp_group == 0) cutlass::arch::NamedBarrier::sync(256, 2);
    for (int i = 0; i < size(acc); ++i) C[threadIdx.x * size(acc) + i] = acc(i);
  }
}
