# expect: TW2001 TW2003
# hint: -
# rebuilds: wgmma wait unsynchronised across warpgroups: epilogue staging overwrites operands of the other one
"""Each warpgroup waits for its own wgmma, then stages its result in sB, which the other warpgroup's wgmma may still read."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="C[m, n] = bf16(sum(k, f32(A[m, k]) * f32(B[n, k])))")
def gemm(A: tw.Tensor(bf16, M, 64), B: tw.Tensor(bf16, N, 64), C: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 128), tw.cdiv(N, 64))
    sA = tw.shared(bf16, (128, 64), swizzle=128)
    sB = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1)
    with tw.warpgroups(0, name="producer"):
        full[0].expect((128 + 64) * 64 * 2)
        tw.tma_load(sA, A[bm * 128, 0], on=full[0])
        tw.tma_load(sB, B[bn * 64, 0], on=full[0])
    with tw.warpgroups(1, 2, name="consumer") as w:
        acc = tw.zeros(f32, (64, 64))
        full[0].wait(0)
        tw.wgmma(acc, sA[w * 64 : (w + 1) * 64, :], sB.T)  # here
        tw.wgmma_wait(0)
        if w == 0:
            tw.store(sB, acc.to(bf16))  # here
        tw.store(C[bm * 128 + w * 64, bn * 64], acc.to(bf16))
