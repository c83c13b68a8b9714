"""BUG: where b % 7 == 6 and N % 5 == 4 the arrival goes to another barrier than the wait"""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m] = X[m]", threads=32)
def k(X: tw.Tensor(f32, M), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, M)):
    bar = tw.mbarrier(2, arrivals=1)
    b = tw.grid(M)
    with tw.warps(0):
        tw.store(Y[b], tw.load(X[b]))
        bar[b % 7 // 6 * (N % 5 // 4)].arrive()
        bar[0].wait(0)
