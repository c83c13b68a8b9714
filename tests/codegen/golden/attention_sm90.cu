




#include "tw_tile.cuh"

constexpr tw::u32 AT_sQ_ = 0;  
constexpr tw::u32 AT_sK_ = 65536;  
constexpr tw::u32 AT_sV_ = 131072;  
constexpr tw::u32 AT_queries_full_ = 196608;  
constexpr tw::u32 AT_queries_empty_ = 196624;  
constexpr tw::u32 AT_keys_full_ = 196640;  
constexpr tw::u32 AT_keys_empty_ = 196656;  
constexpr tw::u32 AT_values_full_ = 196672;  
constexpr tw::u32 AT_values_empty_ = 196688;  

extern "C" __global__ void __launch_bounds__(384, 1) attention_kernel(
    const __grid_constant__ tw::TensorMap K_map,
    const __grid_constant__ tw::TensorMap Q_map,
    const __grid_constant__ tw::TensorMap V_map,
    tw::u16* __restrict__ O_,
    float* __restrict__ LSE_,
    int B_,
    int HK_,
    int S_,
    int T_,
    float scale_) {
  extern __shared__ __align__(1024) char arena[];
  const tw::u32 smem = tw::smem_addr(arena);
  if (smem % 1024 != 0) __trap();  
  const int tid = threadIdx.x;
  const int warp = tw::warp_index();
  if (warp == 0 && tw::elect_one()) {
    tw::mbarrier_init(smem + AT_queries_full_, 1);
    tw::mbarrier_init(smem + AT_queries_full_ + 8, 1);
    tw::mbarrier_init(smem + AT_queries_empty_, 2);
    tw::mbarrier_init(smem + AT_queries_empty_ + 8, 2);
    tw::mbarrier_init(smem + AT_keys_full_, 1);
    tw::mbarrier_init(smem + AT_keys_full_ + 8, 1);
    tw::mbarrier_init(smem + AT_keys_empty_, 2);
    tw::mbarrier_init(smem + AT_keys_empty_ + 8, 2);
    tw::mbarrier_init(smem + AT_values_full_, 1);
    tw::mbarrier_init(smem + AT_values_full_ + 8, 1);
    tw::mbarrier_init(smem + AT_values_empty_, 2);
    tw::mbarrier_init(smem + AT_values_empty_ + 8, 2);
    tw::fence_mbarrier_init();
  }
  __syncthreads();  
  if (warp < 4) {
    
    TW_SETMAXNREG_DEC(24);
    if (warp == 0 && tw::elect_one()) {
      int queries_produced_slot = 0, queries_produced_phase = 0;
      int keys_produced_slot = 0, keys_produced_phase = 0;
      int values_produced_slot = 0, values_produced_phase = 0;
      
      for (int t_ = int(blockIdx.x); t_ < ((((S_ + 127) / 128) * HK_) * B_); t_ += int(gridDim.x)) {
        const int columns_ = (S_ + 127) / 128;
        const int b_ = t_ / (columns_ * HK_);
        const int h_ = (t_ / columns_) % HK_;
        const int bq_ = t_ % columns_;
        const int row_ = bq_ * 128;
        const int tiles_ = (T_ + 127) / 128;
        const int ks_ = keys_produced_slot;
        tw::mbarrier_wait(smem + AT_keys_empty_ + 8 * ks_, keys_produced_phase ^ 1);  
        tw::mbarrier_arrive_expect_tx(smem + AT_keys_full_ + 8 * ks_, 32768);  
        if (++keys_produced_slot == 2) keys_produced_slot = 0, keys_produced_phase ^= 1;
        
        tw::tma_load_4d(smem + AT_sK_ + ks_ * 32768, &K_map, smem + AT_keys_full_ + 8 * ks_, 0, (tiles_ - 1) * 128, h_, b_);
        
        tw::tma_load_4d(smem + AT_sK_ + 16384 + ks_ * 32768, &K_map, smem + AT_keys_full_ + 8 * ks_, 64, (tiles_ - 1) * 128, h_, b_);
        const int qs_ = queries_produced_slot;
        tw::mbarrier_wait(smem + AT_queries_empty_ + 8 * qs_, queries_produced_phase ^ 1);  
        tw::mbarrier_arrive_expect_tx(smem + AT_queries_full_ + 8 * qs_, 32768);  
        if (++queries_produced_slot == 2) queries_produced_slot = 0, queries_produced_phase ^= 1;
        
        tw::tma_load_4d(smem + AT_sQ_ + qs_ * 32768, &Q_map, smem + AT_queries_full_ + 8 * qs_, 0, row_, h_, b_);
        
        tw::tma_load_4d(smem + AT_sQ_ + 16384 + qs_ * 32768, &Q_map, smem + AT_queries_full_ + 8 * qs_, 64, row_, h_, b_);
        for (int i_ = 1; i_ < tiles_; ++i_) {
          const int ks_2_ = keys_produced_slot;
          tw::mbarrier_wait(smem + AT_keys_empty_ + 8 * ks_2_, keys_produced_phase ^ 1);  
          tw::mbarrier_arrive_expect_tx(smem + AT_keys_full_ + 8 * ks_2_, 32768);  
          if (++keys_produced_slot == 2) keys_produced_slot = 0, keys_produced_phase ^= 1;
          
          tw::tma_load_4d(smem + AT_sK_ + ks_2_ * 32768, &K_map, smem + AT_keys_full_ + 8 * ks_2_, 0, ((tiles_ - 1) - i_) * 128, h_, b_);
          
          tw::tma_load_4d(smem + AT_sK_ + 16384 + ks_2_ * 32768, &K_map, smem + AT_keys_full_ + 8 * ks_2_, 64, ((tiles_ - 1) - i_) * 128, h_, b_);
          const int vs_ = values_produced_slot;
          tw::mbarrier_wait(smem + AT_values_empty_ + 8 * vs_, values_produced_phase ^ 1);  
          tw::mbarrier_arrive_expect_tx(smem + AT_values_full_ + 8 * vs_, 32768);  
          if (++values_produced_slot == 2) values_produced_slot = 0, values_produced_phase ^= 1;
          
          tw::tma_load_4d(smem + AT_sV_ + vs_ * 32768, &V_map, smem + AT_values_full_ + 8 * vs_, 0, (tiles_ - i_) * 128, h_, b_);
          
          tw::tma_load_4d(smem + AT_sV_ + 16384 + vs_ * 32768, &V_map, smem + AT_values_full_ + 8 * vs_, 64, (tiles_ - i_) * 128, h_, b_);
        }
        const int vs_2_ = values_produced_slot;
        tw::mbarrier_wait(smem + AT_values_empty_ + 8 * vs_2_, values_produced_phase ^ 1);  
        tw::mbarrier_arrive_expect_tx(smem + AT_values_full_ + 8 * vs_2_, 32768);  
        if (++values_produced_slot == 2) values_produced_slot = 0, values_produced_phase ^= 1;
        
        tw::tma_load_4d(smem + AT_sV_ + vs_2_ * 32768, &V_map, smem + AT_values_full_ + 8 * vs_2_, 0, 0, h_, b_);
        
        tw::tma_load_4d(smem + AT_sV_ + 16384 + vs_2_ * 32768, &V_map, smem + AT_values_full_ + 8 * vs_2_, 64, 0, h_, b_);
      }
    }
  } else if (warp >= 4 && warp < 12) {
    
    const int tid = threadIdx.x % 128;
    const int w_ = (warp - 4) / 4;
    TW_SETMAXNREG_INC(240);
    int queries_consumed_slot = 0, queries_consumed_phase = 0;
    int queries_released_slot = 0, queries_released_phase = 0;
    int keys_consumed_slot = 0, keys_consumed_phase = 0;
    int keys_released_slot = 0, keys_released_phase = 0;
    int values_consumed_slot = 0, values_consumed_phase = 0;
    int values_released_slot = 0, values_released_phase = 0;
    float out_[64];
    
#pragma unroll
    for (int v = 0; v < 64; ++v) {
      out_[v] = 0.0f;
      tw::wgmma_pin(out_[v]);
    }
    float s_[64];
    
#pragma unroll
    for (int v = 0; v < 64; ++v) {
      s_[v] = 0.0f;
      tw::wgmma_pin(s_[v]);
    }
    tw::u32 p_[32];
    
#pragma unroll
    for (int v = 0; v < 32; ++v) {
      p_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    float mark_[2];
    
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      mark_[v] = 0.0f;
    }
    float total_[2];
    
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      total_[v] = 0.0f;
    }
    
    for (int t_2_ = int(blockIdx.x); t_2_ < ((((S_ + 127) / 128) * HK_) * B_); t_2_ += int(gridDim.x)) {
      const int qs_2_ = queries_consumed_slot;
      tw::mbarrier_wait(smem + AT_queries_full_ + 8 * qs_2_, queries_consumed_phase);  
      if (++queries_consumed_slot == 2) queries_consumed_slot = 0, queries_consumed_phase ^= 1;
      int ks_3_ = keys_consumed_slot;
      tw::mbarrier_wait(smem + AT_keys_full_ + 8 * ks_3_, keys_consumed_phase);  
      if (++keys_consumed_slot == 2) keys_consumed_slot = 0, keys_consumed_phase ^= 1;
      tw::wgmma_fence();
      
      {
        const tw::u64 desc_a = tw::descriptor(smem + AT_sQ_ + qs_2_ * 32768 + (w_ * 64) * 128, 16, 1024, 1);
        const tw::u64 desc_b = tw::descriptor(smem + AT_sK_ + ks_3_ * 32768, 16, 1024, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a, desc_b, 0);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 2, desc_b + 2, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 4, desc_b + 4, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 6, desc_b + 6, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1024, desc_b + 1024, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1026, desc_b + 1026, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1028, desc_b + 1028, 1);
        tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1030, desc_b + 1030, 1);
      }
      tw::wgmma_commit();
      const int columns_2_ = (S_ + 127) / 128;
      const int b_2_ = t_2_ / (columns_2_ * HK_);
      const int h_2_ = (t_2_ / columns_2_) % HK_;
      const int bq_2_ = t_2_ % columns_2_;
      const int row_2_ = (bq_2_ * 128) + (w_ * 64);
      const int tiles_2_ = (T_ + 127) / 128;
      tw::wgmma_wait<0>();
