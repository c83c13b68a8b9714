// expect: TW4608 without a barrier
#include <cute/tensor.hpp>
using namespace cute;

template <class T> __device__ void async_log(T) {}

__global__ void __launch_bounds__(128) k(float* X) {
  __shared__ float s[128];
  s[threadIdx.x] = X[threadIdx.x];
  async_log(0);
  X[threadIdx.x] = s[127 - threadIdx.x];
}
