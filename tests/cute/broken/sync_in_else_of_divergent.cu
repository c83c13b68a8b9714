// expect: TW4613 .
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(float* X) {
  __shared__ float s[32];
  if (threadIdx.x == 0) { s[0] = X[0]; } else { __syncthreads(); }
}
