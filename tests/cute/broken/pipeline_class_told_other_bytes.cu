// expect: TW4610 expects 16384 bytes
// Warp-specialised with cutlass::PipelineTmaAsync, in the style of tutorials.
#include <cute/tensor.hpp>
#include <cutlass/cutlass.h>
#include <cutlass/pipeline/pipeline.hpp>
#include <cutlass/arch/reg_reconfig.h>
using namespace cute;
using Element = cutlass::half_t;
static constexpr int kStages = 4;
using MainloopPipeline = cutlass::PipelineTmaAsync<kStages>;
using PipelineState = cutlass::PipelineState<kStages>;
using SmemLayoutA = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{}, Shape<_128, _64, Int<kStages>>{}));
using SmemLayoutB = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<Element>{}, Shape<_128, _64, Int<kStages>>{}));
struct SharedStorage {
  alignas(128) cute::array_aligned<Element, cosize_v<SmemLayoutA>> smem_a;
  alignas(128) cute::array_aligned<Element, cosize_v<SmemLayoutB>> smem_b;
  typename MainloopPipeline::SharedStorage pipeline;
};
template <class TmaA, class TmaB, class TC>
__global__ __launch_bounds__(256) void gemm_ws(CUTLASS_GRID_CONSTANT TmaA const tma_a, CUTLASS_GRID_CONSTANT TmaB const tma_b, TC* C, int M, int N, int K) {
  extern __shared__ char smem_raw[];
  SharedStorage& shared = *reinterpret_cast<SharedStorage*>(smem_raw);
  int warp_group_idx = cutlass::canonical_warp_group_idx();
  int warp_idx_in_wg = cutlass::canonical_warp_idx_sync() % 4;
  int const lane_predicate = cute::elect_one_sync();
  Tensor sA = make_tensor(make_smem_ptr(shared.smem_a.data()), SmemLayoutA{});
  Tensor sB = make_tensor(make_smem_ptr(shared.smem_b.data()), SmemLayoutB{});
  typename MainloopPipeline::Params params;
  params.transaction_bytes = (128 * 64) * sizeof(Element);
  params.role = warp_group_idx == 0 ? MainloopPipeline::ThreadCategory::Producer : MainloopPipeline::ThreadCategory::Consumer;
  params.is_leader = threadIdx.x % 128 == 0;
  params.num_consumers = 128;
  MainloopPipeline pipeline(shared.pipeline, params, Shape<_1, _1, _1>{});
  __syncthreads();
  Tensor mA = tma_a.get_tma_tensor(make_shape(M, K));
  Tensor mB = tma_b.get_tma_tensor(make_shape(N, K));
  Tensor gA = local_tile(mA, Shape<_128, _64>{}, make_coord(blockIdx.x, _));
  Tensor gB = local_tile(mB, Shape<_128, _64>{}, make_coord(blockIdx.y, _));
  int k_tiles = size<2>(gA);
  if (warp_group_idx == 0) {
    cutlass::arch::warpgroup_reg_dealloc<24>();
    if (warp_idx_in_wg == 0 && lane_predicate) {
      auto [tAgA, tAsA] = tma_partition(tma_a, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(sA), group_modes<0, 2>(gA));
      auto [tBgB, tBsB] = tma_partition(tma_b, Int<0>{}, Layout<_1>{}, group_modes<0, 2>(sB), group_modes<0, 2>(gB));
      PipelineState smem_pipe_write = cutlass::make_producer_start_state<MainloopPipeline>();
      for (int k = 0; k < k_tiles; ++k) {
        pipeline.producer_acquire(smem_pipe_write);
        auto* bar = pipeline.producer_get_barrier(smem_pipe_write);
        copy(tma_a.with(*bar, 0), tAgA(_, k), tAsA(_, smem_pipe_write.index()));
        copy(tma_b.with(*bar, 0), tBgB(_, k), tBsB(_, smem_pipe_write.index()));
        ++smem_pipe_write;
      }
      pipeline.producer_tail(smem_pipe_write);
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<240>();
    TiledMMA mma = make_tiled_mma(SM90_64x128x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{}, Layout<Shape<_1, _1, _1>>{});
    auto thr_mma = mma.get_thread_slice(threadIdx.x - 128);
    Tensor tCrA = thr_mma.make_fragment_A(thr_mma.partition_A(sA));
    Tensor tCrB = thr_mma.make_fragment_B(thr_mma.partition_B(sB));
    Tensor acc = partition_fragment_C(mma, Shape<_128, _128>{});
    clear(acc);
    PipelineState read, release;
    for (int k = 0; k < k_tiles; ++k) {
      auto token = pipeline.consumer_try_wait(read);
      pipeline.consumer_wait(read, token);
      warpgroup_arrive();
      gemm(mma, tCrA(_, _, _, read.index()), tCrB(_, _, _, read.index()), acc);
      warpgroup_commit_batch();
      warpgroup_wait<0>();
      pipeline.consumer_release(read);
      ++read;
    }
    Tensor mC = make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{}));
    Tensor gC = local_tile(mC, Shape<_128, _128>{}, make_coord(blockIdx.x, blockIdx.y));
    Tensor tCgC = thr_mma.partition_C(gC);
    copy(acc, tCgC);
  }
}
