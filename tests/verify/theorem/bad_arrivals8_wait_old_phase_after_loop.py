"""BUG: every iteration arrives at a barrier of 16 arrivals; wait(1) returns at once while fewer than 16 came, blocks for 16 to 31 tiles."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    bar = tw.mbarrier(1, arrivals=16)
    with tw.warpgroups(0):
        for c in tw.range(tw.cdiv(N, 128)):
            tw.store(Y[c * 128], tw.load(X[c * 128 : c * 128 + 128], fill=0.0))
            bar[0].arrive()
        bar[0].wait(1)
