# expect: TW2001
# hint: -
# rebuilds: TMA: two copies in flight to one stage, the one that was meant to be replaced lands last
"""The slot is filled twice within one phase: which of the two loads is the last to land is nobody's guarantee."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def overtaken(W: tw.Tensor(bf16, M, N), X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1)
    full[0].expect(2 * 64 * 64 * 2)
    tw.tma_load(s, W[bm * 64, bn * 64], on=full[0])  # here
    tw.tma_load(s, X[bm * 64, bn * 64], on=full[0])  # here
    full[0].wait(0)
    tw.store(Y[bm * 64, bn * 64], tw.load(s))
