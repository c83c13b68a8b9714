# expect: TW1001
# hint: -
# rebuilds: chunked scan without the carry of the chunk before
"""A cumulative sum in chunks: the second chunk starts from zero instead of the first one's total."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(j in 0:n + 1, X[m, j])", threads=128)
def cumsum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(tw.cdiv(M, 4)) * 4
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[m : m + 4, c * 32 : c * 32 + 32], fill=0.0)
        tw.store(Y[m, c * 32], tw.cumsum(x, axis=1))  # here
