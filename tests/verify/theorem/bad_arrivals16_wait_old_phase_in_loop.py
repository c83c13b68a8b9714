"""BUG: the wait for the phase before returns at once, until the 16th arrival ends phase 0: then it blocks for ever."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    bar = tw.mbarrier(1, arrivals=16)
    with tw.warpgroups(0):
        for c in tw.range(tw.cdiv(N, 128)):
            bar[0].wait(1)
            tw.store(Y[c * 128], tw.load(X[c * 128 : c * 128 + 128], fill=0.0))
            bar[0].arrive()
