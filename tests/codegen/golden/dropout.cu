



#include "tw_tile.cuh"

extern "C" __global__ void __launch_bounds__(128, 8) dropout_kernel(
    const tw::u16* __restrict__ X_,
    tw::u16* __restrict__ Y_,
    int N_,
    float p_,
    float scale_,
    int seed0_,
    int seed1_,
    int offset0_,
    int offset1_) {
  const int tid = threadIdx.x;
  const int i_ = int(blockIdx.x) * 1024;
  tw::u32 x_[4];
  
  {
    const int at0 = i_ + tid * 8;
    const int left0 = N_ - at0;
    const tw::u16* p = X_ + at0;
    if (N_ - i_ >= 1024) {
      tw::load_vector_nc<16>(&x_[0], p);
    } else {
      tw::load_some<8>(&x_[0], p, left0, tw::u16(0));
    }
  }
  float x_2_[8];
  
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    x_2_[v] = tw::bf16_at(x_[v / 2], v % 2);
  }
  tw::u32 bits_[8];
  
#pragma unroll
  for (int v = 0; v < 8; ++v) {
    bits_[v] = tw::philox(tw::u32(seed0_), tw::u32(seed1_), tw::u32((((tid * 8) / 4) + (v / 4)) + (i_ / 4)), 0, tw::u32(offset0_), tw::u32(offset1_), tw::u32(tw::remainder<int>(v, 4)));
  }
  tw::u32 stored_[4];
  
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    stored_[v] = tw::pack_bf16((float(tw::quotient<tw::u32>(bits_[2 * v], 256)) * 5.96046448e-08f) < p_ ? 0.0f : (x_2_[2 * v] * scale_), (float(tw::quotient<tw::u32>(bits_[2 * v + 1], 256)) * 5.96046448e-08f) < p_ ? 0.0f : (x_2_[2 * v + 1] * scale_));
  }
  
  {
    const int at0 = i_ + tid * 8;
    const int left0 = N_ - at0;
    tw::u16* p = Y_ + at0;
    if (N_ - i_ >= 1024) {
      tw::store_vector<16>(p, &stored_[0]);
    } else {
      tw::store_some<8>(p, &stored_[0], left0);
    }
  }
}
