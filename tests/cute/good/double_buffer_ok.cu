#include <cute/tensor.hpp>
using namespace cute;
constexpr int kT = 128;
__global__ void __launch_bounds__(kT) k(float const* X, float* Y, int n) {
  extern __shared__ char raw[];
  float* buf = reinterpret_cast<float*>(raw);
  auto L = make_layout(make_shape(Int<128>{}, Int<2>{}));
  Tensor s = make_tensor(make_smem_ptr(buf), L);
  int stage = 0;
  for (int i = 0; i < n; ++i) {
    s(threadIdx.x, stage) = X[i * 128 + threadIdx.x];
    __syncthreads();
    Y[i * 128 + threadIdx.x] = s(127 - threadIdx.x, stage);
    stage ^= 1;
  }
}
