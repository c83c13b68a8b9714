"""Losses: one number as output, from one block or added up by all. All are proved."""
import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="L = sum(m, sum(n, (X[m, n] - Y[m, n]) * (X[m, n] - Y[m, n]))) / (f32(M) * f32(N))", threads=256)
def mse(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), L: tw.Tensor(f32)):
    tw.grid(1)
    s = tw.zeros(f32, (4, 256))
    for i in tw.range(tw.cdiv(M, 4)):
        for c in tw.range(tw.cdiv(N, 256)):
            d = tw.load(X[i * 4 : i * 4 + 4, c * 256 : c * 256 + 256], fill=0.0) - tw.load(Y[i * 4 : i * 4 + 4, c * 256 : c * 256 + 256], fill=0.0)
            s += d * d
    tw.store(L, tw.sum(tw.sum(s, axis=1), axis=0) / (tw.f32(M) * tw.f32(N)))


@tw.kernel(target="sm_80", computes="L = 0 - sum(m, X[m, y[m]] - logsumexp(n, X[m, n])) / f32(M)", threads=256)
def nll(X: tw.Tensor(f32, M, N), y: tw.Tensor(i32, M, range=N), L: tw.Tensor(f32, zeroed=True)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=float("-inf"))
    top = tw.max(x, axis=0)
    lse = top + tw.log(tw.sum(tw.exp(x - top), axis=0))
    tw.atomic_add(L, (lse - tw.load(X[m, y[m]])) / tw.f32(M))


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n] * Z[m, n]) / (sqrt(sum(n, X[m, n] * X[m, n])) * sqrt(sum(n, Z[m, n] * Z[m, n])))", threads=128)
def cosine(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    a = tw.zeros(f32, (256,))
    b = tw.zeros(f32, (256,))
    d = tw.zeros(f32, (256,))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
        z = tw.load(Z[m, c * 256 : c * 256 + 256], fill=0.0)
        a += x * x
        b += z * z
        d += x * z
    tw.store(Y[m], tw.sum(d, axis=0) * tw.rsqrt(tw.sum(a, axis=0) * tw.sum(b, axis=0)))
