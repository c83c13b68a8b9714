# expect: TW2001 TW2007
# hint: -
# rebuilds: producer_acquire left out
"""The producer refills a slot without asking whether it was read."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(bf16, (2, 64, 64), swizzle=128)
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 2].expect(64 * 64 * 2)  # here
            tw.tma_load(s[c % 2], X[bm * 64, c * 64], on=full[c % 2])  # here
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 2].wait(c // 2 % 2)
            x = tw.load(s[c % 2])  # here
            done.sync()
            empty[c % 2].arrive()
            tw.store(Y[bm * 64, c * 64], x)
