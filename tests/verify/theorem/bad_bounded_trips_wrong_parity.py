"""BUG: waits for parity 0 in every iteration: deadlock from two rows on, N >= 43. Instances have N = 1, 2, 3, cap: one row."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=64)
def k(X: tw.Tensor(f32, 1 + N * 3 // 128, 128), Y: tw.Tensor(f32, 1 + N * 3 // 128, 128)):
    tw.assume(N <= 100000)
    bar = tw.mbarrier(1, arrivals=1)
    with tw.warps(0):
        for m in tw.range(1 + N * 3 // 128):
            tw.store(Y[m, 0:128], tw.load(X[m, 0:128]))
            tw.syncwarp()
            bar[0].arrive()
            bar[0].wait(0)
