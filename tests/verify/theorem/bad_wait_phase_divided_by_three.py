"""BUG: a ring of two places whose phase counts rounds of three: the third wait is let through by the first round"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(f32, (2, 128))
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0):
        nb = tw.named_barrier(1, 128)
        c = 0
        for t in tw.persistent(tw.cdiv(N, 128)):
            empty[c % 2].wait((c // 3 + 1) % 2)
            tw.store(s[c % 2], tw.load(X[t * 128 : t * 128 + 128], fill=0.0))
            nb.sync()
            full[c % 2].arrive()
            c = c + 1
    with tw.warpgroups(1):
        nc = tw.named_barrier(2, 128)
        c = 0
        for t in tw.persistent(tw.cdiv(N, 128)):
            full[c % 2].wait(c // 3 % 2)
            tw.store(Y[t * 128], tw.load(s[c % 2]))
            nc.sync()
            empty[c % 2].arrive()
            c = c + 1
