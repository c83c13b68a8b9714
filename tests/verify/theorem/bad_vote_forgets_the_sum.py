import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = logsumexp(n, X[m, n])", threads=64)
def bad_vote_forgets_the_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N >= 1)
    m = tw.grid(tw.cdiv(M, 2)) * 2
    top = tw.full(f32, (2,), -1.0e30)
    total = tw.zeros(f32, (2,))
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[m : m + 2, c * 32 : c * 32 + 32], fill=float("-inf"), layout=tw.warp_rows(vector=1))
        if tw.any(x >= top[:, None]):
            top = tw.maximum(top, tw.max(x, axis=1))
        total = total + tw.sum(tw.exp(x - top[:, None]), axis=1)
    tw.store(S[m : m + 2], top + tw.log(total))
