# expect: TW2001 TW2007
# hint: -
# rebuilds: TMA multicast: stage reused when only the own block has released it
"""Each block refills a multicast slot when its own consumer is done; the peer's may still read it."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m % 64, n]", cluster=(2, 1, 1))
def spread(X: tw.Tensor(bf16, 64, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    tw.assume(M % 128 == 0)
    bm = tw.grid(M // 64)
    s = tw.shared(bf16, (64, 64), swizzle=128)
    full = tw.mbarrier(1)
    empty = tw.mbarrier(1)
    with tw.warpgroups(0, name="producer"):
        rank = tw.cluster_rank()
        for c in tw.range(tw.cdiv(N, 64)):
            if c >= 1:
                empty[0].wait((c + 1) % 2)
            full[0].expect(64 * 64 * 2)
            tw.tma_load(s[rank * 32 : (rank + 1) * 32, :], X[rank * 32, c * 64], on=full[0], multicast=3)  # here
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[0].wait(c % 2)
            x = tw.load(s)  # here
            done.sync()
            empty[0].arrive()
            tw.store(Y[bm * 64, c * 64], x)
