// vector_add for sm_80, made by tilewright from kernels/vector_add.py.
// One block adds BLOCK elements; the last block is masked at the end of the tensors.
// computes C[i] = A[i] + B[i]
// with BLOCK = 1024
#include "tw_tile.cuh"

extern "C" __global__ void __launch_bounds__(256, 1) vector_add_kernel(
    const float* __restrict__ A_,
    const float* __restrict__ B_,
    float* __restrict__ C_,
    int N_) {
  const int tid = threadIdx.x;
  const int i_ = int(blockIdx.x) * 1024;
  float a_[4];
  // %a = load A[i:+1024] fill=0 vec=16B   kernels/vector_add.py:12
  {
    const int at0 = i_ + tid * 4;
    const int left0 = N_ - at0;
    const float* p = A_ + at0;
    if (N_ - i_ >= 1024) {
      tw::load_vector_nc<16>(&a_[0], p);
    } else {
      tw::load_some<4>(&a_[0], p, left0, 0.0f);
    }
  }
  float b_[4];
  // %b = load B[i:+1024] fill=0 vec=16B   kernels/vector_add.py:13
  {
    const int at0 = i_ + tid * 4;
    const int left0 = N_ - at0;
    const float* p = B_ + at0;
    if (N_ - i_ >= 1024) {
      tw::load_vector_nc<16>(&b_[0], p);
    } else {
      tw::load_some<4>(&b_[0], p, left0, 0.0f);
    }
  }
  float stored_[4];
  // %stored = add(%a<0>, %b<0>)   kernels/vector_add.py:14
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    stored_[v] = a_[v] + b_[v];
  }
  // store C[i:+1024] = %stored vec=16B   kernels/vector_add.py:14
  {
    const int at0 = i_ + tid * 4;
    const int left0 = N_ - at0;
    float* p = C_ + at0;
    if (N_ - i_ >= 1024) {
      tw::store_vector<16>(p, &stored_[0]);
    } else {
      tw::store_some<4>(p, &stored_[0], left0);
    }
  }
}
