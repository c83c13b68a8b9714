# expect: TW0321 at 23:14
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def copy(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0))

@tw.kernel(target="sm_80", computes="Y[n] = where(n < N - 1, X[n + 1], 0.0)", threads=128)
def shift(Y: tw.Tensor(f32, N), X: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(X[i + 1 : i + 129], fill=0.0))


@tw.program(computes="Y[n] = where(n < N - 1, X[n + 1], 0.0)")
def shifted(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    copy(X, T)
    shift(T, T)
    copy(T, Y)
