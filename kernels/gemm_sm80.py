"""GEMM for Ampere: cp.async fills a ring of stages, ldmatrix and mma.sync consume them."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")
i, j, k = tw.parameters("i j k")  # coordinates in tw.expect

@tw.kernel(target="sm_80", name="gemm", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))", threads=128)
def gemm_aligned(
    A: tw.Tensor(bf16, M, K),
    B: tw.Tensor(bf16, N, K),
    C: tw.Tensor(bf16, M, N),
    BM: tw.const(64, 128) = 128,
    BN: tw.const(64, 128) = 128,
    BK: tw.const(32, 64) = 32,
    STAGES: tw.const(2, 3, 4) = 3,
):
    """STAGES - 1 copies are in flight while one stage is multiplied; rows beyond the edges are filled with zeros."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, BM), tw.cdiv(N, BN))
    sA = tw.shared(bf16, (STAGES, BM, BK), swizzle=64)
    sB = tw.shared(bf16, (STAGES, BN, BK), swizzle=64)
    acc = tw.zeros(f32, (BM, BN), layout=tw.mma_c(warps=(2, 2)))
    steps = tw.cdiv(K, BK)
    for s in tw.unroll(STAGES - 1):
        tw.cp_async(sA[s], A[bm * BM, s * BK])
        tw.cp_async(sB[s], B[bn * BN, s * BK])
        tw.cp_async_commit()
    for kt in tw.range(steps):
        tw.cp_async_wait(STAGES - 2)
        tw.sync()
        nxt = kt + STAGES - 1
        if nxt < steps:
            tw.cp_async(sA[nxt % STAGES], A[bm * BM, nxt * BK])
            tw.cp_async(sB[nxt % STAGES], B[bn * BN, nxt * BK])
        tw.cp_async_commit()
        slot = kt % STAGES
        for kk in tw.unroll(BK // 16):
            a = tw.load(sA[slot, :, kk * 16 : kk * 16 + 16], layout=tw.mma_a())
            b = tw.load(sB[slot, :, kk * 16 : kk * 16 + 16], layout=tw.mma_b())
            tw.expect(a[i, k].k == b[j, k].k)
            tw.mma(acc, a, b)
    tw.expect(tw.covers(acc.k, 0, K))
    tw.store(C[bm * BM, bn * BN], acc.to(bf16))
