# expect: TW2005 TW2001
# hint: add tw.sync() after line 24
# rebuilds: cp.async.wait_group without __syncthreads
"""Copies have landed for the thread that made them only: the block's barrier is missing."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))", threads=128)
def gemm(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    sA = tw.shared(bf16, (3, 32, 32), swizzle=64)
    sB = tw.shared(bf16, (3, 32, 32), swizzle=64)
    acc = tw.zeros(f32, (32, 32), layout=tw.mma_c(warps=(2, 2)))
    steps = tw.cdiv(K, 32)
    for s in tw.unroll(2):
        tw.cp_async(sA[s], A[bm * 32, s * 32])  # here
        tw.cp_async(sB[s], B[bn * 32, s * 32])  # here
        tw.cp_async_commit()
    for kt in tw.range(steps):
        tw.cp_async_wait(1)
        nxt = kt + 2
        if nxt < steps:
            tw.cp_async(sA[nxt % 3], A[bm * 32, nxt * 32])  # here
            tw.cp_async(sB[nxt % 3], B[bn * 32, nxt * 32])  # here
        tw.cp_async_commit()
        for kk in tw.unroll(2):
            a = tw.load(sA[kt % 3, :, kk * 16 : kk * 16 + 16], layout=tw.mma_a())  # here
            b = tw.load(sB[kt % 3, :, kk * 16 : kk * 16 + 16], layout=tw.mma_b())  # here
            tw.mma(acc, a, b)
    tw.store(C[bm * 32, bn * 32], acc)
