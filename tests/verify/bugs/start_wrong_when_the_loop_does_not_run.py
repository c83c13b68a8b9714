# expect: TW1001
# hint: line 17: `total * 1` instead of `total * 0`
# rebuilds: result wrong for an empty loop: start value only right when the loop runs
"""The sum starts from 0 instead of the first column exactly when there is only one column, and then the loop does not run."""
import tilewright as tw
from tilewright import f32

M, K = tw.sizes("M K")


@tw.kernel(target="sm_80", threads=128, computes="S[m] = sum(k, X[m, k])")
def row_sum(X: tw.Tensor(f32, M, K), S: tw.Tensor(f32, M)):
    tw.assume(K >= 1)
    b = tw.grid(tw.cdiv(M, 128))
    total = tw.load(X[b * 128 : b * 128 + 128, 0], fill=0.0)
    if K < 2:
        total = total * 0.0
    for k in tw.range(1, K):
        total = total + tw.load(X[b * 128 : b * 128 + 128, k], fill=0.0)
    tw.store(S[b * 128 : b * 128 + 128], total)  # here
