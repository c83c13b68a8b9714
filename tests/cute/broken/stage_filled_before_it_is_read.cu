// expect: TW4610 .
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;

using Product = TiledMMA<MMA_Atom<SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>>, Layout<Shape<_1, _1, _1>>>;

// One warpgroup brings tiles by TMA, another multiplies them; four stages with two mbarriers each.
template <class TmaA, class TmaB, class TmaC>
__global__ void __launch_bounds__(256) roles(CUTE_GRID_CONSTANT TmaA const tmaA, CUTE_GRID_CONSTANT TmaB const tmaB, CUTE_GRID_CONSTANT TmaC const tmaC, int M, int N, int K) {
  extern __shared__ __align__(1024) char arena[];
  Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<bfloat16_t*>(arena + 0)), make_composed_layout(Swizzle<3, 4, 3>{}, smem_ptr_flag_bits<16>{}, Layout<Shape<_4, _64, _64>, Stride<_4096, _64, _1>>{}));
  Tensor sB = make_tensor(make_smem_ptr(reinterpret_cast<bfloat16_t*>(arena + 32768)), make_composed_layout(Swizzle<3, 4, 3>{}, smem_ptr_flag_bits<16>{}, Layout<Shape<_4, _128, _64>, Stride<_8192, _64, _1>>{}));
  Tensor sC = make_tensor(make_smem_ptr(reinterpret_cast<float*>(arena + 98304)), Layout<Shape<_64, _128>, Stride<_128, _1>>{});
  auto* full = reinterpret_cast<uint64_t*>(arena + 131072);
  auto* empty = reinterpret_cast<uint64_t*>(arena + 131104);
  int const warp = cutlass::canonical_warp_idx_sync();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 4; ++s) {
      cutlass::arch::ClusterTransactionBarrier::init(&full[s], 1);
      cutlass::arch::ClusterTransactionBarrier::init(&empty[s], 1);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (warp < 4) {
    if (warp == 0 && elect_one_sync()) {
      int slot = 0, phase = 0;
      for (int k = 0; k < K / 64; ++k) {
        cutlass::arch::ClusterTransactionBarrier::arrive_and_expect_tx(&full[slot], 24576);
        {
          auto block = tmaA.get_slice(0);
          copy(tmaA.with(full[slot]), block.partition_S(local_tile(tmaA.get_tma_tensor(make_shape(M, K)), Shape<_64, _64>{}, make_coord(0, k))), block.partition_D(sA(slot, _, _)));
        }
        {
          auto block = tmaB.get_slice(0);
          copy(tmaB.with(full[slot]), block.partition_S(local_tile(tmaB.get_tma_tensor(make_shape(N, K)), Shape<_128, _64>{}, make_coord(0, k))), block.partition_D(sB(slot, _, _)));
        }
        if (++slot == 4) slot = 0, phase ^= 1;
      }
    }
  } else {
    int const thread_of_role = int(threadIdx.x) % 128;
    Tensor acc = partition_fragment_C(Product{}, Shape<_64, _128>{});
    clear(acc);
    int slot = 0, phase = 0;
    for (int k = 0; k < K / 64; ++k) {
      wait_barrier(full[slot], phase);
      warpgroup_arrive();
      {
        Product product;
        auto thread = product.get_slice(thread_of_role);
        Tensor a = thread.make_fragment_A(thread.partition_A(sA(slot, _, _)));
        Tensor b = thread.make_fragment_B(thread.partition_B(sB(slot, _, _)));
        gemm(product, a, b, acc);
      }
      warpgroup_commit_batch();
      warpgroup_wait<0>();
      if (thread_of_role == 0) cutlass::arch::ClusterTransactionBarrier::arrive(&empty[slot]);
      if (++slot == 4) slot = 0, phase ^= 1;
    }
    for (int i = 0; i < size(acc); ++i) sC(i, thread_of_role) = acc(i);
    cutlass::arch::fence_view_async_shared();
    cutlass::arch::NamedBarrier::sync(128, 1);
    if (thread_of_role == 0) {
      auto block = tmaC.get_slice(0);
      copy(tmaC, block.partition_S(sC), block.partition_D(tmaC.get_tma_tensor(make_shape(M, N))));
      tma_store_arrive();
      tma_store_wait<0>();
    }
  }
}

void launch(bfloat16_t const* a, bfloat16_t const* b, float* c, int M, int N, int K) {
  Tensor A = make_tensor(make_gmem_ptr(a), make_shape(M, K), make_stride(int64_t(K), Int<1>{}));
  Tensor B = make_tensor(make_gmem_ptr(b), make_shape(N, K), make_stride(int64_t(K), Int<1>{}));
  Tensor C = make_tensor(make_gmem_ptr(c), make_shape(M, N), make_stride(int64_t(N), Int<1>{}));
  auto tmaA = make_tma_copy(SM90_TMA_LOAD{}, A, make_composed_layout(Swizzle<3, 4, 3>{}, smem_ptr_flag_bits<16>{}, Layout<Shape<_64, _64>, Stride<_64, _1>>{}));
  auto tmaB = make_tma_copy(SM90_TMA_LOAD{}, B, make_composed_layout(Swizzle<3, 4, 3>{}, smem_ptr_flag_bits<16>{}, Layout<Shape<_128, _64>, Stride<_64, _1>>{}));
  auto tmaC = make_tma_copy(SM90_TMA_STORE{}, C, Layout<Shape<_64, _128>, Stride<_128, _1>>{});
  roles<<<1, 256, 131136>>>(tmaA, tmaB, tmaC, M, N, K);
}
