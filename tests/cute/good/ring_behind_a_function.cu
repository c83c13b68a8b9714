// Stages that a function gives, a phase that a function flips, a predicate with stride 0, cluster barriers.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using T = half_t;
using L = Layout<Shape<_64, _64>, Stride<_64, _1>>;
template <class Tile>
CUTE_DEVICE void wait_full(uint64_t* full, int stage, int& phase, Tile const& tile) {
  wait_barrier(full[stage], phase);
  if (stage == 1) phase ^= 1;
}
template <class Tma>
__global__ void __launch_bounds__(128) ring(CUTE_GRID_CONSTANT Tma const tma, T* Y, int tiles) {
  extern __shared__ __align__(1024) char raw[];
  __shared__ uint64_t full[2];
  T* base = reinterpret_cast<T*>(raw);
  auto place = [&](int stage) { return base + stage * 4096; };
  auto load = [&](int t, int stage) {
    Tensor d = make_tensor(make_smem_ptr(place(stage)), L{});
    Tensor g = local_tile(tma.get_tma_tensor(make_shape(tiles * 64, 64)), Shape<_64, _64>{}, make_coord(t, 0));
    set_barrier_transaction_bytes(full[stage], 8192);
    copy(tma.with(full[stage]), tma.get_slice(0).partition_S(g), tma.get_slice(0).partition_D(d));
  };
  Tensor pred = make_tensor<bool>(make_shape(_1{}, _8{}), Stride<_1, _0>{});
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) initialize_barrier(full[s], 1);
  }
  cluster_arrive_relaxed();
  cluster_wait();
  if (threadIdx.x == 0) {
    for (int s = 0; s < 2; ++s) load(s, s);
  }
  int phase = 0;
  for (int t = 0; t < tiles; ++t) {
    int stage = t % 2;
    Tensor now = make_tensor(make_smem_ptr(place(stage)), L{});
    wait_full(full, stage, phase, now);
    Y[t * 128 + threadIdx.x] = now(threadIdx.x % 64, threadIdx.x / 64);
    __syncthreads();
    if (threadIdx.x == 0 && t + 2 < tiles) load(t + 2, stage);
  }
}
