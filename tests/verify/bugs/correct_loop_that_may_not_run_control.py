# expect: proved
"""The first column before the loop, the others in it: right also where the loop does not run."""
import tilewright as tw
from tilewright import f32

M, K = tw.sizes("M K")


@tw.kernel(target="sm_80", threads=128, computes="S[m] = sum(k, X[m, k])")
def row_sum(X: tw.Tensor(f32, M, K), S: tw.Tensor(f32, M)):
    tw.assume(K >= 1)
    b = tw.grid(tw.cdiv(M, 128))
    total = tw.load(X[b * 128 : b * 128 + 128, 0], fill=0.0)
    for k in tw.range(1, K):
        total = total + tw.load(X[b * 128 : b * 128 + 128, k], fill=0.0)
    tw.store(S[b * 128 : b * 128 + 128], total)
