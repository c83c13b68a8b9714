"""BUG: deadlock where the number of tiles is 3 n + 1 (N = 8192); N is a multiple of 4096, and all instances have 32 tiles or none"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=32)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4096 == 0)
    bar = tw.mbarrier(1, arrivals=1)
    with tw.warps(0):
        i = 0
        bar[0].arrive()
        bar[0].wait(0)
        for c in tw.range(tw.cdiv(N, 128)):
            tw.store(Y[c * 128 : c * 128 + 128], tw.load(X[c * 128 : c * 128 + 128], fill=0.0))
            i = (i + 1) % 3
        if i == 1:
            bar[0].wait(1)
