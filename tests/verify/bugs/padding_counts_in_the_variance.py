# expect: TW1001
# hint: line 25: `tw.where(coord(0) < N, x - mu, 0)` instead of `x - mu`
# rebuilds: layer norm of a row shorter than its tile: the padding's distance from the mean enters the variance
"""Zeros beyond the row's end leave the sum alone, but their squared distance from the mean does not."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(
    target="sm_80",
    computes="""
        let mu[m] = mean(n, X[m, n])
        let variance[m] = mean(n, (X[m, n] - mu[m]) ** 2)
        Y[m, n] = (X[m, n] - mu[m]) * rsqrt(variance[m] + eps)
    """,
    threads=128,
)
def normalise(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), eps: tw.scalar(f32)):
    tw.assume(N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=0.0)
    mu = tw.sum(x, axis=0) / N
    d = x - mu
    variance = tw.sum(d * d, axis=0) / N
    tw.store(Y[m, 0:512], d * tw.rsqrt(variance + eps))  # here
