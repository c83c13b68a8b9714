# expect: TW2003
# hint: add tw.fence_async() after line 20
# rebuilds: cp.async feeding wgmma with no proxy fence: wrong now and then
"""cp.async writes through the generic proxy: waiting for it and a barrier are not enough before wgmma reads."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", threads=128)
def gemm(A: tw.Tensor(bf16, M, 64), B: tw.Tensor(bf16, N, 64), C: tw.Tensor(f32, M, N)):
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    sA = tw.shared(bf16, (64, 64), swizzle=128)
    sB = tw.shared(bf16, (64, 64), swizzle=128)
    acc = tw.zeros(f32, (64, 64), layout=tw.wgmma_c())
    tw.cp_async(sA, A[bm * 64, 0])  # here
    tw.cp_async(sB, B[bn * 64, 0])  # here
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    tw.wgmma(acc, sA, sB.T)  # here
    tw.wgmma_wait(0)
    tw.store(C[bm * 64, bn * 64], acc)
