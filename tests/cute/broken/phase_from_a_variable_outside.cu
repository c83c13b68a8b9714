// expect: TW4610 .
#include <cute/tensor.hpp>
using namespace cute;
__global__ void k(int n) {
  __shared__ uint64_t full[4];
  if (threadIdx.x == 0) { cutlass::arch::ClusterTransactionBarrier::init(&full[0], 1); }
  __syncthreads();
  int phase = 0;
  while (n-- > 0) { cutlass::arch::ClusterTransactionBarrier::wait(&full[0], phase); }
}
