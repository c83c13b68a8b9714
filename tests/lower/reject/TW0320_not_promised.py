# expect: TW0320 at 16:13
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n] + W[n]", threads=128, dependent_launch=True)
def plus(X: tw.Tensor(f32, N), W: tw.Tensor(f32, N, stable=True), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) + tw.load(W[i : i + 128], fill=0.0))


@tw.program(computes="Y[n] = X[n] + W[n]")
def once(X: tw.Tensor(f32, N), W: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    plus(X, W, Y)
