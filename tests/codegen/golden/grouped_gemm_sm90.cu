






#include "tw_tile.cuh"

constexpr tw::u32 AT_sX_ = 0;  
constexpr tw::u32 AT_sW_ = 131072;  
constexpr tw::u32 AT_sY_ = 196608;  
constexpr tw::u32 AT_ring_full_ = 212992;  
constexpr tw::u32 AT_ring_empty_ = 213024;  

extern "C" __global__ void __launch_bounds__(384, 1) grouped_gemm_kernel(
    const __grid_constant__ tw::TensorMap W_map,
    const __grid_constant__ tw::TensorMap X_map,
    const __grid_constant__ tw::TensorMap X_map2,
    const __grid_constant__ tw::TensorMap X_map3,
    const __grid_constant__ tw::TensorMap X_map4,
    const __grid_constant__ tw::TensorMap X_map5,
    const __grid_constant__ tw::TensorMap X_map6,
    const __grid_constant__ tw::TensorMap X_map7,
    const __grid_constant__ tw::TensorMap X_map8,
    const int* __restrict__ expert_,
    const int* __restrict__ tile_first_,
    const int* __restrict__ tile_end_,
    tw::u16* __restrict__ Y_,
    int P_,
    int K_,
    int E_,
    int N_,
    int BATCHES_) {
  extern __shared__ __align__(1024) char arena[];
  const tw::u32 smem = tw::smem_addr(arena);
  if (smem % 1024 != 0) __trap();  
  const int tid = threadIdx.x;
  const int warp = tw::warp_index();
  if (warp == 0 && tw::elect_one()) {
    tw::mbarrier_init(smem + AT_ring_full_, 1);
    tw::mbarrier_init(smem + AT_ring_full_ + 8, 1);
    tw::mbarrier_init(smem + AT_ring_full_ + 16, 1);
    tw::mbarrier_init(smem + AT_ring_full_ + 24, 1);
    tw::mbarrier_init(smem + AT_ring_empty_, 2);
    tw::mbarrier_init(smem + AT_ring_empty_ + 8, 2);
    tw::mbarrier_init(smem + AT_ring_empty_ + 16, 2);
    tw::mbarrier_init(smem + AT_ring_empty_ + 24, 2);
    tw::fence_mbarrier_init();
  }
  __syncthreads();  
  if (warp < 4) {
    
    TW_SETMAXNREG_DEC(40);
    if (warp == 0 && tw::elect_one()) {
      int ring_produced_slot = 0, ring_produced_phase = 0;
      
      for (int t_ = int(blockIdx.x); t_ < ((BATCHES_ * 8) * ((N_ + 127) / 128)); t_ += int(gridDim.x)) {
        const int columns_ = (N_ + 127) / 128;
        const int batch_ = t_ / (8 * columns_);
        const int turn_ = t_ % 8;
        const int i_ = (batch_ * 8) + turn_;
        const int bn_ = (t_ / 8) % columns_;
        const int first_ = int(tile_first_[i_]);
        const int end_ = int(tile_end_[i_]);
        const int e_ = int(expert_[first_]);
        if (first_ < end_) {
          if (end_ <= (first_ + 32)) {
            for (int kt_ = 0; kt_ < ((K_ + 63) / 64); ++kt_) {
              const int slot_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_, 20480);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_, kt_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_ * 32768, &X_map, smem + AT_ring_full_ + 8 * slot_, kt_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 32) < end_) {
          if (end_ <= (first_ + 64)) {
            for (int kt_2_ = 0; kt_2_ < ((K_ + 63) / 64); ++kt_2_) {
              const int slot_2_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_2_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_2_, 24576);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_2_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_2_, kt_2_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_2_ * 32768, &X_map2, smem + AT_ring_full_ + 8 * slot_2_, kt_2_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 64) < end_) {
          if (end_ <= (first_ + 96)) {
            for (int kt_3_ = 0; kt_3_ < ((K_ + 63) / 64); ++kt_3_) {
              const int slot_3_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_3_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_3_, 28672);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_3_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_3_, kt_3_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_3_ * 32768, &X_map3, smem + AT_ring_full_ + 8 * slot_3_, kt_3_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 96) < end_) {
          if (end_ <= (first_ + 128)) {
            for (int kt_4_ = 0; kt_4_ < ((K_ + 63) / 64); ++kt_4_) {
              const int slot_4_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_4_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_4_, 32768);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_4_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_4_, kt_4_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_4_ * 32768, &X_map4, smem + AT_ring_full_ + 8 * slot_4_, kt_4_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 128) < end_) {
          if (end_ <= (first_ + 160)) {
            for (int kt_5_ = 0; kt_5_ < ((K_ + 63) / 64); ++kt_5_) {
              const int slot_5_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_5_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_5_, 36864);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_5_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_5_, kt_5_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_5_ * 32768, &X_map5, smem + AT_ring_full_ + 8 * slot_5_, kt_5_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 160) < end_) {
          if (end_ <= (first_ + 192)) {
            for (int kt_6_ = 0; kt_6_ < ((K_ + 63) / 64); ++kt_6_) {
              const int slot_6_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_6_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_6_, 40960);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_6_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_6_, kt_6_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_6_ * 32768, &X_map6, smem + AT_ring_full_ + 8 * slot_6_, kt_6_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 192) < end_) {
          if (end_ <= (first_ + 224)) {
            for (int kt_7_ = 0; kt_7_ < ((K_ + 63) / 64); ++kt_7_) {
              const int slot_7_ = ring_produced_slot;
              tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_7_, ring_produced_phase ^ 1);  
              tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_7_, 45056);  
              if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
              
              tw::tma_load_3d_hint(smem + AT_sW_ + slot_7_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_7_, kt_7_ * 64, bn_ * 128, e_, tw::l2_evict_first());
              
              tw::tma_load_2d_hint(smem + AT_sX_ + slot_7_ * 32768, &X_map7, smem + AT_ring_full_ + 8 * slot_7_, kt_7_ * 64, first_, tw::l2_evict_last());
            }
          }
        }
        if ((first_ + 224) < end_) {
          for (int kt_8_ = 0; kt_8_ < ((K_ + 63) / 64); ++kt_8_) {
            const int slot_8_ = ring_produced_slot;
            tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_8_, ring_produced_phase ^ 1);  
            tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_8_, 49152);  
            if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
            
            tw::tma_load_3d_hint(smem + AT_sW_ + slot_8_ * 16384, &W_map, smem + AT_ring_full_ + 8 * slot_8_, kt_8_ * 64, bn_ * 128, e_, tw::l2_evict_first());
            
            tw::tma_load_2d_hint(smem + AT_sX_ + slot_8_ * 32768, &X_map8, smem + AT_ring_full_ + 8 * slot_8_, kt_8_ * 64, first_, tw::l2_evict_last());
          }
        }
      }
    }
  } else if (warp >= 4 && warp < 12) {
    
    const int tid = threadIdx.x % 128;
    const int w_ = (warp - 4) / 4;
    TW_SETMAXNREG_INC(232);
    int ring_consumed_slot = 0, ring_consumed_phase = 0;
    int ring_released_slot = 0, ring_released_phase = 0;
    tw::u32 p0_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p0_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p1_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p1_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p2_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p2_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p3_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p3_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p4_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p4_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p5_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p5_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p6_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p6_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    tw::u32 p7_[8];
    
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      p7_[v] = tw::pack_bf16(0.0f, 0.0f);
    }
    int column_ = 0;
    int holds_ = 0;
    int row_ = 0;
    int stop_ = 0;
    
    for (int t_2_ = int(blockIdx.x); t_2_ < ((BATCHES_ * 8) * ((N_ + 127) / 128)); t_2_ += int(gridDim.x)) {
      const int columns_2_ = (N_ + 127) / 128;
      const int batch_2_ = t_2_ / (8 * columns_2_);
      const int turn_2_ = t_2_ % 8;
      const int i_2_ = (batch_2_ * 8) + turn_2_;
      const int bn_2_ = (t_2_ / 8) % columns_2_;
      const int first_2_ = int(tile_first_[i_2_]);
      const int end_2_ = int(tile_end_[i_2_]);
      if (end_2_ <= first_2_) {
        if (holds_ == 1) {
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_2_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_2_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 64 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_2_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_2_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_3_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_3_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 128 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_3_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_3_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_4_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_4_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 192 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_4_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_4_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p0_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p1_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p2_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p3_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p4_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p5_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p6_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p7_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
      }
      if (first_2_ < end_2_) {
        if (end_2_ <= (first_2_ + 32)) {
          float acc_[16];
          
#pragma unroll
          for (int v = 0; v < 16; ++v) {
            acc_[v] = 0.0f;
            tw::wgmma_pin(acc_[v]);
          }
          const int slot_9_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_9_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_9_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_9_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a, desc_b, 0);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_5_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_5_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_5_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_5_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_10_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_10_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_10_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_10_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a, desc_b, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_6_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_6_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_6_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_6_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_11_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_11_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_11_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_11_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a, desc_b, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_7_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_7_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_7_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_7_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_12_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_12_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_12_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_12_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a, desc_b, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_8_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_8_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_8_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_8_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_9_ = 4; kt_9_ < ((K_ + 63) / 64); ++kt_9_) {
            const int slot_13_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_13_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_12_ = slot_13_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_12_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_12_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a, desc_b, 1);
              tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n32k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 16; ++v) {
            tw::wgmma_pin(acc_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_2_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_2_[v] = tw::pack_bf16(acc_[2 * v], acc_[2 * v + 1]);
          }
          tw::u32 p_3_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_3_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_4_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_4_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_5_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_5_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_6_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_6_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_7_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_7_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_8_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_8_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_9_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_9_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_5_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_5_[v] = p_2_[v];
          }
          tw::u32 copy_6_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_6_[v] = p_3_[v];
          }
          tw::u32 copy_7_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_7_[v] = p_4_[v];
          }
          tw::u32 copy_8_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_8_[v] = p_5_[v];
          }
          tw::u32 copy_9_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_9_[v] = p_6_[v];
          }
          tw::u32 copy_10_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_10_[v] = p_7_[v];
          }
          tw::u32 copy_11_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_11_[v] = p_8_[v];
          }
          tw::u32 copy_12_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_12_[v] = p_9_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_5_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_6_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_7_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_8_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_9_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_10_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_11_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_12_[v];
          }
        }
      }
      if ((first_2_ + 32) < end_2_) {
        if (end_2_ <= (first_2_ + 64)) {
          float acc_2_[32];
          
#pragma unroll
          for (int v = 0; v < 32; ++v) {
            acc_2_[v] = 0.0f;
            tw::wgmma_pin(acc_2_[v]);
          }
          const int slot_14_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_14_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_14_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_14_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a, desc_b, 0);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_9_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_9_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_9_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_9_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_15_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_15_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_15_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_15_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a, desc_b, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_10_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_10_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_10_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_10_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_16_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_16_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_16_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_16_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a, desc_b, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_11_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_11_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_11_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_11_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_17_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_17_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_17_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_17_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a, desc_b, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_12_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_12_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_12_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_12_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_10_ = 4; kt_10_ < ((K_ + 63) / 64); ++kt_10_) {
            const int slot_18_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_18_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_17_ = slot_18_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_17_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_17_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a, desc_b, 1);
              tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n64k16_bf16_ss(acc_2_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 32; ++v) {
            tw::wgmma_pin(acc_2_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_10_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_10_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_11_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_11_[v] = tw::pack_bf16(acc_2_[2 * v], acc_2_[2 * v + 1]);
          }
          tw::u32 p_12_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_12_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_13_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_13_[v] = tw::pack_bf16(acc_2_[(2 * v) + 16], acc_2_[(2 * v + 1) + 16]);
          }
          tw::u32 p_14_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_14_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_15_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_15_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_16_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_16_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_17_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_17_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_18_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_18_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_19_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_19_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_13_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_13_[v] = p_11_[v];
          }
          tw::u32 copy_14_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_14_[v] = p_13_[v];
          }
          tw::u32 copy_15_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_15_[v] = p_14_[v];
          }
          tw::u32 copy_16_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_16_[v] = p_15_[v];
          }
          tw::u32 copy_17_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_17_[v] = p_16_[v];
          }
          tw::u32 copy_18_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_18_[v] = p_17_[v];
          }
          tw::u32 copy_19_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_19_[v] = p_18_[v];
          }
          tw::u32 copy_20_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_20_[v] = p_19_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_13_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_14_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_15_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_16_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_17_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_18_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_19_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_20_[v];
          }
        }
      }
      if ((first_2_ + 64) < end_2_) {
        if (end_2_ <= (first_2_ + 96)) {
          float acc_3_[48];
          
#pragma unroll
          for (int v = 0; v < 48; ++v) {
            acc_3_[v] = 0.0f;
            tw::wgmma_pin(acc_3_[v]);
          }
          const int slot_19_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_19_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_19_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_19_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a, desc_b, 0);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_13_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_13_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_13_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_13_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_20_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_20_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_20_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_20_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a, desc_b, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_14_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_14_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_14_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_14_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_21_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_21_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_21_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_21_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a, desc_b, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_15_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_15_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_15_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_15_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_22_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_22_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_22_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_22_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a, desc_b, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_16_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_16_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_16_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_16_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_11_ = 4; kt_11_ < ((K_ + 63) / 64); ++kt_11_) {
            const int slot_23_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_23_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_22_ = slot_23_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_22_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_22_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a, desc_b, 1);
              tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n96k16_bf16_ss(acc_3_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 48; ++v) {
            tw::wgmma_pin(acc_3_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_20_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_20_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_21_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_21_[v] = tw::pack_bf16(acc_3_[2 * v], acc_3_[2 * v + 1]);
          }
          tw::u32 p_22_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_22_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_23_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_23_[v] = tw::pack_bf16(acc_3_[(2 * v) + 16], acc_3_[(2 * v + 1) + 16]);
          }
          tw::u32 p_24_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_24_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_25_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_25_[v] = tw::pack_bf16(acc_3_[(2 * v) + 32], acc_3_[(2 * v + 1) + 32]);
          }
          tw::u32 p_26_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_26_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_27_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_27_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_28_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_28_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_29_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_29_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_30_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_30_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_21_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_21_[v] = p_21_[v];
          }
          tw::u32 copy_22_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_22_[v] = p_23_[v];
          }
          tw::u32 copy_23_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_23_[v] = p_25_[v];
          }
          tw::u32 copy_24_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_24_[v] = p_26_[v];
          }
          tw::u32 copy_25_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_25_[v] = p_27_[v];
          }
          tw::u32 copy_26_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_26_[v] = p_28_[v];
          }
          tw::u32 copy_27_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_27_[v] = p_29_[v];
          }
          tw::u32 copy_28_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_28_[v] = p_30_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_21_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_22_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_23_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_24_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_25_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_26_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_27_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_28_[v];
          }
        }
      }
      if ((first_2_ + 96) < end_2_) {
        if (end_2_ <= (first_2_ + 128)) {
          float acc_4_[64];
          
#pragma unroll
          for (int v = 0; v < 64; ++v) {
            acc_4_[v] = 0.0f;
            tw::wgmma_pin(acc_4_[v]);
          }
          const int slot_24_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_24_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_24_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_24_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a, desc_b, 0);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_17_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_17_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_17_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_17_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_25_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_25_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_25_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_25_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a, desc_b, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_18_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_18_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_18_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_18_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_26_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_26_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_26_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_26_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a, desc_b, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_19_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_19_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_19_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_19_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_27_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_27_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_27_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_27_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a, desc_b, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_20_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_20_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_20_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_20_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_12_ = 4; kt_12_ < ((K_ + 63) / 64); ++kt_12_) {
            const int slot_28_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_28_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_27_ = slot_28_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_27_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_27_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a, desc_b, 1);
              tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n128k16_bf16_ss(acc_4_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 64; ++v) {
            tw::wgmma_pin(acc_4_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_31_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_31_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_32_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_32_[v] = tw::pack_bf16(acc_4_[2 * v], acc_4_[2 * v + 1]);
          }
          tw::u32 p_33_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_33_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_34_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_34_[v] = tw::pack_bf16(acc_4_[(2 * v) + 16], acc_4_[(2 * v + 1) + 16]);
          }
          tw::u32 p_35_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_35_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_36_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_36_[v] = tw::pack_bf16(acc_4_[(2 * v) + 32], acc_4_[(2 * v + 1) + 32]);
          }
          tw::u32 p_37_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_37_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_38_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_38_[v] = tw::pack_bf16(acc_4_[(2 * v) + 48], acc_4_[(2 * v + 1) + 48]);
          }
          tw::u32 p_39_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_39_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_40_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_40_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_41_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_41_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_42_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_42_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_29_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_29_[v] = p_32_[v];
          }
          tw::u32 copy_30_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_30_[v] = p_34_[v];
          }
          tw::u32 copy_31_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_31_[v] = p_36_[v];
          }
          tw::u32 copy_32_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_32_[v] = p_38_[v];
          }
          tw::u32 copy_33_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_33_[v] = p_39_[v];
          }
          tw::u32 copy_34_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_34_[v] = p_40_[v];
          }
          tw::u32 copy_35_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_35_[v] = p_41_[v];
          }
          tw::u32 copy_36_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_36_[v] = p_42_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_29_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_30_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_31_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_32_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_33_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_34_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_35_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_36_[v];
          }
        }
      }
      if ((first_2_ + 128) < end_2_) {
        if (end_2_ <= (first_2_ + 160)) {
          float acc_5_[80];
          
#pragma unroll
          for (int v = 0; v < 80; ++v) {
            acc_5_[v] = 0.0f;
            tw::wgmma_pin(acc_5_[v]);
          }
          const int slot_29_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_29_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_29_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_29_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a, desc_b, 0);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_21_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_21_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_21_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_21_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_30_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_30_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_30_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_30_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a, desc_b, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_22_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_22_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_22_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_22_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_31_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_31_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_31_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_31_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a, desc_b, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_23_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_23_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_23_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_23_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_32_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_32_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_32_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_32_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a, desc_b, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_24_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_24_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_24_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_24_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_13_ = 4; kt_13_ < ((K_ + 63) / 64); ++kt_13_) {
            const int slot_33_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_33_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_32_ = slot_33_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_32_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_32_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a, desc_b, 1);
              tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n160k16_bf16_ss(acc_5_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 80; ++v) {
            tw::wgmma_pin(acc_5_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_43_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_43_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_44_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_44_[v] = tw::pack_bf16(acc_5_[2 * v], acc_5_[2 * v + 1]);
          }
          tw::u32 p_45_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_45_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_46_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_46_[v] = tw::pack_bf16(acc_5_[(2 * v) + 16], acc_5_[(2 * v + 1) + 16]);
          }
          tw::u32 p_47_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_47_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_48_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_48_[v] = tw::pack_bf16(acc_5_[(2 * v) + 32], acc_5_[(2 * v + 1) + 32]);
          }
          tw::u32 p_49_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_49_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_50_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_50_[v] = tw::pack_bf16(acc_5_[(2 * v) + 48], acc_5_[(2 * v + 1) + 48]);
          }
          tw::u32 p_51_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_51_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_52_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_52_[v] = tw::pack_bf16(acc_5_[(2 * v) + 64], acc_5_[(2 * v + 1) + 64]);
          }
          tw::u32 p_53_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_53_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_54_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_54_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_55_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_55_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_37_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_37_[v] = p_44_[v];
          }
          tw::u32 copy_38_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_38_[v] = p_46_[v];
          }
          tw::u32 copy_39_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_39_[v] = p_48_[v];
          }
          tw::u32 copy_40_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_40_[v] = p_50_[v];
          }
          tw::u32 copy_41_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_41_[v] = p_52_[v];
          }
          tw::u32 copy_42_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_42_[v] = p_53_[v];
          }
          tw::u32 copy_43_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_43_[v] = p_54_[v];
          }
          tw::u32 copy_44_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_44_[v] = p_55_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_37_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_38_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_39_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_40_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_41_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_42_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_43_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_44_[v];
          }
        }
      }
      if ((first_2_ + 160) < end_2_) {
        if (end_2_ <= (first_2_ + 192)) {
          float acc_6_[96];
          
#pragma unroll
          for (int v = 0; v < 96; ++v) {
            acc_6_[v] = 0.0f;
            tw::wgmma_pin(acc_6_[v]);
          }
          const int slot_34_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_34_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_34_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_34_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a, desc_b, 0);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_25_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_25_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_25_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_25_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_35_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_35_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_35_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_35_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a, desc_b, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_26_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_26_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_26_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_26_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_36_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_36_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_36_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_36_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a, desc_b, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_27_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_27_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_27_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_27_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_37_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_37_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_37_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_37_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a, desc_b, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_28_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_28_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_28_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_28_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_14_ = 4; kt_14_ < ((K_ + 63) / 64); ++kt_14_) {
            const int slot_38_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_38_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_37_ = slot_38_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_37_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_37_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a, desc_b, 1);
              tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n192k16_bf16_ss(acc_6_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 96; ++v) {
            tw::wgmma_pin(acc_6_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_56_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_56_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_57_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_57_[v] = tw::pack_bf16(acc_6_[2 * v], acc_6_[2 * v + 1]);
          }
          tw::u32 p_58_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_58_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_59_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_59_[v] = tw::pack_bf16(acc_6_[(2 * v) + 16], acc_6_[(2 * v + 1) + 16]);
          }
          tw::u32 p_60_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_60_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_61_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_61_[v] = tw::pack_bf16(acc_6_[(2 * v) + 32], acc_6_[(2 * v + 1) + 32]);
          }
          tw::u32 p_62_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_62_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_63_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_63_[v] = tw::pack_bf16(acc_6_[(2 * v) + 48], acc_6_[(2 * v + 1) + 48]);
          }
          tw::u32 p_64_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_64_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_65_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_65_[v] = tw::pack_bf16(acc_6_[(2 * v) + 64], acc_6_[(2 * v + 1) + 64]);
          }
          tw::u32 p_66_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_66_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_67_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_67_[v] = tw::pack_bf16(acc_6_[(2 * v) + 80], acc_6_[(2 * v + 1) + 80]);
          }
          tw::u32 p_68_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_68_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_69_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_69_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_45_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_45_[v] = p_57_[v];
          }
          tw::u32 copy_46_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_46_[v] = p_59_[v];
          }
          tw::u32 copy_47_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_47_[v] = p_61_[v];
          }
          tw::u32 copy_48_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_48_[v] = p_63_[v];
          }
          tw::u32 copy_49_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_49_[v] = p_65_[v];
          }
          tw::u32 copy_50_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_50_[v] = p_67_[v];
          }
          tw::u32 copy_51_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_51_[v] = p_68_[v];
          }
          tw::u32 copy_52_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_52_[v] = p_69_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_45_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_46_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_47_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_48_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_49_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_50_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_51_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_52_[v];
          }
        }
      }
      if ((first_2_ + 192) < end_2_) {
        if (end_2_ <= (first_2_ + 224)) {
          float acc_7_[112];
          
#pragma unroll
          for (int v = 0; v < 112; ++v) {
            acc_7_[v] = 0.0f;
            tw::wgmma_pin(acc_7_[v]);
          }
          const int slot_39_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_39_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_39_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_39_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a, desc_b, 0);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_29_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_29_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_29_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_29_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_40_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_40_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_40_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_40_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a, desc_b, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_30_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_30_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 64 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_30_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_30_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          const int slot_41_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_41_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_41_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_41_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a, desc_b, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_31_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_31_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 128 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_31_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_31_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          int slot_42_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_42_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_42_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_42_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a, desc_b, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          if (holds_ == 1) {
            tw::named_barrier_sync(1 + w_, 128);
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
              }
            }
            
            {
              const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 2; ++v) {
                tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
              }
            }
            tw::named_barrier_sync(1 + w_, 128);
            tw::u32 loaded_32_[16];
            
            {
              const tw::u32 row = tw::swizzle<3>(tid * 16);
              const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::load_vector<16>(&loaded_32_[v * 4], arena + base + row + v * 2048);
              }
            }
            
            {
              const int at0 = row_ + 192 + tid / 8;
              const int left0 = min(P_, stop_) - at0;
              const int at1 = column_ + tid % 8 * 8;
              const int left1 = N_ - at1;
              tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
              if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_32_[v * 4]);
                }
              } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                  tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_32_[v * 4], v * 16 < left0 ? left1 : 0);
                }
              }
            }
          }
          for (int kt_15_ = 4; kt_15_ < ((K_ + 63) / 64); ++kt_15_) {
            const int slot_43_ = ring_consumed_slot;
            tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_43_, ring_consumed_phase);  
            if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
            slot_42_ = slot_43_;
            tw::wgmma_fence();
            
            {
              const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_42_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
              const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_42_ * 32768, 16, 1024, 1);
              tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a, desc_b, 1);
              tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 2, desc_b + 2, 1);
              tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 4, desc_b + 4, 1);
              tw::wgmma_m64n224k16_bf16_ss(acc_7_, desc_a + 6, desc_b + 6, 1);
            }
            tw::wgmma_commit();
            tw::wgmma_wait<1>();
            if (warp % 4 == 0 && tw::elect_one()) {
              tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
            }
            if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          }
          tw::wgmma_wait<0>();
