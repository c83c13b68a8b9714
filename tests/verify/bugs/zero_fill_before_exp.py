# expect: TW1001
# hint: line 15: fill=float("-inf") instead of fill=0.0
# rebuilds: softmax of a ragged row: zero padding counts as exp(0)
"""Zeros beyond the row's end become exp(0 - top) in the sum."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = softmax(n, X[m, n])", threads=128)
def softmax(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 128)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:128], fill=0.0)
    top = tw.max(x, axis=1)
    e = tw.exp(x - top[:, None])
    tw.store(Y[m : m + 4, 0:128], e / tw.sum(e, axis=1)[:, None])  # here
