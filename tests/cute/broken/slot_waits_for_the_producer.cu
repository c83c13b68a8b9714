// expect: TW4610 initialised for 160 arrivals, and its phase gets 128
// Only the consumers' 128 of 160 threads store; the fifth warp brings rows by TMA.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using Row = Layout<Shape<_32, _128>, Stride<_128, _1>>;
template <class TL>
__global__ void __launch_bounds__(160) scale(CUTE_GRID_CONSTANT TL const tl, float* y, int M, float f) {
  __shared__ alignas(128) float tile[2 * 32 * 128];
  __shared__ uint64_t full[2];
  __shared__ uint64_t empty[2];
  Tensor s0 = make_tensor(make_smem_ptr(tile), Layout<Shape<_32, _128, _2>, Stride<_128, _1, Int<4096>>>{});
  int warp = cutlass::canonical_warp_idx_sync();
  if (warp == 4 && elect_one_sync()) {
    for (int i = 0; i < 2; ++i) { initialize_barrier(full[i], 1); initialize_barrier(empty[i], 160); }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  int tiles = M / 32;
  if (warp == 4) {
    if (elect_one_sync()) {
      auto g = local_tile(tl.get_tma_tensor(make_shape(M, 128)), Shape<_32, _128>{}, make_coord(_, 0));
      auto ts = tl.get_slice(0);
      auto tg = ts.partition_S(g);
      auto td = ts.partition_D(s0);
      for (int i = 0; i < tiles; ++i) {
        wait_barrier(empty[i % 2], (i / 2 + 1) % 2);
        set_barrier_transaction_bytes(full[i % 2], 32 * 128 * 4);
        copy(tl.with(full[i % 2]), tg(_, _, _, i), td(_, _, _, i % 2));
      }
    }
    return;
  }
  auto out = make_tiled_copy(Copy_Atom<UniversalCopy<uint128_t>, float>{}, Layout<Shape<_4, _32>, Stride<_32, _1>>{}, Layout<Shape<_1, _4>>{});
  auto to = out.get_slice(threadIdx.x);
  for (int i = 0; i < tiles; ++i) {
    wait_barrier(full[i % 2], (i / 2) % 2);
    Tensor part = to.partition_S(s0(_, _, i % 2));
    Tensor r = make_fragment_like(part);
    copy(out, part, r);
    arrive_barrier(empty[i % 2]);
    for (int j = 0; j < size(r); ++j) r(j) *= f;
    Tensor gy = make_tensor(make_gmem_ptr(y + i * 32 * 128), Row{});
    copy(out, r, to.partition_D(gy));
  }
}
