





#include "tw_tile.cuh"

constexpr tw::u32 AT_sA_ = 0;  
constexpr tw::u32 AT_sB_ = 12288;  

extern "C" __global__ void __launch_bounds__(128, 1) grouped_gemm_kernel(
    const tw::u16* __restrict__ X_,
    const tw::u16* __restrict__ W_,
    const int* __restrict__ rows_,
    const int* __restrict__ expert_,
    const int* __restrict__ tile_first_,
    const int* __restrict__ tile_end_,
    tw::u16* __restrict__ Y_,
    int T_,
    int K_,
    int E_,
    int N_,
    int P_,
    int TILES_) {
  extern __shared__ __align__(1024) char arena[];
  const tw::u32 smem = tw::smem_addr(arena);
  if (smem % 1024 != 0) __trap();  
  const int tid = threadIdx.x;
  const int first_ = int(tile_first_[int(blockIdx.x)]);
  const int end_ = int(tile_end_[int(blockIdx.x)]);
  const int e_ = int(expert_[first_]);
  int token_[2];
  
  {
    const int at0 = first_ + tid / 4;
    const int left0 = min(P_, end_) - at0;
    const int* p = rows_ + at0;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      if (v * 32 < left0) tw::load_vector_nc<4>(&token_[v], p + v * 32);
      else token_[v] = 0;
    }
  }
  float acc_[64];
  
#pragma unroll
  for (int v = 0; v < 64; ++v) {
    acc_[v] = 0.0f;
  }
  const int steps_ = (K_ + 31) / 32;
  
  {
    const int left0 = T_;
    const int at1 = tid % 4 * 8;
    const int left1 = K_ - at1;
    const tw::u16* p = X_ + at1;
    const tw::u32 row = tw::swizzle<2>(tid * 16);
    const tw::u32 base = AT_sA_;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      tw::cp_async_16_zfill(smem + base + row + v * 2048, p + tw::i64(token_[v]) * K_, tw::u32(token_[v]) < tw::u32(left0) && 0 < left1 ? 16 : 0);
    }
  }
  
  {
    const int at0 = int(blockIdx.y) * 128 + tid / 4;
    const int left0 = N_ - at0;
    const int at1 = tid % 4 * 8;
    const int left1 = K_ - at1;
    const tw::u16* p = W_ + tw::i64(at0) * K_ + at1 + tw::i64(e_) * (tw::i64(K_) * N_);
    const tw::u32 row = tw::swizzle<2>(tid * 16);
    const tw::u32 base = AT_sB_;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      tw::cp_async_16_zfill(smem + base + row + v * 2048, p + tw::i64(v * 32) * K_, v * 32 < left0 && 0 < left1 ? 16 : 0);
    }
  }
  tw::cp_async_commit();
  
  {
    const int left0 = T_;
    const int at1 = 32 + tid % 4 * 8;
    const int left1 = K_ - at1;
    const tw::u16* p = X_ + at1;
    const tw::u32 row = tw::swizzle<2>(tid * 16);
    const tw::u32 base = AT_sA_;
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      tw::cp_async_16_zfill(smem + base + row + v * 2048 + 4096, p + tw::i64(token_[v]) * K_, tw::u32(token_[v]) < tw::u32(left0) && 0 < left1 ? 16 : 0);
    }
  }
  
  {
    const int at0 = int(blockIdx.y) * 128 + tid / 4;
    const int left0 = N_ - at0;
    const int at1 = 32 + tid % 4 * 8;
    const int left1 = K_ - at1;
    const tw::u16* p = W_ + tw::i64(at0) * K_ + at1 + tw::i64(e_) * (tw::i64(K_) * N_);
    const tw::u32 row = tw::swizzle<2>(tid * 16);
    const tw::u32 base = AT_sB_;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      tw::cp_async_16_zfill(smem + base + row + v * 2048 + 8192, p + tw::i64(v * 32) * K_, v * 32 < left0 && 0 < left1 ? 16 : 0);
    }
  }
  tw::cp_async_commit();
  for (int kt_ = 0; kt_ < steps_; ++kt_) {
    tw::cp_async_wait<1>();
    __syncthreads();
    const int nxt_ = (kt_ + 3) - 1;
    if (nxt_ < steps_) {
      
      {
        const int left0 = T_;
        const int at1 = nxt_ * 32 + tid % 4 * 8;
        const int left1 = K_ - at1;
        const tw::u16* p = X_ + at1;
        const tw::u32 row = tw::swizzle<2>(tid * 16);
        const tw::u32 base = AT_sA_ + (nxt_ % 3) * 4096;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::cp_async_16_zfill(smem + base + row + v * 2048, p + tw::i64(token_[v]) * K_, tw::u32(token_[v]) < tw::u32(left0) && 0 < left1 ? 16 : 0);
        }
      }
      
      {
        const int at0 = int(blockIdx.y) * 128 + tid / 4;
        const int left0 = N_ - at0;
        const int at1 = nxt_ * 32 + tid % 4 * 8;
        const int left1 = K_ - at1;
        const tw::u16* p = W_ + tw::i64(at0) * K_ + at1 + tw::i64(e_) * (tw::i64(K_) * N_);
        const tw::u32 row = tw::swizzle<2>(tid * 16);
        const tw::u32 base = AT_sB_ + (nxt_ % 3) * 8192;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::cp_async_16_zfill(smem + base + row + v * 2048, p + tw::i64(v * 32) * K_, v * 32 < left0 && 0 < left1 ? 16 : 0);
        }
      }
    }
    tw::cp_async_commit();
    const int slot_ = kt_ % 3;
    tw::u32 a_[8];
    
    {
      const tw::u32 row = tw::swizzle<2>(tid % 16 * 64 + tid / 16 % 2 * 16 + tid / 32 % 2 * 2048);
      const tw::u32 base = AT_sA_ + slot_ * 4096;
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        tw::ldmatrix_x4(a_[v * 4], a_[v * 4 + 1], a_[v * 4 + 2], a_[v * 4 + 3], smem + base + row + v * 1024);
      }
    }
    tw::u32 b_[16];
    
    {
      const tw::u32 row = tw::swizzle<2>(tid % 8 * 64 + tid / 8 % 2 * 16 + tid / 16 % 2 * 512 + tid / 64 * 4096);
      const tw::u32 base = AT_sB_ + slot_ * 8192;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        tw::ldmatrix_x4(b_[v * 4], b_[v * 4 + 1], b_[v * 4 + 2], b_[v * 4 + 3], smem + base + row + v * 1024);
      }
    }
    
