"""GEMM for Hopper: a TMA producer warpgroup feeds two wgmma consumers through a ring of shared-memory stages."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N, K = tw.sizes("M N K")
T = tw.parameters("T")

@tw.kernel(target="sm_90a", name="gemm", computes="C[m, n] = T(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm_aligned(
    A: tw.Tensor(T, M, K),
    B: tw.Tensor(T, N, K),
    C: tw.Tensor(T, M, N),
    T: tw.each(bf16, f16),
    BM: tw.const(128) = 128,
    BN: tw.const(128, 256) = 256,
    BK: tw.const(64, 128) = 64,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    GROUP: tw.const(1, 4, 8, 16) = 8,
):
    """Persistent blocks walk the tiles in a grouped raster, so that neighbours share rows of A and B in L2."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    assert BM == 128, "two consumers of 64 rows each"
    assert BN % 128 == 0, "an even number of 64-column chunks, so that the two store buffers alternate across tiles"
    HM = BM // 2
    sA = tw.shared(T, (STAGES, BM, BK), swizzle=128)
    sB = tw.shared(T, (STAGES, BN, BK), swizzle=128)
    sC = tw.shared(T, (2, 2, HM, 64), swizzle=128)  # two buffers for each consumer
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.acquire()
                tw.tma_load(sA[slot], A[bm * BM, kt * BK], on=ring.full(slot))
                tw.tma_load(sB[slot], B[bn * BN, kt * BK], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        done = tw.named_barrier(1 + w, 128)
        for bm, bn in tw.tiles(M, N, BM, BN, group=GROUP):
            acc = tw.zeros(f32, (HM, BN))
            for kt in tw.range(tw.cdiv(K, BK)):
                slot = ring.wait()
                tw.wgmma(acc, sA[slot, w * HM : (w + 1) * HM, :], sB[slot].T)
                tw.wgmma_wait(1)
                ring.release(keep=1)
            tw.wgmma_wait(0)
            ring.release()
            for j in tw.unroll(BN // 64):
                tw.tma_store_wait(1, read=True)  # the store before last has read this buffer
                done.sync()
                tw.store(sC[w, j % 2], acc[:, j * 64 : j * 64 + 64].to(T))
                tw.fence_async()
                done.sync()
                tw.tma_store(C[bm * BM + w * HM, bn * BN + j * 64], sC[w, j % 2])
                tw.tma_store_commit()
        tw.tma_store_wait(0)
