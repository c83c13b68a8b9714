// vector_add for sm_80, made by tilewright from kernels/vector_add.py.
// One block adds BLOCK elements; the last block is masked at the end of the tensors.
// computes C[i] = A[i] + B[i]
// with BLOCK = 1024
#include "tw_tile.cuh"

extern "C" __global__ void __launch_bounds__(256, 1) vector_add(
    const float* __restrict__ A,
    const float* __restrict__ B,
    float* __restrict__ C,
    int N) {
  const int tid = threadIdx.x;
  const int i = int(blockIdx.x) * 1024;
  float a[4];
  // %a = load A[i:+1024] fill=0 vec=16B   kernels/vector_add.py:12
  {
    const int at0 = i + tid * 4;
    const int left0 = N - at0;
    const float* p = A + at0;
    if (N - i >= 1024) {
      tw::load_vector_nc<16>(&a[0], p);
    } else {
      tw::load_some<4>(&a[0], p, left0, 0.0f);
    }
  }
  float b[4];
  // %b = load B[i:+1024] fill=0 vec=16B   kernels/vector_add.py:13
  {
    const int at0 = i + tid * 4;
    const int left0 = N - at0;
    const float* p = B + at0;
    if (N - i >= 1024) {
      tw::load_vector_nc<16>(&b[0], p);
    } else {
      tw::load_some<4>(&b[0], p, left0, 0.0f);
    }
  }
  float stored[4];
  // %stored = add(%a<0>, %b<0>)   kernels/vector_add.py:14
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    stored[v] = a[v] + b[v];
  }
  // store C[i:+1024] = %stored vec=16B   kernels/vector_add.py:14
  {
    const int at0 = i + tid * 4;
    const int left0 = N - at0;
    float* p = C + at0;
    if (N - i >= 1024) {
      tw::store_vector<16>(p, &stored[0]);
    } else {
      tw::store_some<4>(p, &stored[0], left0);
    }
  }
}
