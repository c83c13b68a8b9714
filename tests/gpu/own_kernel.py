"""A user's module: ordinary Python beside a kernel."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")
BLOCK = 256


def helper(values):
    return sum(values)


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * 2", threads=256)
def twice(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    tw.store(Y[i : i + BLOCK], tw.load(X[i : i + BLOCK], fill=0.0) * 2.0)
