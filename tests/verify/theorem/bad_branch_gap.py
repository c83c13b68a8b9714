"""A tile that one element leaves ragged is in no branch."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2", threads=128)
def branch_gap(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    if i + 128 <= N:
        tw.store(Y[i : i + 128], tw.load(X[i : i + 128]) * 2.0)
    if i + 128 > N + 1:
        tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * 2.0)
