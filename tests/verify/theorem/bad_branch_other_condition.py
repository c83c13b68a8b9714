"""The two conditions are of different elements."""
import tilewright as tw
from tilewright import f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def branch_other_condition(X: tw.Tensor(f32, N), g: tw.Tensor(i32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(N)
    if g[i] > 0:
        tw.store(Y[i], tw.load(X[i]))
    if g[0] <= 0:
        tw.store(Y[i], tw.load(X[i]))