#pragma unroll
          for (int v = 0; v < 112; ++v) {
            tw::wgmma_pin(acc_7_[v]);
          }
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
          tw::u32 p_70_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_70_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_71_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_71_[v] = tw::pack_bf16(acc_7_[2 * v], acc_7_[2 * v + 1]);
          }
          tw::u32 p_72_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_72_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_73_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_73_[v] = tw::pack_bf16(acc_7_[(2 * v) + 16], acc_7_[(2 * v + 1) + 16]);
          }
          tw::u32 p_74_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_74_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_75_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_75_[v] = tw::pack_bf16(acc_7_[(2 * v) + 32], acc_7_[(2 * v + 1) + 32]);
          }
          tw::u32 p_76_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_76_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_77_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_77_[v] = tw::pack_bf16(acc_7_[(2 * v) + 48], acc_7_[(2 * v + 1) + 48]);
          }
          tw::u32 p_78_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_78_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_79_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_79_[v] = tw::pack_bf16(acc_7_[(2 * v) + 64], acc_7_[(2 * v + 1) + 64]);
          }
          tw::u32 p_80_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_80_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_81_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_81_[v] = tw::pack_bf16(acc_7_[(2 * v) + 80], acc_7_[(2 * v + 1) + 80]);
          }
          tw::u32 p_82_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_82_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 p_83_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_83_[v] = tw::pack_bf16(acc_7_[(2 * v) + 96], acc_7_[(2 * v + 1) + 96]);
          }
          tw::u32 p_84_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p_84_[v] = tw::pack_bf16(0.0f, 0.0f);
          }
          tw::u32 copy_53_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_53_[v] = p_71_[v];
          }
          tw::u32 copy_54_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_54_[v] = p_73_[v];
          }
          tw::u32 copy_55_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_55_[v] = p_75_[v];
          }
          tw::u32 copy_56_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_56_[v] = p_77_[v];
          }
          tw::u32 copy_57_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_57_[v] = p_79_[v];
          }
          tw::u32 copy_58_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_58_[v] = p_81_[v];
          }
          tw::u32 copy_59_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_59_[v] = p_83_[v];
          }
          tw::u32 copy_60_[8];
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            copy_60_[v] = p_84_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p0_[v] = copy_53_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p1_[v] = copy_54_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p2_[v] = copy_55_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p3_[v] = copy_56_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p4_[v] = copy_57_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p5_[v] = copy_58_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p6_[v] = copy_59_[v];
          }
          
