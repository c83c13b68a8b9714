// expect: TW4610 is read while TMA may still be writing
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/pipeline/pipeline.hpp>
#include <cutlass/arch/reg_reconfig.h>
using namespace cute;
using Element = cutlass::bfloat16_t;
struct Traits {
  static constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64, kStages = 4;
};
using TileShape = Shape<_128, _128, _64>;
using SmemLayoutAtom = GMMA::Layout_K_SW128_Atom<Element>;
using SmemLayoutA = decltype(tile_to_shape(SmemLayoutAtom{}, Shape<_128, _64, _4>{}));
using SmemLayoutB = decltype(tile_to_shape(SmemLayoutAtom{}, Shape<_128, _64, _4>{}));
using MainloopPipeline = cutlass::PipelineTmaAsync<4>;
using PipelineState = typename MainloopPipeline::PipelineState;
struct SharedStorage {
  alignas(1024) cute::array_aligned<Element, cute::cosize_v<SmemLayoutA>> smem_A;
  alignas(1024) cute::array_aligned<Element, cute::cosize_v<SmemLayoutB>> smem_B;
  typename MainloopPipeline::SharedStorage pipeline;
};
template <class TmaA, class TmaB>
__global__ void __launch_bounds__(384, 1) hopper_gemm_ws(CUTE_GRID_CONSTANT TmaA const tma_load_a, CUTE_GRID_CONSTANT TmaB const tma_load_b, float* C, int M, int N, int K) {
  extern __shared__ char shared_memory[];
  SharedStorage& shared_storage = *reinterpret_cast<SharedStorage*>(shared_memory);
  int const warp_idx = cutlass::canonical_warp_idx_sync();
  int const lane_predicate = cute::elect_one_sync();
  int const warp_group_thread_idx = threadIdx.x % cutlass::NumThreadsPerWarpGroup;
  int const warp_group_idx = cutlass::canonical_warp_group_idx();
  if (warp_idx == 0 && lane_predicate) {
    cute::prefetch_tma_descriptor(tma_load_a.get_tma_descriptor());
    cute::prefetch_tma_descriptor(tma_load_b.get_tma_descriptor());
  }
  typename MainloopPipeline::Params pipeline_params;
  pipeline_params.transaction_bytes = sizeof(Element) * (128 * 64 + 128 * 64);
  pipeline_params.role = warp_group_idx == 0 ? MainloopPipeline::ThreadCategory::Producer : MainloopPipeline::ThreadCategory::Consumer;
  pipeline_params.is_leader = warp_group_thread_idx == 0;
  pipeline_params.num_consumers = 256;
  MainloopPipeline pipeline(shared_storage.pipeline, pipeline_params, Shape<_1, _1, _1>{});
  __syncthreads();
  Tensor sA = make_tensor(make_smem_ptr(shared_storage.smem_A.data()), SmemLayoutA{});
  Tensor sB = make_tensor(make_smem_ptr(shared_storage.smem_B.data()), SmemLayoutB{});
  Tensor mA = tma_load_a.get_tma_tensor(make_shape(M, K));
  Tensor mB = tma_load_b.get_tma_tensor(make_shape(N, K));
  Tensor gA = local_tile(mA, select<0, 2>(TileShape{}), make_coord(blockIdx.x, _));
  Tensor gB = local_tile(mB, select<1, 2>(TileShape{}), make_coord(blockIdx.y, _));
  int const k_tile_count = ceil_div(K, 64);
  if (warp_group_idx == 0) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    int const warp_idx_in_warpgroup = __shfl_sync(0xffffffff, (threadIdx.x / 32) % 4, 0);
    if (warp_idx_in_warpgroup == 0 && lane_predicate) {
      auto [tAgA, tAsA] = tma_partition(tma_load_a, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(sA), group_modes<0, 2>(gA));
      auto [tBgB, tBsB] = tma_partition(tma_load_b, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(sB), group_modes<0, 2>(gB));
      PipelineState smem_pipe_write = cutlass::make_producer_start_state<MainloopPipeline>();
      for (int k_tile = 0; k_tile < k_tile_count; ++k_tile) {
        pipeline.producer_acquire(smem_pipe_write);
        copy(tma_load_a.with(*pipeline.producer_get_barrier(smem_pipe_write), 0), tAgA(_, k_tile), tAsA(_, smem_pipe_write.index()));
        copy(tma_load_b.with(*pipeline.producer_get_barrier(smem_pipe_write), 0), tBgB(_, k_tile), tBsB(_, smem_pipe_write.index()));
        ++smem_pipe_write;
      }
      pipeline.producer_tail(smem_pipe_write);
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    TiledMMA tiled_mma = make_tiled_mma(SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{}, Layout<Shape<_2, _1, _1>>{});
    auto thr_mma = tiled_mma.get_thread_slice(threadIdx.x - 128);
    Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));
    Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));
    Tensor accum = partition_fragment_C(tiled_mma, Shape<_128, _128>{});
    clear(accum);
    PipelineState smem_pipe_read;
    PipelineState smem_pipe_release = smem_pipe_read;
    pipeline.consumer_wait(smem_pipe_read);
    warpgroup_arrive();
    gemm(tiled_mma, tCrA(_, _, _, smem_pipe_read.index()), tCrB(_, _, _, smem_pipe_read.index()), accum);
    warpgroup_commit_batch();
    ++smem_pipe_read;
    for (int k_tile = 1; k_tile < k_tile_count; ++k_tile) {
      pipeline.consumer_try_wait(smem_pipe_read);
      warpgroup_fence_operand(accum);
      warpgroup_arrive();
      gemm(tiled_mma, tCrA(_, _, _, smem_pipe_read.index()), tCrB(_, _, _, smem_pipe_read.index()), accum);
      warpgroup_commit_batch();
      warpgroup_wait<1>();
      pipeline.consumer_release(smem_pipe_release);
      ++smem_pipe_read;
      ++smem_pipe_release;
    }
    warpgroup_wait<0>();
    pipeline.consumer_release(smem_pipe_release);
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{}));
    Tensor gC = local_tile(mC, select<0, 1>(TileShape{}), make_coord(blockIdx.x, blockIdx.y));
    Tensor tCgC = thr_mma.partition_C(gC);
    copy(accum, tCgC);
  }
}
