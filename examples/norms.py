"""Normalisations in their plain form: statistics in one pass over the chunks, the result in another. All are proved."""
import tilewright as tw
from tilewright import f32

B, G, M, N, K = tw.sizes("B G M N K")


@tw.kernel(target="sm_80", computes="""
    let mu[b, g] = sum(c in 0:8, sum(n, X[b, g, c, n])) / (8 * f32(N))
    let va[b, g] = sum(c in 0:8, sum(n, (X[b, g, c, n] - mu[b, g]) * (X[b, g, c, n] - mu[b, g]))) / (8 * f32(N))
    Y[b, g, c, n] = (X[b, g, c, n] - mu[b, g]) * rsqrt(va[b, g] + 1e-5) * W[g, c] + Bi[g, c]""", threads=256)
def group_norm(X: tw.Tensor(f32, B, G, 8, N), W: tw.Tensor(f32, G, 8), Bi: tw.Tensor(f32, G, 8), Y: tw.Tensor(f32, B, G, 8, N)):
    g, b = tw.grid(G, B)
    s = tw.zeros(f32, (8, 256))
    for c in tw.range(tw.cdiv(N, 256)):
        s += tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
    count = 8.0 * tw.f32(N)
    mu = tw.sum(tw.sum(s, axis=1), axis=0) / count
    q = tw.zeros(f32, (8, 256))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
        d = tw.where((tw.arange(256) + c * 256 < N)[None, :], x - mu, 0.0)
        q += d * d
    r = tw.rsqrt(tw.sum(tw.sum(q, axis=1), axis=0) / count + 1e-5)
    w = tw.load(W[g, 0:8])
    bi = tw.load(Bi[g, 0:8])
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[b, g, 0:8, c * 256 : c * 256 + 256], fill=0.0)
        tw.store(Y[b, g, 0, c * 256], (x - mu) * r * w[:, None] + bi[:, None])


@tw.kernel(target="sm_80", computes="""
    let mu[n] = sum(b, sum(k, X[b, n, k])) / (f32(B) * f32(K))
    let va[n] = sum(b, sum(k, X[b, n, k] * X[b, n, k])) / (f32(B) * f32(K)) - mu[n] * mu[n]
    Y[b, n, k] = (X[b, n, k] - mu[n]) / sqrt(va[n] + eps)""", threads=256)
def batch_norm(X: tw.Tensor(f32, B, N, K), Y: tw.Tensor(f32, B, N, K), eps: tw.scalar(f32)):
    n = tw.grid(N)
    s = tw.zeros(f32, (256,))
    q = tw.zeros(f32, (256,))
    for b in tw.range(B):
        for c in tw.range(tw.cdiv(K, 256)):
            x = tw.load(X[b, n, c * 256 : c * 256 + 256], fill=0.0)
            s += x
            q += x * x
    cnt = tw.f32(B) * tw.f32(K)
    mu = tw.sum(s, axis=0) / cnt
    va = tw.sum(q, axis=0) / cnt - mu * mu
    r = tw.rsqrt(va + eps)
    for b in tw.range(B):
        for c in tw.range(tw.cdiv(K, 256)):
            x = tw.load(X[b, n, c * 256 : c * 256 + 256], fill=0.0)
            tw.store(Y[b, n, c * 256], (x - mu) * r)


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] / sqrt(sum(k, X[m, k] * X[m, k]))", threads=128)
def l2norm(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    acc = tw.zeros(f32, (1024,))
    for c in tw.range(tw.cdiv(N, 1024)):
        x = tw.load(X[m, c * 1024 : c * 1024 + 1024], fill=0.0)
        acc += x * x
    r = tw.rsqrt(tw.sum(acc, axis=0))
    for c in tw.range(tw.cdiv(N, 1024)):
        x = tw.load(X[m, c * 1024 : c * 1024 + 1024], fill=0.0)
        tw.store(Y[m, c * 1024], x * r)
