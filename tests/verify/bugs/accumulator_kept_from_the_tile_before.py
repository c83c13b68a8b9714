# expect: TW1001
# hint: line 14: `total` keeps what the round before left: set it in every round of the loop of line 15
# rebuilds: persistent kernel whose second tile contains the first: accumulators not cleared
"""A block that works on several tiles clears its running sum once, not for every tile."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n])", threads=128)
def row_sum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    b = tw.grid(tw.cdiv(M, 8))
    total = tw.zeros(f32, (4,))
    for t in tw.range(2):
        row = b * 8 + t * 4
        for c in tw.range(tw.cdiv(N, 128)):
            x = tw.load(X[row : row + 4, c * 128 : c * 128 + 128], fill=0.0)
            total = total + tw.sum(x, axis=1)
        tw.store(Y[row : row + 4], total)  # here
