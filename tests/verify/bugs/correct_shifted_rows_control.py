# expect: proved
"""Rows of any pitch, each from the multiple of 16 bytes at or before its start: what lies before the row is masked, and the tile reaches its end."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] - sum(k, X[m, k])", threads=32)
def rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 125)
    m = tw.grid(M)
    n = -(m % 4 * (N % 4) % 4)
    x = tw.load(X[m, n : n + 128], fill=0.0)
    tw.store(Y[m, n : n + 128], x - tw.sum(x, axis=0))
