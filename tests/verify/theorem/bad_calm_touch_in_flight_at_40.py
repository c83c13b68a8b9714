"""BUG: the accumulator is in flight when it is touched in iteration 40"""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def k(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    sA = tw.shared(bf16, (3, 64, 64), swizzle=128)
    sB = tw.shared(bf16, (3, 64, 64), swizzle=128)
    ring = tw.pipeline(3)
    with tw.warpgroups(0):
        for kt in tw.range(tw.cdiv(K, 64)):
            slot = ring.acquire()
            tw.tma_load(sA[slot], A[bm * 64, kt * 64], on=ring.full(slot))
            tw.tma_load(sB[slot], B[bn * 64, kt * 64], on=ring.full(slot))
    with tw.warpgroups(1):
        acc = tw.zeros(f32, (64, 64))
        for kt in tw.range(tw.cdiv(K, 64)):
            if kt == 0 or kt == 40:
                acc = acc * 1.0
            slot = ring.wait()
            tw.wgmma(acc, sA[slot], sB[slot].T)
            tw.wgmma_wait(1)
            ring.release(keep=1)
        tw.wgmma_wait(0)
        ring.release()
        tw.store(C[bm * 64, bn * 64], acc)
