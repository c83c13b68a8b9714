// expect: TW4610 initialised for 128 arrivals, and its phase gets 96
// What one often sees: small wrappers over PTX.
#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
__device__ __forceinline__ void mbar_init(uint64_t* bar, uint32_t count) {
  uint32_t addr = cute::cast_smem_ptr_to_uint(bar);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(addr), "r"(count));
}
__device__ __forceinline__ void mbar_expect_tx(uint64_t* bar, uint32_t bytes) {
  uint32_t addr = cute::cast_smem_ptr_to_uint(bar);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(addr), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbar_arrive(uint64_t* bar) {
  uint32_t addr = cute::cast_smem_ptr_to_uint(bar);
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(addr) : "memory");
}
__device__ __forceinline__ void mbar_wait(uint64_t* bar, uint32_t parity) {
  uint32_t addr = cute::cast_smem_ptr_to_uint(bar);
  asm volatile("{\n.reg .pred p;\nL:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra L;\nD:\n}" ::"r"(addr), "r"(parity) : "memory");
}
using Tile = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<_64, _64>{}));
template <class Tma>
__global__ void __launch_bounds__(128) scale_tiles(CUTE_GRID_CONSTANT Tma const tma, half_t* out, int M, int K, float f) {
  __shared__ alignas(1024) half_t buf[2][64 * 64];
  __shared__ uint64_t full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) { mbar_init(&full[i], 1); mbar_init(&empty[i], 128); }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  int n = K / 64;
  if (threadIdx.x < 32) {
    if (cute::elect_one_sync()) {
      for (int k = 0; k < n; ++k) {
        int st = k % 2;
        mbar_wait(&empty[st], ((k / 2) & 1) ^ 1);
        mbar_expect_tx(&full[st], 64 * 64 * 2);
        Tensor s = make_tensor(make_smem_ptr(buf[st]), Tile{});
        Tensor g = local_tile(tma.get_tma_tensor(make_shape(M, K)), Shape<_64, _64>{}, make_coord(blockIdx.x, k));
        auto cta = tma.get_slice(0);
        copy(tma.with(full[st]), cta.partition_S(g), cta.partition_D(s));
      }
    }
  } else {
    for (int k = 0; k < n; ++k) {
      int st = k % 2;
      mbar_wait(&full[st], (k / 2) & 1);
      Tensor s = make_tensor(make_smem_ptr(buf[st]), Tile{});
      for (int i = threadIdx.x - 32; i < 64 * 64; i += 96) {
        int r = i / 64, c = i % 64;
        out[(blockIdx.x * 64 + r) * K + k * 64 + c] = half_t(float(s(r, c)) * f);
      }
      mbar_arrive(&empty[st]);
    }
  }
}
