// expect: TW4603 of 64
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;

using Product = TiledMMA<MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>, Layout<Shape<_2, _2, _1>>, Tile<_64, _64, _16>>;
using Load = TiledCopy<Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, bfloat16_t>, Layout<Shape<Shape<_4, _16>, _8>, Stride<Stride<Int<128>, _1>, _16>>, Shape<_16, _32>>;

// A ring of three stages: round k copies into one and reads another.
__global__ void __launch_bounds__(128) staged(bfloat16_t const* a, float* c, int rounds) {
  __shared__ alignas(128) bfloat16_t smem[3 * 64 * 32];
  Tensor gA = make_tensor(make_gmem_ptr(a), Layout<Shape<_64, _32>, Stride<_32, _1>>{});
  Tensor sA = make_tensor(make_smem_ptr(smem), Layout<Shape<_3, _64, _32>, Stride<_2048, _32, _1>>{});
  Tensor acc = partition_fragment_C(Product{}, Shape<_64, _64>{});
  clear(acc);
  {
    auto thread = Load{}.get_slice(threadIdx.x);
    copy(Load{}, thread.partition_S(gA), thread.partition_D(sA(0, _, _)));
  }
  cp_async_fence();
  {
    auto thread = Load{}.get_slice(threadIdx.x);
    copy(Load{}, thread.partition_S(gA), thread.partition_D(sA(1, _, _)));
  }
  cp_async_fence();
  CUTE_NO_UNROLL
  for (int k = 0; k < rounds; ++k) {
    cp_async_wait<1>();
    __syncthreads();
    {
      auto thread = Load{}.get_slice(threadIdx.x);
      copy(Load{}, thread.partition_S(gA), thread.partition_D(sA((k + 2) % 3, _, _)));
    }
    cp_async_fence();
    {
      auto loads = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, bfloat16_t>{}, Product{});
      auto thread = loads.get_slice(threadIdx.x);
      Tensor x = make_tensor<bfloat16_t>(partition_shape_A(Product{}, Shape<_64, _32>{}));
      Tensor y = make_tensor<bfloat16_t>(partition_shape_B(Product{}, Shape<_64, _32>{}));
      copy(loads, thread.partition_S(sA(k % 3, _, _)), thread.retile_D(x));
      gemm(Product{}, x, y, acc);
    }
  }
  c[threadIdx.x] = acc(0);
}
