# expect: TW1001
# hint: `coord(1) <= N - 1` instead of `coord(1) < N - 1`
"""The mask leaves the last element of the row out."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, exp(X[m, n]))", threads=128)
def exp_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 512)
    m = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[m : m + 4, 0:512], fill=0.0)
    e = tw.where(tw.coord(x, 1) < N - 1, tw.exp(x), 0.0)  # here
    tw.store(S[m : m + 4], tw.sum(e, axis=1))
