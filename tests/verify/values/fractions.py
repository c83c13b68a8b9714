"""Sigmoids, hyperbolic tangents and other fractions of exponentials in several forms."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def ok_sigmoid_by_tanh(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * tw.tanh(0.5 * x) + 0.5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def ok_sigmoid_by_exp(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.exp(x) / (1.0 + tw.exp(x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def ok_sigmoid_of_magnitude(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x >= 0.0, 1.0, tw.exp(-tw.abs(x))) / (1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] * sigmoid(X[n])")
def ok_silu_by_tanh(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * x * tw.tanh(0.5 * x) + 0.5 * x)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = 1 - sigmoid(X[n])")
def ok_one_less_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.sigmoid(-x))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def bad_sigmoid_by_tanh(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 * tw.tanh(x) + 0.5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def bad_sigmoid_by_tanh_less(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 0.5 - 0.5 * tw.tanh(0.5 * x))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def bad_sigmoid_by_exp(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.exp(-x) / (1.0 + tw.exp(x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = sigmoid(X[n])")
def bad_sigmoid_of_magnitude(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.where(x >= 0.0, 1.0, tw.exp(-x)) / (1.0 + tw.exp(-tw.abs(x))))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = 1 - sigmoid(X[n])")
def bad_one_less_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.sigmoid(x))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def ok_tanh_by_exp(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 1.0 - 2.0 / (tw.exp(2.0 * x) + 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def ok_tanh_by_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 2.0 * tw.sigmoid(2.0 * x) - 1.0)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def ok_tanh_by_two(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], (tw.exp(x) - tw.exp(-x)) / (tw.exp(x) + tw.exp(-x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def bad_tanh_by_exp(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 1.0 - 2.0 / (tw.exp(x) + 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def bad_tanh_by_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 2.0 * tw.sigmoid(x) - 1.0)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = tanh(X[n])")
def bad_tanh_by_two(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], (tw.exp(x) + tw.exp(-x)) / (tw.exp(x) - tw.exp(-x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = 0.5 * X[n] * (1 + tanh(0.7978845608028654 * (X[n] + 0.044715 * X[n] * X[n] * X[n])))")
def ok_gelu_by_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x * tw.sigmoid(2.0 * 0.7978845608028654 * (x + 0.044715 * x * x * x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = 0.5 * X[n] * (1 + tanh(0.7978845608028654 * (X[n] + 0.044715 * X[n] * X[n] * X[n])))")
def bad_gelu_by_sigmoid(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x * tw.sigmoid(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] * tanh(log(1 + exp(X[n])))")
def ok_mish(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x * ((1.0 + tw.exp(x)) * (1.0 + tw.exp(x)) - 1.0) / ((1.0 + tw.exp(x)) * (1.0 + tw.exp(x)) + 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] * tanh(log(1 + exp(X[n])))")
def bad_mish(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], x * ((1.0 + tw.exp(x)) * (1.0 + tw.exp(x)) + 1.0) / ((1.0 + tw.exp(x)) * (1.0 + tw.exp(x)) - 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = (exp(X[n]) + 1) * Z[n] / (exp(X[n]) + 1)")
def ok_quotient_by_itself(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], z)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = Z[n]")
def bad_quotient_by_what_may_be_zero(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], (x * z) / x)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = Z[n]")
def bad_quotient_by_a_sum_that_may_be_zero(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], ((x - 1.0) * z) / (x - 1.0))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = 1 / X[n] + 1 / Z[n]")
def bad_quotients_over_one(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 2.0 / (x + z))
