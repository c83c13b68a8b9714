# expect: TW1001
# hint: fill=float("-inf") instead of fill=0.0
"""Zeros beyond the edge win over negative rows."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = max(n, X[m, n])", threads=128)
def row_max(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    tw.store(S[m], tw.max(tw.load(X[m, 0:256], fill=0.0), axis=0))  # here
