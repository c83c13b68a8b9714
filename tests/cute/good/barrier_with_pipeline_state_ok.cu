#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(uint64_t* b, int n) {
  __shared__ uint64_t full[4];
  if (threadIdx.x == 0) { for (int i = 0; i < 4; ++i) cutlass::arch::ClusterTransactionBarrier::init(&full[i], 1); }
  __syncthreads();
  for (int i = 0; i < n; ++i) { cutlass::arch::ClusterTransactionBarrier::wait(&full[i % 4], (i / 4) % 2); }
}
