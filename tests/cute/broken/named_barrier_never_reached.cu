// expect: TW4610 never ends
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
// Two warpgroups hand tiles to one another through shared memory, with named barriers.
using L = Layout<Shape<_128, _32>, Stride<_33, _1>>;
__global__ void __launch_bounds__(256) handover(float const* in, float* out, int tiles) {
  __shared__ alignas(16) float buffer[cosize_v<L>];
  Tensor s = make_tensor(make_smem_ptr(buffer), L{});
  int const wg = threadIdx.x / 128;
  int const t = threadIdx.x % 128;
  if (wg == 0) {
    for (int i = 0; i < tiles; ++i) {
      cutlass::arch::NamedBarrier::sync(256, 1);
      for (int c = 0; c < 32; ++c) s(t, c) = in[(i * 128 + t) * 32 + c];
      cutlass::arch::NamedBarrier::arrive(256, 2);
    }
  } else {
    for (int i = 0; i < tiles; ++i) {
      cutlass::arch::NamedBarrier::sync(256, 2);
      float sum = 0;
      for (int r = 0; r < 128; ++r) sum += s(r, t % 32);
      out[i * 128 + t] = sum;
      if (i + 1 < tiles) cutlass::arch::NamedBarrier::arrive(256, 1);
    }
  }
}
