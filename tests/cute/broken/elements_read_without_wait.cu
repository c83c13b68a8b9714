// expect: TW4610 .
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
// A tile in by TMA, transposed by the threads, out by TMA.
using In = Layout<Shape<_64, _64>, Stride<_64, _1>>;
struct SM { alignas(128) float in[64 * 64]; alignas(128) float out[64 * 64]; cutlass::arch::ClusterTransactionBarrier bar; };
template <class L, class S>
__global__ __launch_bounds__(256) void tr(CUTE_GRID_CONSTANT L const load, CUTE_GRID_CONSTANT S const store, int M, int N) {
  __shared__ SM sm;
  Tensor sIn = make_tensor(make_smem_ptr(sm.in), In{});
  Tensor sOut = make_tensor(make_smem_ptr(sm.out), In{});
  if (threadIdx.x == 0) {
    sm.bar.init(1);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    sm.bar.arrive_and_expect_tx(64 * 64 * sizeof(float));
    auto g = local_tile(load.get_tma_tensor(make_shape(M, N)), Shape<_64, _64>{}, make_coord(blockIdx.x, blockIdx.y));
    auto t = load.get_slice(0);
    copy(load.with(reinterpret_cast<uint64_t&>(sm.bar)), t.partition_S(g), t.partition_D(sIn));
  }
  for (int i = threadIdx.x; i < 4096; i += 256) sOut(i % 64, i / 64) = sIn(i / 64, i % 64);
  tma_store_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    auto g = local_tile(store.get_tma_tensor(make_shape(N, M)), Shape<_64, _64>{}, make_coord(blockIdx.y, blockIdx.x));
    auto t = store.get_slice(0);
    copy(store, t.partition_S(sOut), t.partition_D(g));
    tma_store_arrive();
  }
  tma_store_wait<0>();
}
