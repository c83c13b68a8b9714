"""BUG: with 8 to 15 warps before the end of N the phase is over and the wait for the one before never ends: 43 <= N - 2 b <= 90"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=544)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    bar = tw.mbarrier(1, arrivals=8)
    b = tw.grid(tw.cdiv(N, 2))
    tw.store(Y[b * 2 : b * 2 + 2], tw.load(X[b * 2 : b * 2 + 2], fill=0.0))
    with tw.warps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) as w:
        if b * 2 + w * 6 < N:
            bar[0].arrive()
    tw.sync()
    with tw.warps(16):
        bar[0].wait(1)
