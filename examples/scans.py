"""Cumulative sums that start or end elsewhere. All are proved."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(k in 0:n, X[m, k])", threads=128)
def exclusive_cumsum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    tw.store(Y[m, 0:1024], tw.cumsum(x, axis=0) - x)


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(k in n:N, X[m, k])", threads=128)
def reverse_cumsum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    total = tw.sum(x, axis=0)
    c = tw.cumsum(x, axis=0)
    tw.store(Y[m, 0:1024], total - c + x)
