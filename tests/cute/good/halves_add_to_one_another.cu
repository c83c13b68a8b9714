#include <cute/tensor.hpp>
using namespace cute;
// Two halves of the block exchange sums: each adds to elements that no other thread touches before the next barrier, and a warp reads what its own lanes wrote.
__global__ void __launch_bounds__(256) k(float* y) {
  __shared__ float sums[256];
  int half = threadIdx.x / 128, row = threadIdx.x % 128;
  float mine[2] = {1.0f, 2.0f};
  if (row % 4 == 0) {
    sums[row / 4 + half * 64] = mine[0];
    sums[row / 4 + 32 + half * 64] = mine[1];
  }
  __syncthreads();
  if (half == 0) {
    mine[0] += sums[row / 4 + 64];
    mine[1] += sums[row / 4 + 32 + 64];
  } else {
    if (row % 4 == 0) {
      sums[row / 4] += mine[0];
      sums[row / 4 + 32] += mine[1];
    }
    __syncwarp();
    mine[0] = sums[row / 4];
    mine[1] = sums[row / 4 + 32];
  }
  y[threadIdx.x] = mine[0] + mine[1];
}
