"""The GEMM of the design, as far as syntax goes."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(bf16, M, N),
         BM: tw.const = 128, BN: tw.const = 256, BK: tw.const = 64, STAGES: tw.const = 4):
    """A persistent, warp-specialised kernel."""
    sA = tw.shared(bf16, (STAGES, BM, BK), swizzle=128)
    sB = tw.shared(bf16, (STAGES, BN, BK), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)          # a FIFO channel
    HM = BM // 2
    with tw.warpgroups(0, regs=40):
        for bm, bn in tw.tiles(M, N, BM, BN, group=8):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * BM, kt * BK], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * BK], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232) as w:
        for bm, bn in tw.tiles(M, N, BM, BN, group=8):
            acc = tw.zeros(f32, (HM, BN))
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * HM : (w + 1) * HM, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release_previous()
            tw.wgmma_wait(0)
            ring.release_previous()
            tw.store(C[bm * BM + w * HM, bn * BN], acc.to(bf16))
