# expect: TW1001
# hint: line 16: `sum / N` instead of `sum / 128`
# rebuilds: mean over a padded tile divides by the padded length
"""The mean divides by the tile's width, not by the row's."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = mean(n, X[m, n])", threads=128)
def row_mean(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 128)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:128], fill=0.0)
    tw.store(Y[m : m + 4], tw.sum(x, axis=1) / 128)  # here
