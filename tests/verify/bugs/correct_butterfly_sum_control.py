# expect: proved
"""The sum over the lanes of a warp by hand, then pairs exchanged: a control."""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n // 2 * 2 + (n + 1) % 2] / sum(k in 0:32, X[m, k])")
def scaled(X: tw.Tensor(f32, M, 32), Y: tw.Tensor(f32, M, 32)):
    i = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    total = x
    for b in tw.unroll(5):
        total = total + tw.shuffle(total, xor=1 << b)
    tw.store(Y[i, 0], tw.shuffle(x, xor=1) / total)
