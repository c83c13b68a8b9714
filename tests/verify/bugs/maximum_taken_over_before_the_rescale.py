# expect: TW1001
# hint: `top` instead of `new`
# rebuilds: attention: running maximum updated before the rescale factor
"""The old maximum is gone when the factor is computed, so that the factor is 1."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, h] = sum(n, softmax(n, X[m, n]) * V[n, h])", threads=128)
def attend(X: tw.Tensor(f32, M, N), V: tw.Tensor(f32, N, 32), Y: tw.Tensor(f32, M, 32)):
    tw.assume(N >= 1)
    m = tw.grid(M)
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(f32, ())
    out = tw.zeros(f32, (32,))
    for c in tw.range(tw.cdiv(N, 64)):
        x = tw.load(X[m, c * 64 : c * 64 + 64], fill=float("-inf"))
        v = tw.load(V[c * 64 : c * 64 + 64, 0:32], fill=0.0)
        new = tw.maximum(top, tw.max(x, axis=0))
        top = new
        p = tw.exp(x - new)
        scale = tw.exp(top - new)
        total = total * scale + tw.sum(p, axis=0)
        out = out * scale + tw.sum(p[:, None] * v, axis=0)
        top = new
    tw.store(Y[m, 0:32], out / total)  # here
