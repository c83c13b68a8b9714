# expect: TW1001
# says: no input takes part: it is -inf, with which a maximum starts
"""The branch is taken where nothing is larger."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = max(n, X[m, n])", threads=128)
def largest(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(tw.cdiv(M, 4)) * 4
    top = tw.full(f32, (4,), float("-inf"))
    for c in tw.range(tw.cdiv(N, 64)):
        x = tw.load(X[m : m + 4, c * 64 : c * 64 + 64], fill=float("-inf"), layout=tw.warp_rows(vector=2))
        if tw.any(x <= top[:, None]):  # here
            top = tw.maximum(top, tw.max(x, axis=1))
    tw.store(S[m : m + 4], top)
