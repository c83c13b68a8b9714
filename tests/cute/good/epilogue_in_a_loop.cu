#include <cute/tensor.hpp>
#include <cute/arch/copy_sm90_tma.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
using E = cutlass::bfloat16_t;
using SmemLayoutD = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<E>{}, Shape<_128, _64>{}));
struct Smem { alignas(1024) E d[cosize_v<SmemLayoutD>]; };
// Each block writes its 128 x 64 tiles one after another: registers, stmatrix, TMA.
template <class TmaD>
__global__ void __launch_bounds__(128) epilogue(CUTE_GRID_CONSTANT TmaD const tma_store, float const* acc_in, int M, int N, int tiles) {
  extern __shared__ char raw[];
  Smem& smem = *reinterpret_cast<Smem*>(raw);
  Tensor sD = make_tensor(make_smem_ptr(smem.d), SmemLayoutD{});
  auto mma = make_tiled_mma(SM90_64x64x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{});
  Tensor acc = partition_fragment_C(mma, Shape<_128, _64>{});
  auto r2s = make_tiled_copy_C(Copy_Atom<SM90_U32x4_STSM_N, E>{}, mma);
  auto thr = r2s.get_slice(threadIdx.x);
  Tensor rD = make_tensor_like<E>(acc);
  Tensor tRS_rD = thr.retile_S(rD);
  Tensor tRS_sD = thr.partition_D(sD);
  Tensor mD = tma_store.get_tma_tensor(make_shape(M, N));
  auto blk = tma_store.get_slice(Int<0>{});
  Tensor tDsD = blk.partition_S(sD);
  for (int t = 0; t < tiles; ++t) {
    Tensor gD = local_tile(mD, Shape<_128, _64>{}, make_coord(blockIdx.x, t));
    Tensor tDgD = blk.partition_D(gD);
    for (int i = 0; i < size(rD); ++i) rD(i) = E(acc(i));
    copy(r2s, tRS_rD, tRS_sD);
    tma_store_fence();
    __syncthreads();
    if (threadIdx.x == 0) {
      copy(tma_store, tDsD, tDgD);
      tma_store_arrive();
      tma_store_wait<0>();
    }
    __syncthreads();
  }
}
