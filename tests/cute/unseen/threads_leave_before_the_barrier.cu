// not analysed: threads leave
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k(float* X, int n) {
  __shared__ float s[128];
  if (threadIdx.x >= 100) return;
  s[threadIdx.x] = X[threadIdx.x];
  __syncthreads();
  X[threadIdx.x] = s[99 - threadIdx.x];
}
