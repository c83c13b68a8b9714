"""Convolutions and pooling: windows that the edges cut, one block for 128 outputs of a row. All are proved."""
import tilewright as tw
from tilewright import f32

B, H, M, N, K, D, T = tw.sizes("B H M N K D T")


@tw.kernel(target="sm_80", computes="Y[b, d] = sum(k in 0:3, X[b, d + k] * W[k])", threads=128)
def conv1d(X: tw.Tensor(f32, B, D + 2), W: tw.Tensor(f32, 3), Y: tw.Tensor(f32, B, D)):
    i, b = tw.grid(tw.cdiv(D, 128), B)
    acc = tw.zeros(f32, (128,))
    for k in tw.unroll(3):
        acc += tw.load(X[b, i * 128 + k : i * 128 + k + 128], fill=0.0) * tw.load(W[k])
    tw.store(Y[b, i * 128], acc)


@tw.kernel(target="sm_80", computes="Y[b, t] = sum(k in 0:min(t + 1, 4), X[b, t - k] * W[k])", threads=128)
def causal_conv(X: tw.Tensor(f32, B, T), W: tw.Tensor(f32, 4), Y: tw.Tensor(f32, B, T)):
    i, b = tw.grid(tw.cdiv(T, 128), B)
    acc = tw.zeros(f32, (128,))
    for k in tw.unroll(4):
        acc += tw.load(X[b, i * 128 - k : i * 128 - k + 128], fill=0.0) * tw.load(W[k])
    tw.store(Y[b, i * 128], acc)


@tw.kernel(target="sm_80", computes="Y[b, i, j] = sum(p in 0:3, sum(q in 0:3, where(i + p - 1 >= 0 and i + p - 1 < M and j + q - 1 >= 0 and j + q - 1 < N, X[b, i + p - 1, j + q - 1], 0) * W[p, q]))", threads=128)
def same_conv(X: tw.Tensor(f32, B, M, N), W: tw.Tensor(f32, 3, 3), Y: tw.Tensor(f32, B, M, N)):
    j, i, b = tw.grid(tw.cdiv(N, 128), M, B)
    acc = tw.zeros(f32, (1, 128))
    for p in tw.unroll(3):
        for q in tw.unroll(3):
            acc += tw.load(X[b, i + p - 1 : i + p, j * 128 + q - 1 : j * 128 + q + 127], fill=0.0) * tw.load(W[p, q])
    tw.store(Y[b, i : i + 1, j * 128 : j * 128 + 128], acc)


@tw.kernel(target="sm_80", computes="Y[b, i, j] = sum(c, sum(p in 0:3, sum(q in 0:3, X[b, c, i + p, j + q] * W[c, p, q])))", threads=128)
def conv2d(X: tw.Tensor(f32, B, K, M + 2, N + 2), W: tw.Tensor(f32, K, 3, 3), Y: tw.Tensor(f32, B, M, N)):
    j, i, b = tw.grid(tw.cdiv(N, 128), M, B)
    acc = tw.zeros(f32, (128,))
    for c in tw.range(K):
        for p in tw.unroll(3):
            for q in tw.unroll(3):
                acc += tw.load(X[b, c, i + p, j * 128 + q : j * 128 + q + 128], fill=0.0) * tw.load(W[c, p, q])
    tw.store(Y[b, i, j * 128], acc)


@tw.kernel(target="sm_80", computes="Y[b, h, i, j] = max(p in 0:2, max(q in 0:2, X[b, h, 2 * i + p, 2 * j + q]))", threads=128)
def pool2d(X: tw.Tensor(f32, B, H, 2 * M, 2 * N), Y: tw.Tensor(f32, B, H, M, N)):
    j, i, bh = tw.grid(tw.cdiv(N, 128), M, B * H)
    b = bh // H
    h = bh % H
    best = tw.full(f32, (128,), float("-inf"))
    cols = (tw.arange(128) + j * 128) * 2
    for p in tw.unroll(2):
        for q in tw.unroll(2):
            best = tw.maximum(best, tw.load(X[b, h, 2 * i + p, cols + q], fill=float("-inf")))
    tw.store(Y[b, h, i, j * 128 : j * 128 + 128], best)
