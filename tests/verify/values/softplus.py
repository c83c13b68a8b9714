"""Logarithms of sums of exponentials relative to the larger one."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def ok_softplus(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = maximum(X[n], 0) + log(1 + exp(-abs(X[n])))")
def ok_softplus_turned(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.log(1.0 + tw.exp(x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def ok_softplus_by_choice(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x > 0.0, x + tw.log(1.0 + tw.exp(-x)), tw.log(1.0 + tw.exp(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def bad_softplus_of_one(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 1.0) + tw.log(1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def bad_softplus_rising(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def bad_softplus_without_magnitude(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(-x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def bad_softplus_of_minimum(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.minimum(x, 0.0) + tw.log(1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(1 + exp(X[n]))")
def bad_softplus_by_choice(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x > 0.0, x + tw.log(1.0 + tw.exp(-x)), tw.log(1.0 + tw.exp(-x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(X[n] == 0, 0, log(1 + exp(X[n])))")
def bad_softplus_at_zero(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + tw.log(1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = where(X[n] == 2, 1, maximum(X[n], 2))")
def bad_softplus_at_two(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 2.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(exp(X[n]) + exp(Z[n]))")
def ok_logaddexp(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.log(tw.exp(x - tw.maximum(x, z)) + tw.exp(z - tw.maximum(x, z))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(exp(X[n]) + exp(Z[n]))")
def ok_logaddexp_by_magnitude(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.log(1.0 + tw.exp(-tw.abs(x - z))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(exp(X[n]) + exp(Z[n]))")
def bad_logaddexp_of_one(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x + tw.log(1.0 + tw.exp(-tw.abs(x - z))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(exp(X[n]) + exp(Z[n]))")
def bad_logaddexp_of_sum(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, z) + tw.log(1.0 + tw.exp(-tw.abs(x + z))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = log(exp(X[n]) + exp(Z[n]))")
def bad_logaddexp_of_another_maximum(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + tw.log(tw.exp(x - tw.maximum(x, z)) + tw.exp(z - tw.maximum(x, z))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = -(Z[n] * log(sigmoid(X[n])) + (1 - Z[n]) * log(1 - sigmoid(X[n])))")
def ok_cross_entropy_of_bits(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) - x * z + tw.log(1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = -(Z[n] * log(sigmoid(X[n])) + (1 - Z[n]) * log(1 - sigmoid(X[n])))")
def bad_cross_entropy_of_bits(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.maximum(x, 0.0) + x * z + tw.log(1.0 + tw.exp(-tw.abs(x))))