#pragma unroll
      for (int v = 0; v < 64; ++v) {
        tw::wgmma_pin(s_[v]);
      }
      const int key_ = (tiles_2_ - 1) * 128;
      float max_of_[64];
      
      if (127 < (T_ - key_)) {
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          max_of_[v] = s_[v];
        }
      } else {
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          max_of_[v] = (v % 2 + v / 4 * 8) < ((T_ - key_) - (tid % 4 * 2)) ? s_[v] : (__uint_as_float(0xff800000u));
        }
      }
      float max_[2];
      
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        float r0 = max_of_[part * 2], r1 = max_of_[1 + part * 2], r2 = max_of_[4 + part * 2], r3 = max_of_[5 + part * 2];
#pragma unroll
        for (int v = 4; v < 32; v += 4) {
          r0 = fmaxf(r0, max_of_[v % 2 + v / 2 * 4 + part * 2]);
          r1 = fmaxf(r1, max_of_[(v + 1) % 2 + (v + 1) / 2 * 4 + part * 2]);
          r2 = fmaxf(r2, max_of_[(v + 2) % 2 + (v + 2) / 2 * 4 + part * 2]);
          r3 = fmaxf(r3, max_of_[(v + 3) % 2 + (v + 3) / 2 * 4 + part * 2]);
        }
        r0 = fmaxf(r0, r1);
        r2 = fmaxf(r2, r3);
        r0 = fmaxf(r0, r2);
        r0 = fmaxf(r0, __shfl_xor_sync(0xffffffffu, r0, 1));
        r0 = fmaxf(r0, __shfl_xor_sync(0xffffffffu, r0, 2));
        max_[part] = r0;
      }
      float first_mark_[2];
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        first_mark_[v] = ceilf((fmaxf(max_[v], -1.00000002e+30f) * scale_) * 0.125f) * 8.0f;
      }
      const int key_2_ = (tiles_2_ - 1) * 128;
      float e_[64];
      
      if (127 < (T_ - key_2_)) {
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          e_[v] = tw::exp2_approx((s_[v] * scale_) - first_mark_[v / 2 % 2]);
        }
      } else {
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          e_[v] = (v % 2 + v / 4 * 8) < ((T_ - key_2_) - (tid % 4 * 2)) ? tw::exp2_approx((s_[v] * scale_) - first_mark_[v / 2 % 2]) : 0.0f;
        }
      }
      float first_total_[2];
      
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        float r0 = e_[part * 2], r1 = e_[1 + part * 2], r2 = e_[4 + part * 2], r3 = e_[5 + part * 2];
#pragma unroll
        for (int v = 4; v < 32; v += 4) {
          r0 = r0 + e_[v % 2 + v / 2 * 4 + part * 2];
          r1 = r1 + e_[(v + 1) % 2 + (v + 1) / 2 * 4 + part * 2];
          r2 = r2 + e_[(v + 2) % 2 + (v + 2) / 2 * 4 + part * 2];
          r3 = r3 + e_[(v + 3) % 2 + (v + 3) / 2 * 4 + part * 2];
        }
        r0 = r0 + r1;
        r2 = r2 + r3;
        r0 = r0 + r2;
        r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 1);
        r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 2);
        first_total_[part] = r0;
      }
      if (warp % 4 == 0 && tw::elect_one()) {
        tw::mbarrier_arrive(smem + AT_keys_empty_ + 8 * keys_released_slot);  
      }
      if (++keys_released_slot == 2) keys_released_slot = 0, keys_released_phase ^= 1;
      
