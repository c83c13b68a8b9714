"""A ring of one place: every phase is waited for."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(f32, (128,))
    full = tw.mbarrier(1)
    empty = tw.mbarrier(1)
    with tw.warpgroups(0):
        nb = tw.named_barrier(1, 128)
        for i in tw.range(tw.cdiv(N, 128)):
            empty[0].wait((i + 1) % 2)
            tw.store(s, tw.load(X[i * 128 : i * 128 + 128], fill=0.0))
            nb.sync()
            full[0].arrive()
    with tw.warpgroups(1):
        nc = tw.named_barrier(2, 128)
        for i in tw.range(tw.cdiv(N, 128)):
            full[0].wait(i % 2)
            tw.store(Y[i * 128], tw.load(s))
            nc.sync()
            empty[0].arrive()