#pragma unroll
          for (int v = 0; v < 8; ++v) {
            p7_[v] = copy_60_[v];
          }
        }
      }
      if ((first_2_ + 224) < end_2_) {
        float acc_8_[128];
        
#pragma unroll
        for (int v = 0; v < 128; ++v) {
          acc_8_[v] = 0.0f;
          tw::wgmma_pin(acc_8_[v]);
        }
        const int slot_44_ = ring_consumed_slot;
        tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_44_, ring_consumed_phase);  
        if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_44_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_44_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a, desc_b, 0);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 6, desc_b + 6, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (holds_ == 1) {
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_33_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_33_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_33_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_33_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
        }
        const int slot_45_ = ring_consumed_slot;
        tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_45_, ring_consumed_phase);  
        if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_45_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_45_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a, desc_b, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 6, desc_b + 6, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
        }
        if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        if (holds_ == 1) {
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_34_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_34_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 64 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_34_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_34_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
        }
        const int slot_46_ = ring_consumed_slot;
        tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_46_, ring_consumed_phase);  
        if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_46_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_46_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a, desc_b, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 6, desc_b + 6, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
        }
        if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        if (holds_ == 1) {
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_35_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_35_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 128 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_35_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_35_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
        }
        int slot_47_ = ring_consumed_slot;
        tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_47_, ring_consumed_phase);  
        if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_47_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_47_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a, desc_b, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 6, desc_b + 6, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
        }
        if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        if (holds_ == 1) {
          tw::named_barrier_sync(1 + w_, 128);
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
            }
          }
          
          {
            const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
            }
          }
          tw::named_barrier_sync(1 + w_, 128);
          tw::u32 loaded_36_[16];
          
          {
            const tw::u32 row = tw::swizzle<3>(tid * 16);
            const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
            for (int v = 0; v < 4; ++v) {
              tw::load_vector<16>(&loaded_36_[v * 4], arena + base + row + v * 2048);
            }
          }
          
          {
            const int at0 = row_ + 192 + tid / 8;
            const int left0 = min(P_, stop_) - at0;
            const int at1 = column_ + tid % 8 * 8;
            const int left1 = N_ - at1;
            tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
            if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_36_[v * 4]);
              }
            } else {
#pragma unroll
              for (int v = 0; v < 4; ++v) {
                tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_36_[v * 4], v * 16 < left0 ? left1 : 0);
              }
            }
          }
        }
        for (int kt_16_ = 4; kt_16_ < ((K_ + 63) / 64); ++kt_16_) {
          const int slot_48_ = ring_consumed_slot;
          tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_48_, ring_consumed_phase);  
          if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
          slot_47_ = slot_48_;
          tw::wgmma_fence();
          
          {
            const tw::u64 desc_a = tw::descriptor(smem + AT_sW_ + slot_47_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
            const tw::u64 desc_b = tw::descriptor(smem + AT_sX_ + slot_47_ * 32768, 16, 1024, 1);
            tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a, desc_b, 1);
            tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 2, desc_b + 2, 1);
            tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 4, desc_b + 4, 1);
            tw::wgmma_m64n256k16_bf16_ss(acc_8_, desc_a + 6, desc_b + 6, 1);
          }
          tw::wgmma_commit();
          tw::wgmma_wait<1>();
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        }
        tw::wgmma_wait<0>();
