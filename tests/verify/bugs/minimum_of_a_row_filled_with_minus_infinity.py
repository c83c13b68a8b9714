# expect: TW1002
# hint: -
# rebuilds: NaN in ragged rows only: the padding takes part in the reduction that shifts the row
"""A row is shifted by its smallest element before exp: beyond the row the fill is minus infinity, and so is that minimum."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = softmax(n, X[m, n])", threads=128)
def softmax(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=float("-inf"))
    e = tw.exp(x - tw.min(x, axis=0))
    tw.store(Y[m, 0:256], e / tw.sum(e, axis=0))  # here
