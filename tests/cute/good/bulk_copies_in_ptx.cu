#include <cute/tensor.hpp>
#include <cutlass/arch/barrier.h>
using namespace cute;
// 1D bulk copies by an mbarrier in inline PTX, two buffers.
__device__ __forceinline__ uint32_t smem_u32(void const* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void mbar_init(uint64_t* b, uint32_t n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_u32(b)), "r"(n)); }
__device__ __forceinline__ void mbar_expect(uint64_t* b, uint32_t bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_u32(b)), "r"(bytes)); }
__device__ __forceinline__ void mbar_wait(uint64_t* b, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra D;\nbra W;\nD:\n}" ::"r"(smem_u32(b)), "r"(parity));
}
__global__ void __launch_bounds__(128) stream(float const* in, float* out, int n) {
  __shared__ alignas(128) float buf[2][1024];
  __shared__ alignas(8) uint64_t bar[2];
  if (threadIdx.x == 0) { mbar_init(&bar[0], 1); mbar_init(&bar[1], 1); }
  cutlass::arch::fence_barrier_init();
  __syncthreads();
  auto atom = Copy_Atom<SM90_BULK_COPY_AUTO, float>{};
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2 && i < n; ++i) {
      mbar_expect(&bar[i], 4096);
      Tensor d = make_tensor(make_smem_ptr(buf[i]), Layout<_1024>{});
      Tensor g = make_tensor(make_gmem_ptr(in + i * 1024), Layout<_1024>{});
      copy(atom.with(bar[i]), g, d);
    }
  }
  for (int i = 0; i < n; ++i) {
    int const s = i % 2;
    mbar_wait(&bar[s], (i / 2) & 1);
    float x[8];
    for (int j = 0; j < 8; ++j) x[j] = buf[s][threadIdx.x + 128 * j];
    __syncthreads();
    if (threadIdx.x == 0 && i + 2 < n) {
      mbar_expect(&bar[s], 4096);
      Tensor d = make_tensor(make_smem_ptr(buf[s]), Layout<_1024>{});
      Tensor g = make_tensor(make_gmem_ptr(in + (i + 2) * 1024), Layout<_1024>{});
      copy(atom.with(bar[s]), g, d);
    }
    for (int j = 0; j < 8; ++j) out[i * 1024 + threadIdx.x + 128 * j] = 2 * x[j];
  }
}
