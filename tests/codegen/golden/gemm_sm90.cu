





#include "tw_tile.cuh"

constexpr tw::u32 AT_sA_ = 0;  
constexpr tw::u32 AT_sB_ = 65536;  
constexpr tw::u32 AT_sC_ = 196608;  
constexpr tw::u32 AT_ring_full_ = 229376;  
constexpr tw::u32 AT_ring_empty_ = 229408;  

extern "C" __global__ void __launch_bounds__(384, 1) gemm_kernel(
    const __grid_constant__ tw::TensorMap A_map,
    const __grid_constant__ tw::TensorMap B_map,
    const __grid_constant__ tw::TensorMap C_map,
    int M_,
    int K_,
    int N_) {
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
      const int tiles_m_ = (M_ + 127) / 128;
      const int tiles_n_ = (N_ + 255) / 256;
      
      for (int tile_ = int(blockIdx.x); tile_ < (tiles_m_ * tiles_n_); tile_ += int(gridDim.x)) {
        const int per_group_ = 8 * tiles_n_;
        const int first_row_ = (tile_ / per_group_) * 8;
        const int group_rows_ = min(tiles_m_ - first_row_, 8);
        const int in_group_ = tile_ % per_group_;
        const int bm_ = first_row_ + tw::floor_mod(in_group_, group_rows_);
        const int bn_ = tw::floor_div(in_group_, group_rows_);
        for (int kt_ = 0; kt_ < ((K_ + 63) / 64); ++kt_) {
          const int slot_ = ring_produced_slot;
          tw::mbarrier_wait(smem + AT_ring_empty_ + 8 * slot_, ring_produced_phase ^ 1);  
          tw::mbarrier_arrive_expect_tx(smem + AT_ring_full_ + 8 * slot_, 49152);  
          if (++ring_produced_slot == 4) ring_produced_slot = 0, ring_produced_phase ^= 1;
          
          tw::tma_load_2d(smem + AT_sA_ + slot_ * 16384, &A_map, smem + AT_ring_full_ + 8 * slot_, kt_ * 64, bm_ * 128);
          
          tw::tma_load_2d(smem + AT_sB_ + slot_ * 32768, &B_map, smem + AT_ring_full_ + 8 * slot_, kt_ * 64, bn_ * 256);
        }
      }
    }
  } else if (warp >= 4 && warp < 12) {
    
    const int tid = threadIdx.x % 128;
    const int w_ = (warp - 4) / 4;
    TW_SETMAXNREG_INC(232);
    int ring_consumed_ = 0, ring_consumed_slot = 0, ring_consumed_phase = 0;
    int ring_released_ = 0, ring_released_slot = 0, ring_released_phase = 0;
    const int tiles_m_2_ = (M_ + 127) / 128;
    const int tiles_n_2_ = (N_ + 255) / 256;
    
    for (int tile_2_ = int(blockIdx.x); tile_2_ < (tiles_m_2_ * tiles_n_2_); tile_2_ += int(gridDim.x)) {
      const int per_group_2_ = 8 * tiles_n_2_;
      const int first_row_2_ = (tile_2_ / per_group_2_) * 8;
      const int group_rows_2_ = min(tiles_m_2_ - first_row_2_, 8);
      const int in_group_2_ = tile_2_ % per_group_2_;
      const int bm_2_ = first_row_2_ + tw::floor_mod(in_group_2_, group_rows_2_);
      const int bn_2_ = tw::floor_div(in_group_2_, group_rows_2_);
      float acc_[128];
      
#pragma unroll
      for (int v = 0; v < 128; ++v) {
        acc_[v] = 0.0f;
        tw::wgmma_pin(acc_[v]);
      }
      for (int kt_2_ = 0; kt_2_ < ((K_ + 63) / 64); ++kt_2_) {
        const int slot_2_ = ring_consumed_slot;
        tw::mbarrier_wait(smem + AT_ring_full_ + 8 * slot_2_, ring_consumed_phase);  
        ++ring_consumed_;
        if (++ring_consumed_slot == 4) ring_consumed_slot = 0, ring_consumed_phase ^= 1;
        tw::wgmma_fence();
        
        {
          const tw::u64 desc_a = tw::descriptor(smem + AT_sA_ + slot_2_ * 16384 + (w_ * 64) * 128, 16, 1024, 1);
          const tw::u64 desc_b = tw::descriptor(smem + AT_sB_ + slot_2_ * 32768, 16, 1024, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_, desc_a, desc_b, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_, desc_a + 2, desc_b + 2, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_, desc_a + 4, desc_b + 4, 1);
          tw::wgmma_m64n256k16_bf16_ss(acc_, desc_a + 6, desc_b + 6, 1);
        }
        tw::wgmma_commit();
        tw::wgmma_wait<1>();
        if (ring_released_ < (ring_consumed_ - 1)) {
          if (warp % 4 == 0 && tw::elect_one()) {
            tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
          }
          ++ring_released_;
          if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
        }
      }
      tw::wgmma_wait<0>();
#pragma unroll
      for (int v = 0; v < 128; ++v) {
        tw::wgmma_pin(acc_[v]);
      }
      if (ring_released_ < ring_consumed_) {
        if (warp % 4 == 0 && tw::elect_one()) {
          tw::mbarrier_arrive(smem + AT_ring_empty_ + 8 * ring_released_slot);  
        }
        ++ring_released_;
        if (++ring_released_slot == 4) ring_released_slot = 0, ring_released_phase ^= 1;
      }
      if (warp % 4 == 0 && tw::elect_one()) {
        tw::bulk_wait_read<1>();
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 stored_[16];
      
#pragma unroll
      for (int v = 0; v < 16; ++v) {
        stored_[v] = tw::pack_bf16(acc_[2 * v], acc_[2 * v + 1]);
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 16 * 128 + tid / 16 % 2 * 16 + tid / 32 * 2048);
        const tw::u32 base = AT_sC_ + w_ * 16384;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::stmatrix_x4(smem + base + (row ^ (v * 32)), stored_[v * 4], stored_[v * 4 + 1], stored_[v * 4 + 2], stored_[v * 4 + 3]);
        }
      }
      tw::fence_proxy_async_shared();
      tw::named_barrier_sync(1 + w_, 128);
      if (warp % 4 == 0 && tw::elect_one()) {
        
        tw::tma_store_2d(&C_map, smem + AT_sC_ + w_ * 16384, bn_2_ * 256, (bm_2_ * 128) + (w_ * 64));
        tw::bulk_commit();
        tw::bulk_wait_read<1>();
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 stored_2_[16];
      
#pragma unroll
      for (int v = 0; v < 16; ++v) {
        stored_2_[v] = tw::pack_bf16(acc_[(2 * v) + 32], acc_[(2 * v + 1) + 32]);
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 16 * 128 + tid / 16 % 2 * 16 + tid / 32 * 2048);
        const tw::u32 base = AT_sC_ + w_ * 16384;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::stmatrix_x4(smem + base + (row ^ (v * 32)) + 8192, stored_2_[v * 4], stored_2_[v * 4 + 1], stored_2_[v * 4 + 2], stored_2_[v * 4 + 3]);
        }
      }
      tw::fence_proxy_async_shared();
      tw::named_barrier_sync(1 + w_, 128);
      if (warp % 4 == 0 && tw::elect_one()) {
        
        tw::tma_store_2d(&C_map, smem + AT_sC_ + 8192 + w_ * 16384, (bn_2_ * 256) + 64, (bm_2_ * 128) + (w_ * 64));
        tw::bulk_commit();
        tw::bulk_wait_read<1>();
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 stored_3_[16];
      
#pragma unroll
      for (int v = 0; v < 16; ++v) {
        stored_3_[v] = tw::pack_bf16(acc_[(2 * v) + 64], acc_[(2 * v + 1) + 64]);
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 16 * 128 + tid / 16 % 2 * 16 + tid / 32 * 2048);
        const tw::u32 base = AT_sC_ + w_ * 16384;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::stmatrix_x4(smem + base + (row ^ (v * 32)), stored_3_[v * 4], stored_3_[v * 4 + 1], stored_3_[v * 4 + 2], stored_3_[v * 4 + 3]);
        }
      }
      tw::fence_proxy_async_shared();
      tw::named_barrier_sync(1 + w_, 128);
      if (warp % 4 == 0 && tw::elect_one()) {
        
        tw::tma_store_2d(&C_map, smem + AT_sC_ + w_ * 16384, (bn_2_ * 256) + 128, (bm_2_ * 128) + (w_ * 64));
        tw::bulk_commit();
        tw::bulk_wait_read<1>();
      }
      tw::named_barrier_sync(1 + w_, 128);
      tw::u32 stored_4_[16];
      
#pragma unroll
      for (int v = 0; v < 16; ++v) {
        stored_4_[v] = tw::pack_bf16(acc_[(2 * v) + 96], acc_[(2 * v + 1) + 96]);
      }
      
      {
        const tw::u32 row = tw::swizzle<3>(tid % 16 * 128 + tid / 16 % 2 * 16 + tid / 32 * 2048);
        const tw::u32 base = AT_sC_ + w_ * 16384;
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          tw::stmatrix_x4(smem + base + (row ^ (v * 32)) + 8192, stored_4_[v * 4], stored_4_[v * 4 + 1], stored_4_[v * 4 + 2], stored_4_[v * 4 + 3]);
        }
      }
      tw::fence_proxy_async_shared();
      tw::named_barrier_sync(1 + w_, 128);
      if (warp % 4 == 0 && tw::elect_one()) {
        
        tw::tma_store_2d(&C_map, smem + AT_sC_ + 8192 + w_ * 16384, (bn_2_ * 256) + 192, (bm_2_ * 128) + (w_ * 64));
        tw::bulk_commit();
      }
    }
    if (warp % 4 == 0 && tw::elect_one()) {
      tw::bulk_wait<0>();
    }
  }
}