#pragma unroll
      for (int v = 0; v < 32; ++v) {
        p_[v] = tw::pack_bf16(e_[2 * v], e_[2 * v + 1]);
      }
      
#pragma unroll
      for (int v = 0; v < 64; ++v) {
        out_[v] = 0.0f;
        tw::wgmma_pin(out_[v]);
      }
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        mark_[v] = first_mark_[v];
      }
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        total_[v] = first_total_[v];
      }
      for (int i_2_ = 1; i_2_ < tiles_2_; ++i_2_) {
        const int ks_4_ = keys_consumed_slot;
        tw::mbarrier_wait(smem + AT_keys_full_ + 8 * ks_4_, keys_consumed_phase);  
        if (++keys_consumed_slot == 2) keys_consumed_slot = 0, keys_consumed_phase ^= 1;
        ks_3_ = ks_4_;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sQ_ + qs_2_ * 32768 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sK_ + ks_3_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a, desc_b, 0);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 6, desc_b + 6, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1024, desc_b + 1024, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1026, desc_b + 1026, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1028, desc_b + 1028, 1);
          tw::wgmma_m64n128k16_bf16_ss(s_, desc_a + 1030, desc_b + 1030, 1);
        }
        tw::wgmma_commit();
        const int vs_3_ = values_consumed_slot;
        tw::mbarrier_wait(smem + AT_values_full_ + 8 * vs_3_, values_consumed_phase);  
        if (++values_consumed_slot == 2) values_consumed_slot = 0, values_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_b = tw::descriptor(smem + AT_sV_ + vs_3_ * 32768, 16384, 1024, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[0], p_[1], p_[2], p_[3], desc_b, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[4], p_[5], p_[6], p_[7], desc_b + 128, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[8], p_[9], p_[10], p_[11], desc_b + 256, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[12], p_[13], p_[14], p_[15], desc_b + 384, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[16], p_[17], p_[18], p_[19], desc_b + 512, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[20], p_[21], p_[22], p_[23], desc_b + 640, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[24], p_[25], p_[26], p_[27], desc_b + 768, 1);
          tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[28], p_[29], p_[30], p_[31], desc_b + 896, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          tw::wgmma_pin(s_[v]);
        }
        float highest_[2];
        
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          float r0 = s_[part * 2], r1 = s_[1 + part * 2], r2 = s_[4 + part * 2], r3 = s_[5 + part * 2];
#pragma unroll
          for (int v = 4; v < 32; v += 4) {
            r0 = fmaxf(r0, s_[v % 2 + v / 2 * 4 + part * 2]);
            r1 = fmaxf(r1, s_[(v + 1) % 2 + (v + 1) / 2 * 4 + part * 2]);
            r2 = fmaxf(r2, s_[(v + 2) % 2 + (v + 2) / 2 * 4 + part * 2]);
            r3 = fmaxf(r3, s_[(v + 3) % 2 + (v + 3) / 2 * 4 + part * 2]);
          }
          r0 = fmaxf(r0, r1);
          r2 = fmaxf(r2, r3);
          r0 = fmaxf(r0, r2);
          r0 = fmaxf(r0, __shfl_xor_sync(0xffffffffu, r0, 1));
          r0 = fmaxf(r0, __shfl_xor_sync(0xffffffffu, r0, 2));
          highest_[part] = r0;
        }
        float next_top_[2];
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          next_top_[v] = fmaxf(max_[v], highest_[v]);
        }
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          mark_[v] = ceilf((fmaxf(next_top_[v], -1.00000002e+30f) * scale_) * 0.125f) * 8.0f;
        }
        
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          e_[v] = tw::exp2_approx((s_[v] * scale_) - mark_[v / 2 % 2]);
        }
        float alpha_[2];
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          alpha_[v] = tw::exp2_approx((ceilf((fmaxf(max_[v], -1.00000002e+30f) * scale_) * 0.125f) * 8.0f) - mark_[v]);
        }
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          max_[v] = next_top_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          total_[v] = total_[v] * alpha_[v];
        }
        float total_2_[2];
        
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          float r0 = e_[part * 2], r1 = e_[1 + part * 2], r2 = e_[4 + part * 2], r3 = e_[5 + part * 2];
#pragma unroll
          for (int v = 4; v < 32; v += 4) {
            r0 = r0 + e_[v % 2 + v / 2 * 4 + part * 2];
            r1 = r1 + e_[(v + 1) % 2 + (v + 1) / 2 * 4 + part * 2];
            r2 = r2 + e_[(v + 2) % 2 + (v + 2) / 2 * 4 + part * 2];
            r3 = r3 + e_[(v + 3) % 2 + (v + 3) / 2 * 4 + part * 2];
          }
          r0 = r0 + r1;
          r2 = r2 + r3;
          r0 = r0 + r2;
          r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 1);
          r0 = r0 + __shfl_xor_sync(0xffffffffu, r0, 2);
          total_2_[part] = r0;
        }
        
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          total_[v] = total_[v] + total_2_[v];
        }
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_keys_empty_ + 8 * keys_released_slot);  
        }
        if (++keys_released_slot == 2) keys_released_slot = 0, keys_released_phase ^= 1;
        tw::wgmma_wait<0>();
