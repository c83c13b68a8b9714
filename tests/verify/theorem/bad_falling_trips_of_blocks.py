"""BUG: from block 30 on no iteration runs and nobody arrives"""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_90a", computes="Y[m] = X[m]")
def k(X: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    bar = tw.mbarrier(1, arrivals=1)
    b = tw.grid(M)
    with tw.warpgroups(0):
        for c in tw.range(tw.max(30 - b, 0)):
            if c == 0:
                bar[0].arrive()
        tw.store(Y[b], tw.load(X[b]))
    with tw.warpgroups(1):
        bar[0].wait(0)
