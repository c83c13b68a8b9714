# expect: TW1001
# hint: line 15: the loop ends at `(N + 127) // 128` instead of `N // 128`
# rebuilds: ragged K: last partial chunk left out
"""The number of chunks is rounded down: the ragged end of the row is not summed."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n])", threads=128)
def row_sum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    total = tw.zeros(f32, ())
    for c in tw.range(N // 128):
        total = total + tw.sum(tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0), axis=0)
    tw.store(Y[m], total)  # here
