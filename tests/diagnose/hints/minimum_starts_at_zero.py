# expect: TW1001
# hint: `float("inf")` instead of `0`
"""The running minimum starts at a number that may be smaller than the row."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = min(n, X[m, n])", threads=128)
def row_min(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    low = tw.zeros(f32, ())  # here
    for c in tw.range(tw.cdiv(N, 128)):
        low = tw.minimum(low, tw.min(tw.load(X[m, c * 128 : c * 128 + 128], fill=float("inf")), axis=0))
    tw.store(S[m], low)
