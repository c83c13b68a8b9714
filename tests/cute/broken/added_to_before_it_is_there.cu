// expect: TW4608 without a barrier
#include <cute/tensor.hpp>
using namespace cute;
// The first sums are stored by all threads; without a barrier the additions may come first.
__global__ void __launch_bounds__(256) k(float* y) {
  __shared__ float sums[256];
  sums[threadIdx.x] = y[threadIdx.x];
  if (threadIdx.x < 32) sums[threadIdx.x * 8] += 1.0f;
  __syncthreads();
  y[threadIdx.x] = sums[threadIdx.x];
}
