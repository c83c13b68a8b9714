"""Even rows in one branch, odd ones in another."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def branch_in_a_loop(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    for m in tw.range(M):
        if m % 2 == 0:
            tw.store(Y[m, i : i + 128], tw.load(X[m, i : i + 128], fill=0.0))
        if m % 2 == 1:
            tw.store(Y[m, i : i + 128], tw.load(X[m, i : i + 128], fill=0.0))
