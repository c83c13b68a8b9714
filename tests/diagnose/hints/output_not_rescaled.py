# expect: TW1001
# hint: multiply `out` by `alpha`
"""The output keeps the scale of the old maximum."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="""
    let top[m] = max(n, X[m, n])
    Y[m] = sum(n, exp(X[m, n] - top[m]) * W[n]) / sum(n, exp(X[m, n] - top[m]))
""", threads=128)
def weighted(X: tw.Tensor(f32, M, N), W: tw.Tensor(f32, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    top = tw.full(f32, (), -1.0e30)
    total = tw.zeros(f32, ())
    out = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=float("-inf"))
        w = tw.load(W[c * 128 : c * 128 + 128], fill=0.0)
        new = tw.maximum(top, tw.max(x, axis=0))
        alpha = tw.exp(top - new)
        e = tw.exp(x - new)
        total = total * alpha + tw.sum(e, axis=0)
        out = out + tw.sum(e * w, axis=0)  # here
        top = new
    tw.store(Y[m], out / total)
