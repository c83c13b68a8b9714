// expect: TW4608 .
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(256) k(float* X) {
  __shared__ float red[256];
  red[threadIdx.x] = X[threadIdx.x];
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
  }
  X[0] = red[0];
}
