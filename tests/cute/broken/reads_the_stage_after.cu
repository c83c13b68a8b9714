// expect: TW4609 its group is not waited for
// sm80, written with ints, row-major tiles, a ring of four stages; each turn issues the copies for three turns later.
#include <cute/tensor.hpp>
using namespace cute;
constexpr int S = 4;
using L = Layout<Shape<_64, _64, Int<S>>, Stride<_64, _1, Int<4096>>>;
using Sm = decltype(composition(Swizzle<3, 3, 3>{}, L{}));
using Cp = decltype(make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, bfloat16_t>{}, Layout<Shape<_16, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, _8>>{}));
using Mm = TiledMMA<MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>, Layout<Shape<_2, _2, _1>>, Tile<_32, _32, _16>>;
__global__ void __launch_bounds__(128) gemm(bfloat16_t const* A, bfloat16_t const* B, float* C, int M, int N, int K) {
  extern __shared__ __align__(128) unsigned char buf[];
  bfloat16_t* pa = reinterpret_cast<bfloat16_t*>(buf);
  Tensor sA = make_tensor(make_smem_ptr(pa), Sm{});
  Tensor sB = make_tensor(make_smem_ptr(pa + cosize_v<Sm>), Sm{});
  Tensor gA = local_tile(make_tensor(make_gmem_ptr(A), make_shape(M, K), make_stride(K, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.x, _));
  Tensor gB = local_tile(make_tensor(make_gmem_ptr(B), make_shape(N, K), make_stride(K, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.y, _));
  Tensor gC = local_tile(make_tensor(make_gmem_ptr(C), make_shape(M, N), make_stride(N, _1{})), Shape<_64, _64>{}, make_coord(blockIdx.x, blockIdx.y));
  Cp cp;
  auto tc = cp.get_slice(threadIdx.x);
  Tensor a_g = tc.partition_S(gA), a_s = tc.partition_D(sA), b_g = tc.partition_S(gB), b_s = tc.partition_D(sB);
  Mm mm;
  auto tm = mm.get_slice(threadIdx.x);
  Tensor ra = tm.partition_fragment_A(sA(_, _, 0)), rb = tm.partition_fragment_B(sB(_, _, 0));
  Tensor rc = partition_fragment_C(mm, Shape<_64, _64>{});
  clear(rc);
  auto ca = make_tiled_copy_A(Copy_Atom<SM75_U32x4_LDSM_N, bfloat16_t>{}, mm);
  auto cb = make_tiled_copy_B(Copy_Atom<SM75_U32x2_LDSM_N, bfloat16_t>{}, mm);
  auto tca = ca.get_slice(threadIdx.x);
  auto tcb = cb.get_slice(threadIdx.x);
  int const n = K / 64;
  auto issue = [&](int k) {
    if (k < n) {
      copy(cp, a_g(_, _, _, k), a_s(_, _, _, k % S));
      copy(cp, b_g(_, _, _, k), b_s(_, _, _, k % S));
    }
    cp_async_fence();
  };
  for (int k = 0; k < S - 1; ++k) issue(k);
  for (int k = 0; k < n; ++k) {
    cp_async_wait<S - 2>();
    __syncthreads();
    issue(k + S - 1);
    int st = (k + 1) % S;
    copy(ca, tca.partition_S(sA)(_, _, _, st), tca.retile_D(ra));
    copy(cb, tcb.partition_S(sB)(_, _, _, st), tcb.retile_D(rb));
    gemm(mm, ra, rb, rc);
  }
  copy(rc, tm.partition_C(gC));
}
