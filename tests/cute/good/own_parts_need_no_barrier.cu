// Threads that touch only their own elements of shared memory: a part of local_partition, a row by their number, a walk in steps of the block.
#include <cute/tensor.hpp>
using namespace cute;
using Rows = Layout<Shape<_128, _8>, Stride<_9, _1>>;
__global__ void __launch_bounds__(128) own_parts(float* X, int n) {
  __shared__ float tile[32 * 32];
  __shared__ float rows[cosize_v<Rows>];
  __shared__ float sums[1024];
  Tensor sT = make_tensor(make_smem_ptr(tile), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
  Tensor sR = make_tensor(make_smem_ptr(rows), Rows{});
  Tensor mine = local_partition(sT, Layout<Shape<_4, _32>, Stride<_32, _1>>{}, threadIdx.x);
  Tensor r = make_fragment_like(mine);
  int const tx = threadIdx.x;
  for (int b = blockIdx.x; b < n; b += gridDim.x) {
    copy(r, mine);
    copy(mine, r);
    for (int c = 0; c < 8; ++c) sR(tx, c) = X[b * 1024 + c * 128 + tx];
    for (int c = 0; c < 8; ++c) X[b * 1024 + c * 128 + tx] = 2 * sR(tx, c);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) sums[i] = X[i];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) sums[i] = sums[i] + 1;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) X[i] = sums[i];
  }
}