#pragma unroll
        for (int v = 0; v < 64; ++v) {
          tw::wgmma_pin(out_[v]);
        }
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_values_empty_ + 8 * values_released_slot);  
        }
        if (++values_released_slot == 2) values_released_slot = 0, values_released_phase ^= 1;
        
        
        if (!__all_sync(0xffffffffu, alpha_[0] == 1.0f && alpha_[1] == 1.0f)) {
#pragma unroll
          for (int v = 0; v < 64; ++v) {
            out_[v] = out_[v] * alpha_[v / 2 % 2];
          }
        }
        
#pragma unroll
        for (int v = 0; v < 32; ++v) {
          p_[v] = tw::pack_bf16(e_[2 * v], e_[2 * v + 1]);
        }
      }
      if (warp % 4 == 0 && tw::elect_one()) {
        tw::mbarrier_arrive(smem + AT_queries_empty_ + 8 * queries_released_slot);  
      }
      if (++queries_released_slot == 2) queries_released_slot = 0, queries_released_phase ^= 1;
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        mark_[v] = ceilf((fmaxf(max_[v], -1.00000002e+30f) * scale_) * 0.125f) * 8.0f;
      }
      const int vs_4_ = values_consumed_slot;
      tw::mbarrier_wait(smem + AT_values_full_ + 8 * vs_4_, values_consumed_phase);  
      if (++values_consumed_slot == 2) values_consumed_slot = 0, values_consumed_phase ^= 1;
      tw::wgmma_fence();
      
      {
        const tw::u64 desc_b = tw::descriptor(smem + AT_sV_ + vs_4_ * 32768, 16384, 1024, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[0], p_[1], p_[2], p_[3], desc_b, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[4], p_[5], p_[6], p_[7], desc_b + 128, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[8], p_[9], p_[10], p_[11], desc_b + 256, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[12], p_[13], p_[14], p_[15], desc_b + 384, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[16], p_[17], p_[18], p_[19], desc_b + 512, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[20], p_[21], p_[22], p_[23], desc_b + 640, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[24], p_[25], p_[26], p_[27], desc_b + 768, 1);
        tw::wgmma_m64n128k16_bf16_rs<1>(out_, p_[28], p_[29], p_[30], p_[31], desc_b + 896, 1);
      }
      tw::wgmma_commit();
      tw::wgmma_wait<0>();
