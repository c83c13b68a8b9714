"""The branch of the last tile stores half of it."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2", threads=128)
def branch_half(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    if i + 128 <= N:
        tw.store(Y[i : i + 128], tw.load(X[i : i + 128]) * 2.0)
    else:
        tw.store(Y[i : i + 64], tw.load(X[i : i + 64], fill=0.0) * 2.0)
