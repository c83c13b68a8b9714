# expect: TW1001
# hint: line 16: `plain` with the swizzle of `s` (swizzle=128)
# rebuilds: recast of a swizzled buffer drops the swizzle
"""TMA writes with the 128-byte swizzle; the second view of the bytes reads without it."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    plain = tw.overlay(s, bf16, (64, 64))
    full = tw.mbarrier(1)
    with tw.warpgroups(0, name="producer"):
        full[0].expect(64 * 64 * 2)
        tw.tma_load(s, X[bm * 64, bn * 64], on=full[0])
    with tw.warpgroups(1, name="consumer"):
        full[0].wait(0)
        tw.store(Y[bm * 64, bn * 64], tw.load(plain))  # here
