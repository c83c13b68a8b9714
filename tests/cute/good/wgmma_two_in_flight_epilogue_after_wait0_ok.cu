#include <cute/tensor.hpp>
using namespace cute;
__global__ void __launch_bounds__(128) k(int n) {
  __shared__ half_t sa[64 * 64];
  Tensor sA = make_tensor(make_smem_ptr(sa), tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _64>{}));
  TiledMMA mma = make_tiled_mma(SM90_64x64x16_F32F16F16_SS<GMMA::Major::K, GMMA::Major::K>{});
  auto thr = mma.get_thread_slice(threadIdx.x);
  Tensor a = thr.make_fragment_A(thr.partition_A(sA));
  Tensor b = thr.make_fragment_B(thr.partition_B(sA));
  Tensor acc = partition_fragment_C(mma, Shape<_64, _64>{});
  for (int i = 0; i < n; ++i) {
    warpgroup_fence_operand(acc);
    warpgroup_arrive();
    cute::gemm(mma, a, b, acc);
    warpgroup_commit_batch();
    warpgroup_wait<1>();
    warpgroup_fence_operand(acc);
  }
  warpgroup_wait<0>();
  axpby(1.0f, acc, 0.0f, acc);
}