#pragma unroll
      for (int v = 0; v < 64; ++v) {
        tw::wgmma_pin(out_[v]);
      }
      if (warp % 4 == 0 && tw::elect_one()) {
        tw::mbarrier_arrive(smem + AT_values_empty_ + 8 * values_released_slot);  
      }
      if (++values_released_slot == 2) values_released_slot = 0, values_released_phase ^= 1;
      float inverse_[2];
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        inverse_[v] = tw::div_full(1.0f, total_[v]);
      }
      float lse_[2];
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        lse_[v] = mark_[v] + log2f(total_[v]);
      }
      bool lost_[64];
      
#pragma unroll
      for (int v = 0; v < 64; ++v) {
        lost_[v] = ((total_[v / 2 % 2] > 1.00000002e+30f) || (total_[v / 2 % 2] < 1e-30f)) || (!(fabsf(out_[v]) < 9.99999993e+36f));
      }
      float out_2_[64];
      
#pragma unroll
      for (int v = 0; v < 64; ++v) {
        out_2_[v] = out_[v] * inverse_[v / 2 % 2];
      }
      tw::u32 stored_[32];
      
#pragma unroll
      for (int v = 0; v < 32; ++v) {
        stored_[v] = tw::pack_bf16(out_2_[2 * v], out_2_[2 * v + 1]);
      }
      
      {
        const int at0 = row_2_ + tid / 4 % 8 + tid / 32 * 16;
        const int left0 = S_ - at0;
        const int at1 = tid % 4 * 8;
        tw::u16* p = O_ + tw::i64(at0) * 128 + at1 + tw::i64(b_2_) * ((tw::i64(128) * S_) * HK_) + tw::i64(h_2_) * (tw::i64(128) * S_);
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          tw::u32 run[4] = {stored_[v % 2 + (v / 2 * 4 + 0) * 2], stored_[v % 2 + (v / 2 * 4 + 1) * 2], stored_[v % 2 + (v / 2 * 4 + 2) * 2], stored_[v % 2 + (v / 2 * 4 + 3) * 2]};
          tw::quad_transpose(run, tid);
          if (v % 2 * 8 < left0) tw::store_vector<16>(p + tw::i64(v % 2 * 8) * 128 + v / 2 * 32, run);
        }
      }
      float stored_2_[2];
      
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        stored_2_[v] = lse_[v] * 0.693147182f;
      }
      
      if (tid % 4 == 0) {
        const int at0 = row_2_ + tid / 4 % 8 + tid / 32 * 16;
        const int left0 = S_ - at0;
        float* p = LSE_ + at0 + tw::i64(b_2_) * (tw::i64(S_) * HK_) + tw::i64(h_2_) * S_;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          if (v * 8 < left0) tw::store_vector<4>(p + v * 8, &stored_2_[v]);
        }
      }
    }
  }
}
