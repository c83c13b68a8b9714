"""BUG: warp 7 writes and warp 8 reads with no barrier, where just 8 warps lie before the end: 42 < N - 2 b <= 48"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=512)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    bar = tw.mbarrier(16, arrivals=1)
    b = tw.grid(tw.cdiv(N, 2))
    tw.store(Y[b * 2 : b * 2 + 2], tw.load(X[b * 2 : b * 2 + 2], fill=0.0))
    with tw.warps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) as w:
        if b * 2 + w * 6 < N:
            bar[w].arrive()
        else:
            if w == 8 and b * 2 + 42 < N:
                bar[8].wait(0)
