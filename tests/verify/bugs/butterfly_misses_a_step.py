# expect: TW1001
# hint: -
# rebuilds: a shuffle reduction that stops at half a warp
"""A sum over the lanes with four of the five butterflies: each half of the warp has its own."""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] / sum(k in 0:32, X[m, k])")
def scaled(X: tw.Tensor(f32, M, 32), Y: tw.Tensor(f32, M, 32)):
    i = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    total = x
    for b in tw.unroll(4):
        total = total + tw.shuffle(total, xor=1 << b)
    tw.store(Y[i, 0], x / total)  # here
