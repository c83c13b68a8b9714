# expect: TW2002
# hint: line 22: announce 8192 bytes, not 16384: so many do the copies bring
# rebuilds: hang at the first TMA wait: transaction bytes do not match the box
"""The barrier expects more bytes than the copy brings: the phase never ends."""
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
            if c >= 2:
                empty[c % 2].wait((c // 2 + 1) % 2)
            full[c % 2].expect(2 * 64 * 64 * 2)
            tw.tma_load(s[c % 2], X[bm * 64, c * 64], on=full[c % 2])
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 2].wait(c // 2 % 2)  # here
            x = tw.load(s[c % 2])
            done.sync()
            empty[c % 2].arrive()
            tw.store(Y[bm * 64, c * 64], x)
