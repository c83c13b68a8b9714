# expect: TW1001
# hint: line 16: `coord(1) < N` instead of `coord(0) < N`
# rebuilds: softmax mask compares the row index with the row length
"""The mask compares the row's coordinate with the number of columns."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = softmax(n, X[m, n])", threads=128)
def softmax(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 128)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:128], fill=0.0)
    x = tw.where(tw.coord(x, 0) < N, x, float("-inf"))
    top = tw.max(x, axis=1)
    e = tw.exp(x - top[:, None])
    tw.store(Y[m : m + 4, 0:128], e / tw.sum(e, axis=1)[:, None])  # here