#pragma unroll
    for (int v = 0; v < 16; ++v) {
      tw::mma_m16n8k16_bf16(reinterpret_cast<float(&)[4]>(acc_[v * 4]),
          a_[v / 8 * 4], a_[v / 8 * 4 + 1], a_[v / 8 * 4 + 2], a_[v / 8 * 4 + 3], b_[v % 8 * 2], b_[v % 8 * 2 + 1]);
    }
    tw::u32 a_2_[8];
    
    {
      const tw::u32 row = tw::swizzle<2>(tid % 16 * 64 + tid / 16 % 2 * 16 + tid / 32 % 2 * 2048);
      const tw::u32 base = AT_sA_ + slot_ * 4096;
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        tw::ldmatrix_x4(a_2_[v * 4], a_2_[v * 4 + 1], a_2_[v * 4 + 2], a_2_[v * 4 + 3], smem + base + (row ^ (32)) + v * 1024);
      }
    }
    tw::u32 b_2_[16];
    
    {
      const tw::u32 row = tw::swizzle<2>(tid % 8 * 64 + tid / 8 % 2 * 16 + tid / 16 % 2 * 512 + tid / 64 * 4096);
      const tw::u32 base = AT_sB_ + slot_ * 8192;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        tw::ldmatrix_x4(b_2_[v * 4], b_2_[v * 4 + 1], b_2_[v * 4 + 2], b_2_[v * 4 + 3], smem + base + (row ^ (32)) + v * 1024);
      }
    }
    
#pragma unroll
    for (int v = 0; v < 16; ++v) {
      tw::mma_m16n8k16_bf16(reinterpret_cast<float(&)[4]>(acc_[v * 4]),
          a_2_[v / 8 * 4], a_2_[v / 8 * 4 + 1], a_2_[v / 8 * 4 + 2], a_2_[v / 8 * 4 + 3], b_2_[v % 8 * 2], b_2_[v % 8 * 2 + 1]);
    }
  }
  tw::u32 stored_[32];
  
#pragma unroll
  for (int v = 0; v < 32; ++v) {
    stored_[v] = tw::pack_bf16(acc_[2 * v], acc_[2 * v + 1]);
  }
  
  {
    const int at0 = first_ + tid / 4 % 8 + tid / 32 % 2 * 32;
    const int left0 = min(P_, end_) - at0;
    const int at1 = int(blockIdx.y) * 128 + tid % 4 * 8 + tid / 64 * 64;
    const int left1 = N_ - at1;
    tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      tw::u32 run[4] = {stored_[v % 2 + (v / 2 * 4 + 0) * 2], stored_[v % 2 + (v / 2 * 4 + 1) * 2], stored_[v % 2 + (v / 2 * 4 + 2) * 2], stored_[v % 2 + (v / 2 * 4 + 3) * 2]};
      tw::quad_transpose(run, tid);
      if (v % 2 * 8 + v / 4 * 16 < left0 && v / 2 % 2 * 32 < left1) tw::store_vector<16>(p + tw::i64(v % 2 * 8 + v / 4 * 16) * N_ + v / 2 % 2 * 32, run);
    }
  }
}
