"""Relative to 1 it is as exact as bf16."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = bf16(sigmoid(X[n]))", threads=128)
def first(X: tw.Tensor(f32, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i], tw.sigmoid(x, approx=True).to(bf16))


@tw.kernel(target="sm_80", computes="Z[n] = bf16(3 * f32(Y[n]))", threads=128)
def second(Y: tw.Tensor(bf16, N), Z: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    y = tw.load(Y[i : i + 128], fill=1.0).to(f32)
    tw.store(Z[i], (3.0 * y).to(bf16))


@tw.program(computes="Z[n] = bf16(3 * f32(bf16(sigmoid(X[n]))))")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(bf16, N)):
    Y = tw.buffer(bf16, N)
    first(X, Y)
    second(Y, Z)
