"""A product of two bf16 parts of each factor is as exact as f32 for sums, not for a comparison in the next launch."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * X[n]", threads=128)
def first(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    high = x.to(bf16)
    low = (x - high.to(f32)).to(bf16)
    tw.store(Y[i], high.to(f32) * high.to(f32) + high.to(f32) * low.to(f32) + low.to(f32) * high.to(f32))


@tw.kernel(target="sm_80", computes="Z[n] = where(Y[n] >= 1, 1, 0)", threads=128)
def second(Y: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Z[i], tw.where(tw.load(Y[i : i + 128], fill=0.0) >= 1.0, 1.0, 0.0))


@tw.program(computes="Z[n] = where(X[n] * X[n] >= 1, 1, 0)")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
    Y = tw.buffer(f32, N)
    first(X, Y)
    second(Y, Z)