#pragma unroll
        for (int v = 0; v < 128; ++v) {
          tw::wgmma_pin(acc_8_[v]);
        }
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
        }
        if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        tw::u32 p_85_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_85_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_86_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_86_[v] = tw::pack_bf16(acc_8_[2 * v], acc_8_[2 * v + 1]);
        }
        tw::u32 p_87_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_87_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_88_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_88_[v] = tw::pack_bf16(acc_8_[(2 * v) + 16], acc_8_[(2 * v + 1) + 16]);
        }
        tw::u32 p_89_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_89_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_90_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_90_[v] = tw::pack_bf16(acc_8_[(2 * v) + 32], acc_8_[(2 * v + 1) + 32]);
        }
        tw::u32 p_91_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_91_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_92_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_92_[v] = tw::pack_bf16(acc_8_[(2 * v) + 48], acc_8_[(2 * v + 1) + 48]);
        }
        tw::u32 p_93_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_93_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_94_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_94_[v] = tw::pack_bf16(acc_8_[(2 * v) + 64], acc_8_[(2 * v + 1) + 64]);
        }
        tw::u32 p_95_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_95_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_96_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_96_[v] = tw::pack_bf16(acc_8_[(2 * v) + 80], acc_8_[(2 * v + 1) + 80]);
        }
        tw::u32 p_97_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_97_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_98_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_98_[v] = tw::pack_bf16(acc_8_[(2 * v) + 96], acc_8_[(2 * v + 1) + 96]);
        }
        tw::u32 p_99_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_99_[v] = tw::pack_bf16(0.0f, 0.0f);
        }
        tw::u32 p_100_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p_100_[v] = tw::pack_bf16(acc_8_[(2 * v) + 112], acc_8_[(2 * v + 1) + 112]);
        }
        tw::u32 copy_61_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_61_[v] = p_86_[v];
        }
        tw::u32 copy_62_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_62_[v] = p_88_[v];
        }
        tw::u32 copy_63_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_63_[v] = p_90_[v];
        }
        tw::u32 copy_64_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_64_[v] = p_92_[v];
        }
        tw::u32 copy_65_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_65_[v] = p_94_[v];
        }
        tw::u32 copy_66_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_66_[v] = p_96_[v];
        }
        tw::u32 copy_67_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_67_[v] = p_98_[v];
        }
        tw::u32 copy_68_[8];
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          copy_68_[v] = p_100_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p0_[v] = copy_61_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p1_[v] = copy_62_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p2_[v] = copy_63_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p3_[v] = copy_64_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p4_[v] = copy_65_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p5_[v] = copy_66_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p6_[v] = copy_67_[v];
        }
        
