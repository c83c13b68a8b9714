# expect: TW1001
# hint: -
"""Rows are asked for, columns are summed."""
import tilewright as tw
from tilewright import bf16, f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="S[b, i] = sum(j, X[b, i, j])", threads=128)
def sums(X: tw.Tensor(f32, M, 32, 32), S: tw.Tensor(f32, M, 32)):
    b = tw.grid(M)
    x = tw.load(X[b, 0:32, 0:32])
    tw.store(S[b, 0:32], tw.sum(x, axis=0))  # here
