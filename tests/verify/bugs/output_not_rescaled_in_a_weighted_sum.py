# expect: TW1001
# hint: parts that are relative to different maxima are added: each must be multiplied once by exp(old maximum - new maximum) when the maximum changes
# rebuilds: flash attention: output accumulator not rescaled at a new row maximum
"""Online softmax over chunks: the running sum is rescaled at a new maximum, the running output is not."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, exp(X[m, n]) * V[m, n]) / sum(n, exp(X[m, n]))", threads=128)
def weighted(X: tw.Tensor(f32, M, N), V: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    top = tw.full(f32, (1,), float("-inf"))
    total = tw.zeros(f32, (1,))
    out = tw.zeros(f32, (1,))
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m : m + 1, c * 128 : c * 128 + 128], fill=float("-inf"))
        v = tw.load(V[m : m + 1, c * 128 : c * 128 + 128], fill=0.0)
        new_top = tw.maximum(top, tw.max(x, axis=1))
        p = tw.exp(x - new_top[:, None])
        total = total * tw.exp(top - new_top) + tw.sum(p, axis=1)
        out = out + tw.sum(p * v, axis=1)  # here
        top = new_top
    tw.store(Y[m : m + 1], out / total)  # here
