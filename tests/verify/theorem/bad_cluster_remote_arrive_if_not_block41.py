"""BUG: block 41 does not arrive at block 40, which waits"""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m] = X[m]", threads=32, cluster=(2, 1, 1))
def k(X: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    tw.assume(M % 2 == 0)
    b = tw.grid(M)
    bar = tw.mbarrier(1, arrivals=1)
    with tw.warps(0):
        if b != 41:
            bar[0].arrive(rank=1 - tw.cluster_rank())
        if b != 41:
            bar[0].wait(0)
        tw.store(Y[b], tw.load(X[b]))
