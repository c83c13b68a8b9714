// not analysed: lie over one another
#include <cute/tensor.hpp>
using namespace cute;
using S = Layout<Shape<_64, _32>, Stride<_32, _1>>;
__global__ void __launch_bounds__(128) k(float const* A, float* C) {
  extern __shared__ char raw[];
  Tensor sA = make_tensor(make_smem_ptr(reinterpret_cast<float*>(raw)), S{});
  Tensor sB = make_tensor(make_smem_ptr(reinterpret_cast<float*>(raw + 4096)), S{});
  for (int i = threadIdx.x; i < 2048; i += 128) sA(i) = A[i];
  for (int i = threadIdx.x; i < 2048; i += 128) sB(i) = A[i + 2048];
  __syncthreads();
  C[threadIdx.x] = sA(threadIdx.x % 64, 0) + sB(threadIdx.x % 64, 1);
}
