"""BUG: deadlock for an odd number of tiles; with N >= 5000 all instances have 40"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=32)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N >= 5000)
    bar = tw.mbarrier(1, arrivals=1)
    with tw.warps(0):
        for c in tw.range(tw.cdiv(N, 128)):
            tw.store(Y[c * 128 : c * 128 + 128], tw.load(X[c * 128 : c * 128 + 128], fill=0.0))
            tw.syncwarp()
            bar[0].arrive()
            bar[0].wait(c % 2)
            tw.syncwarp()
        bar[0].wait(1)
