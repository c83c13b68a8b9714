// expect: TW4613 turn of a loop
#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k(float* X, int n) {
  __shared__ float s[128];
  for (int i = threadIdx.x; i < n; i += 128) {
    s[threadIdx.x] = X[i];
    __syncthreads();
    X[i] = s[127 - threadIdx.x];
    __syncthreads();
  }
}
