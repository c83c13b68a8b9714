# expect: TW2001
# hint: -
# rebuilds: two consumer warpgroups, empty barrier counts one
"""Two warpgroups read a slot; one of them hands it back without knowing whether the other's wgmma is done."""
import tilewright as tw
from tilewright import bf16, f32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="C[m, n] = sum(k, f32(A[m, k]) * f32(B[n, k]))")
def gemm(A: tw.Tensor(bf16, M, K), B: tw.Tensor(bf16, N, K), C: tw.Tensor(f32, M, N)):
    tw.assume(K % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 128), tw.cdiv(N, 64))
    sA = tw.shared(bf16, (2, 128, 64), swizzle=128)
    sB = tw.shared(bf16, (2, 64, 64), swizzle=128)
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0, name="producer"):
        for kt in tw.range(tw.cdiv(K, 64)):
            if kt >= 2:
                empty[kt % 2].wait((kt // 2 + 1) % 2)
            full[kt % 2].expect((128 + 64) * 64 * 2)
            tw.tma_load(sA[kt % 2], A[bm * 128, kt * 64], on=full[kt % 2])  # here
            tw.tma_load(sB[kt % 2], B[bn * 64, kt * 64], on=full[kt % 2])  # here
    with tw.warpgroups(1, 2, name="consumer") as w:
        acc = tw.zeros(f32, (64, 64))
        for kt in tw.range(tw.cdiv(K, 64)):
            full[kt % 2].wait(kt // 2 % 2)
            tw.wgmma(acc, sA[kt % 2, w * 64 : (w + 1) * 64, :], sB[kt % 2].T)  # here
            tw.wgmma_wait(0)
            if w == 0:
                empty[kt % 2].arrive()
        tw.store(C[bm * 128 + w * 64, bn * 64], acc)
