# expect: TW1001 TW2001
# hint: the limit on `X`: `end` instead of `end + 1`
"""One half reaches into the other."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n in N // 2:N, X[m, n]) - sum(n in 0:N // 2, X[m, n])", threads=128)
def halves(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    end = N // 2
    low = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(end, 128)):
        low = low + tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0, limit=(end + 1,))  # here
    high = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N - end, 128)):
        high = high + tw.load(X[m, end + c * 128 : end + c * 128 + 128], fill=0.0)
    tw.store(S[m], tw.sum(high, axis=0) - tw.sum(low, axis=0))
