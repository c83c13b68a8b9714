"""Cumulative sum along rows: scan inside a chunk, carry between chunks."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(j in 0:n+1, X[m, j])", threads=128)
def cumsum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), BN: tw.const(512, 1024, 2048) = 1024):
    """One row per block; the carry is the sum of all chunks before."""
    m = tw.grid(M)
    carry = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N, BN)):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0)
        tw.store(Y[m, c * BN : c * BN + BN], tw.cumsum(x, axis=0) + carry)
        carry = carry + tw.sum(x, axis=0)
