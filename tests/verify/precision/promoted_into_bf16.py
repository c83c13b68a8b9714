# expect: not proved: 
"""Each tile of K is added in bf16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def promoted_into_bf16(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 16 == 0)
    BK = 128 // bf16.bytes
    sA = tw.shared(bf16, (2, 64, BK), swizzle=128)
    sB = tw.shared(bf16, (2, 64, BK), swizzle=128)
    ring = tw.pipeline(2)
    with tw.warpgroups(0):
        for bm, bn in tw.tiles(M, N, 64, 64):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * 64, kt * BK], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * 64, kt * BK], on=ring.full(slot))
    with tw.warpgroups(1):
        for bm, bn in tw.tiles(M, N, 64, 64):
            acc = tw.zeros(f32, (64, 64))
            part = tw.zeros(f32, (64, 64))
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.wait()
                tw.wgmma(part, sA[slot], sB[slot].T, zero=True)
                tw.wgmma_wait(0)
                acc = (acc + part).to(bf16).to(f32)
                ring.release()
            tw.store(C[bm * 64, bn * 64], acc)
