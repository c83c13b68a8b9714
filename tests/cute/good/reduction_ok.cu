#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(256) k(float* X) {
  __shared__ float red[256];
  red[threadIdx.x] = X[threadIdx.x];
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    float v = red[threadIdx.x + s];
    __syncthreads();
    red[threadIdx.x] = red[threadIdx.x] + v;
    __syncthreads();
  }
  X[0] = red[0];
}
