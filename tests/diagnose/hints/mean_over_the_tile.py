# expect: TW1001
# hint: / N` instead of
"""The sum is divided by the width of the tile."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = mean(n, X[m, n])", threads=128)
def row_mean(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    tw.store(S[m], tw.sum(tw.load(X[m, 0:256], fill=0.0), axis=0) / 256)  # here
