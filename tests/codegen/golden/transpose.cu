// transpose for sm_80, made by tilewright from kernels/transpose.py.
// One element of padding a row keeps column reads free of bank conflicts.
// computes Y[n, m] = X[m, n]
// with BM = 32, BN = 32
#include "tw_tile.cuh"

constexpr tw::u32 AT_s_ = 0;  // 4224 bytes of f32

extern "C" __global__ void __launch_bounds__(256, 1) transpose_kernel(
    const float* __restrict__ X_,
    float* __restrict__ Y_,
    int M_,
    int N_) {
  extern __shared__ __align__(1024) char arena[];
  const tw::u32 smem = tw::smem_addr(arena);
  const int tid = threadIdx.x;
  float loaded_[4];
  // %loaded = load X[(block.y * 32):+32, (block.x * 32):+32] fill=0 vec=4B   kernels/transpose.py:13
  {
    const int at0 = int(blockIdx.y) * 32 + tid / 32;
    const int left0 = M_ - at0;
    const int at1 = int(blockIdx.x) * 32 + tid % 32;
    const int left1 = N_ - at1;
    const float* p = X_ + tw::i64(at0) * N_ + at1;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 8 < left0 && 0 < left1) tw::load_vector_nc<4>(&loaded_[v], p + tw::i64(v * 8) * N_);
      else loaded_[v] = 0.0f;
    }
  }
  // store_shared s[0:+32, 0:+32] = %loaded vec=4B   kernels/transpose.py:13
  {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      tw::store_vector<4>(arena + AT_s_ + tid % 32 * 4 + tid / 32 * 132 + v * 1056, &loaded_[v]);
    }
  }
  __syncthreads();
  float loaded_2_[4];
  // %loaded_2 = load_shared s[0:+32, 0:+32].permuted(1,0) vec=4B   kernels/transpose.py:15
  {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      tw::load_vector<4>(&loaded_2_[v], arena + AT_s_ + tid % 32 * 132 + tid / 32 * 4 + v * 32);
    }
  }
  // store Y[(block.x * 32):+32, (block.y * 32):+32] = %loaded_2 vec=4B   kernels/transpose.py:15
  {
    const int at0 = int(blockIdx.x) * 32 + tid / 32;
    const int left0 = N_ - at0;
    const int at1 = int(blockIdx.y) * 32 + tid % 32;
    const int left1 = M_ - at1;
    float* p = Y_ + tw::i64(at0) * M_ + at1;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 8 < left0 && 0 < left1) tw::store_vector<4>(p + tw::i64(v * 8) * M_, &loaded_2_[v]);
    }
  }
}
