





#include "tw_tile.cuh"

extern "C" __global__ void __launch_bounds__(128, 1) layernorm_kernel(
    const tw::u16* __restrict__ X_,
    const tw::u16* __restrict__ gamma_,
    const tw::u16* __restrict__ beta_,
    tw::u16* __restrict__ Y_,
    int M_,
    int N_,
    float eps_) {
  const int tid = threadIdx.x;
  const int m_ = int(blockIdx.x) * 4;
  tw::u32 x_[16];
  
  {
    const int at0 = m_ + tid / 32;
    const int left0 = M_ - at0;
    const int at1 = tid % 32 * 8;
    const int left1 = N_ - at1;
    const tw::u16* p = X_ + tw::i64(at0) * N_ + at1;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (0 < left0 && v * 256 < left1) tw::load_vector_nc<16>(&x_[v * 4], p + v * 256);
      else x_[v * 4] = x_[v * 4 + 1] = x_[v * 4 + 2] = x_[v * 4 + 3] = 0x0u;
    }
  }
  float x_2_[32];
  
#pragma unroll
  for (int v = 0; v < 32; ++v) {
    x_2_[v] = tw::bf16_at(x_[v / 2], v % 2);
  }
  float mu_[1];
  
  {
    float r0 = x_2_[0], r1 = x_2_[1], r2 = x_2_[2], r3 = x_2_[3];
#pragma unroll
    for (int v = 4; v < 32; v += 4) {
      r0 = r0 + x_2_[v];
      r1 = r1 + x_2_[v + 1];
      r2 = r2 + x_2_[v + 2];
      r3 = r3 + x_2_[v + 3];
    }
    r0 = r0 + r1;
    r2 = r2 + r3;
    r0 = r0 + r2;
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 1);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 2);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 4);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 8);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 16);
    mu_[0] = r0;
  }
  float mu_2_[1];
  
  mu_2_[0] = tw::div_full(mu_[0], float(N_));
  float centred_[32];
  
  if (1023 < N_) {
#pragma unroll
    for (int v = 0; v < 32; ++v) {
      centred_[v] = x_2_[v] - mu_2_[0];
    }
  } else {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      auto inside = [&](int v) { return (v % 8 + v / 8 * 256) < (N_ - (tid % 32 * 8)); };
      if (inside(u * 8) && inside(u * 8 + 7)) {
#pragma unroll
        for (int v = u * 8; v < u * 8 + 8; ++v) {
          centred_[v] = x_2_[v] - mu_2_[0];
        }
      } else {
#pragma unroll
        for (int v = u * 8; v < u * 8 + 8; ++v) {
          centred_[v] = (v % 8 + v / 8 * 256) < (N_ - (tid % 32 * 8)) ? (x_2_[v] - mu_2_[0]) : 0.0f;
        }
      }
    }
  }
  float sum_of_[32];
  
#pragma unroll
  for (int v = 0; v < 32; ++v) {
    sum_of_[v] = centred_[v] * centred_[v];
  }
  float variance_[1];
  
  {
    float r0 = sum_of_[0], r1 = sum_of_[1], r2 = sum_of_[2], r3 = sum_of_[3];
#pragma unroll
    for (int v = 4; v < 32; v += 4) {
      r0 = r0 + sum_of_[v];
      r1 = r1 + sum_of_[v + 1];
      r2 = r2 + sum_of_[v + 2];
      r3 = r3 + sum_of_[v + 3];
    }
    r0 = r0 + r1;
    r2 = r2 + r3;
    r0 = r0 + r2;
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 1);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 2);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 4);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 8);
    r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 16);
    variance_[0] = r0;
  }
  float variance_2_[1];
  
  variance_2_[0] = tw::div_full(variance_[0], float(N_));
  float scale_[1];
  
  scale_[0] = rsqrtf(variance_2_[0] + eps_);
  tw::u32 g_[16];
  
  {
    const int at0 = tid % 32 * 8;
    const int left0 = N_ - at0;
    const tw::u16* p = gamma_ + at0;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 256 < left0) tw::load_vector_nc<16>(&g_[v * 4], p + v * 256);
      else g_[v * 4] = g_[v * 4 + 1] = g_[v * 4 + 2] = g_[v * 4 + 3] = 0x0u;
    }
  }
  float g_2_[32];
  
#pragma unroll
  for (int v = 0; v < 32; ++v) {
    g_2_[v] = tw::bf16_at(g_[v / 2], v % 2);
  }
  tw::u32 b_[16];
  
  {
    const int at0 = tid % 32 * 8;
    const int left0 = N_ - at0;
    const tw::u16* p = beta_ + at0;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (v * 256 < left0) tw::load_vector_nc<16>(&b_[v * 4], p + v * 256);
      else b_[v * 4] = b_[v * 4 + 1] = b_[v * 4 + 2] = b_[v * 4 + 3] = 0x0u;
    }
  }
  float b_2_[32];
  
#pragma unroll
  for (int v = 0; v < 32; ++v) {
    b_2_[v] = tw::bf16_at(b_[v / 2], v % 2);
  }
  tw::u32 stored_[16];
  
#pragma unroll
  for (int v = 0; v < 16; ++v) {
    stored_[v] = tw::pack_bf16(((centred_[2 * v] * scale_[0]) * g_2_[2 * v]) + b_2_[2 * v], ((centred_[2 * v + 1] * scale_[0]) * g_2_[2 * v + 1]) + b_2_[2 * v + 1]);
  }
  
  {
    const int at0 = m_ + tid / 32;
    const int left0 = M_ - at0;
    const int at1 = tid % 32 * 8;
    const int left1 = N_ - at1;
    tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      if (0 < left0 && v * 256 < left1) tw::store_vector<16>(p + v * 256, &stored_[v * 4]);
    }
  }
}
