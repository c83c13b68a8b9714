"""Windows of a swizzled buffer that start inside a panel, at a place that only the loop knows."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=64)
def turned_by_quarters(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 16), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 16), swizzle=32)   # panels of 8 columns
    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 16 : bn * 16 + 16], fill=0))
    tw.sync()
    for j in tw.range(4):
        tw.store(Y[bn * 16 + j * 4, bm * 32], tw.load(s[:, j * 4 : j * 4 + 4].T))
