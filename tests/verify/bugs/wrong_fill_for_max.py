# expect: TW1001
# hint: line 16: fill=float("-inf") instead of fill=0.0
# rebuilds: row maximum of negative rows is 0: padding with zeros
"""The tail of the row is filled with 0, which wins over negative numbers."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = max(n, X[m, n])", threads=128)
def row_max(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 128)
    tw.assume(N >= 1)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:128], fill=0.0)
    tw.store(Y[m : m + 4], tw.max(x, axis=1))  # here
