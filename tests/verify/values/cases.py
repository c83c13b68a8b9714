"""Maxima, magnitudes and choices that are the same case by case."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(abs(X[n]) <= 1, 0.5 * X[n] * X[n], abs(X[n]) - 0.5)")
def ok_huber(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * tw.minimum(tw.abs(x), 1.0) * tw.minimum(tw.abs(x), 1.0) + (tw.abs(x) - tw.minimum(tw.abs(x), 1.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(abs(X[n]) <= 1, 0.5 * X[n] * X[n], abs(X[n]) - 0.5)")
def bad_huber(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * tw.minimum(tw.abs(x), 1.0) * tw.minimum(tw.abs(x), 1.0) + (tw.abs(x) - tw.minimum(tw.abs(x), 2.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(abs(X[n]) <= 1, 0.5 * X[n] * X[n], abs(X[n]) - 0.25)")
def bad_huber_edge(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * tw.minimum(tw.abs(x), 1.0) * tw.minimum(tw.abs(x), 1.0) + (tw.abs(x) - tw.minimum(tw.abs(x), 1.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = minimum(maximum(X[n] + 3, 0), 6) / 6 * X[n]")
def ok_hard_swish(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x <= -3.0, 0.0, tw.where(x >= 3.0, x, x * (x + 3.0) / 6.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = minimum(maximum(X[n] + 3, 0), 6) / 6 * X[n]")
def bad_hard_swish(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x <= -2.0, 0.0, tw.where(x >= 3.0, x, x * (x + 3.0) / 6.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = minimum(maximum(X[n] + 3, 0), 6) / 6 * X[n]")
def bad_hard_swish_end(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x <= -3.0, 0.0, tw.where(x >= 4.0, x, x * (x + 3.0) / 6.0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(X[n] < 0, 0, 1)")
def bad_one_point(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x <= 0.0, 0.0, 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(X[n] < Z[n], 0, 1)")
def bad_one_point_of_a_difference(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x <= z, 0.0, 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = maximum(minimum(X[n], Z[n]), 0) + maximum(maximum(X[n], Z[n]), 0)")
def bad_middle_of_two(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.maximum(z, 0.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] + Z[n]")
def ok_sum_of_extremes(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.minimum(x, z))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] + Z[n]")
def bad_sum_of_extremes(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.minimum(x, 2.0 * z))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = abs(X[n] - Z[n])")
def ok_distance(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) - tw.minimum(x, z))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = abs(X[n] - Z[n])")
def bad_distance(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.minimum(x, z) - tw.maximum(x, z))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = sum(n, log(1 + exp(X[m, n])))")
def ok_loss_of_rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    s = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
        s = s + tw.where(tw.arange(128) + c * 128 < N, tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(-tw.abs(x))), 0.0)
    tw.store(Y[m], tw.sum(s, axis=0))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = sum(n, log(1 + exp(X[m, n])))")
def bad_loss_of_rows(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    s = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
        s = s + tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(-tw.abs(x)))
    tw.store(Y[m], tw.sum(s, axis=0))
