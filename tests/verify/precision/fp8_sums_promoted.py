# expect: proved
"""Each tile of K is moved to f32."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def fp8_sums_promoted(A: tw.Tensor(e4m3, M, K), B: tw.Tensor(e4m3, N, K), C: tw.Tensor(bf16, M, N)):
    tw.assume(K % 16 == 0)
    BK = 128 // e4m3.bytes
    sA = tw.shared(e4m3, (2, 64, BK), swizzle=128)
    sB = tw.shared(e4m3, (2, 64, BK), swizzle=128)
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
                acc = acc + part
                ring.release()
            tw.store(C[bm * 64, bn * 64], acc.to(bf16))