#pragma unroll
        for (int v = 0; v < 8; ++v) {
          p7_[v] = copy_68_[v];
        }
      }
      row_ = first_2_;
      stop_ = end_2_;
      column_ = (bn_2_ * 128) + (w_ * 64);
      holds_ = 1;
    }
    if (holds_ == 1) {
      tw::named_barrier_sync(1 + w_, 128);
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048, p0_[v * 4], p0_[v * 4 + 1], p0_[v * 4 + 2], p0_[v * 4 + 3]);
        }
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p1_[v * 4], p1_[v * 4 + 1], p1_[v * 4 + 2], p1_[v * 4 + 3]);
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 loaded_37_[16];
      
      {
        const tw::u32 row = tw::swizzle<3>(tid * 16);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::load_vector<16>(&loaded_37_[v * 4], arena + base + row + v * 2048);
        }
      }
      
      {
        const int at0 = row_ + tid / 8;
        const int left0 = min(P_, stop_) - at0;
        const int at1 = column_ + tid % 8 * 8;
        const int left1 = N_ - at1;
        tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
        if (min(P_, stop_) - row_ >= 64 && N_ - column_ >= 64) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_37_[v * 4]);
          }
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_37_[v * 4], v * 16 < left0 ? left1 : 0);
          }
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048, p2_[v * 4], p2_[v * 4 + 1], p2_[v * 4 + 2], p2_[v * 4 + 3]);
        }
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p3_[v * 4], p3_[v * 4 + 1], p3_[v * 4 + 2], p3_[v * 4 + 3]);
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 loaded_38_[16];
      
      {
        const tw::u32 row = tw::swizzle<3>(tid * 16);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::load_vector<16>(&loaded_38_[v * 4], arena + base + row + v * 2048);
        }
      }
      
      {
        const int at0 = row_ + 64 + tid / 8;
        const int left0 = min(P_, stop_) - at0;
        const int at1 = column_ + tid % 8 * 8;
        const int left1 = N_ - at1;
        tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
        if (min(P_, stop_) - (row_ + 64) >= 64 && N_ - column_ >= 64) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_38_[v * 4]);
          }
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_38_[v * 4], v * 16 < left0 ? left1 : 0);
          }
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048, p4_[v * 4], p4_[v * 4 + 1], p4_[v * 4 + 2], p4_[v * 4 + 3]);
        }
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p5_[v * 4], p5_[v * 4 + 1], p5_[v * 4 + 2], p5_[v * 4 + 3]);
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 loaded_39_[16];
      
      {
        const tw::u32 row = tw::swizzle<3>(tid * 16);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::load_vector<16>(&loaded_39_[v * 4], arena + base + row + v * 2048);
        }
      }
      
      {
        const int at0 = row_ + 128 + tid / 8;
        const int left0 = min(P_, stop_) - at0;
        const int at1 = column_ + tid % 8 * 8;
        const int left1 = N_ - at1;
        tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
        if (min(P_, stop_) - (row_ + 128) >= 64 && N_ - column_ >= 64) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_39_[v * 4]);
          }
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_39_[v * 4], v * 16 < left0 ? left1 : 0);
          }
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048, p6_[v * 4], p6_[v * 4 + 1], p6_[v * 4 + 2], p6_[v * 4 + 3]);
        }
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 8 * 128 + tid / 8 % 2 * 16 + tid / 16 % 2 * 1024 + tid / 32 * 32);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          tw::stmatrix_x4_trans(smem + base + row + v * 2048 + 4096, p7_[v * 4], p7_[v * 4 + 1], p7_[v * 4 + 2], p7_[v * 4 + 3]);
        }
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 loaded_40_[16];
      
      {
        const tw::u32 row = tw::swizzle<3>(tid * 16);
        const tw::u32 base = AT_sY_ + w_ * 8192;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::load_vector<16>(&loaded_40_[v * 4], arena + base + row + v * 2048);
        }
      }
      
      {
        const int at0 = row_ + 192 + tid / 8;
        const int left0 = min(P_, stop_) - at0;
        const int at1 = column_ + tid % 8 * 8;
        const int left1 = N_ - at1;
        tw::u16* p = Y_ + tw::i64(at0) * N_ + at1;
        if (min(P_, stop_) - (row_ + 192) >= 64 && N_ - column_ >= 64) {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_vector<16>(p + tw::i64(v * 16) * N_, &loaded_40_[v * 4]);
          }
        } else {
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            tw::store_some<8>(p + tw::i64(v * 16) * N_, &loaded_40_[v * 4], v * 16 < left0 ? left1 : 0);
          }
        }
      }
    }
  }
}
