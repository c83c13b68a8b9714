"""BUG: block 41 does not come to the barrier of its cluster"""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m] = X[m]", threads=128, cluster=(2, 1, 1))
def k(X: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    tw.assume(M % 2 == 0)
    b = tw.grid(M)
    if b != 41:
        tw.cluster_sync()
    tw.store(Y[b], tw.load(X[b]))
