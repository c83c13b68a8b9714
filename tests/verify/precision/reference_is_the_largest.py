# expect: proved
"""Lanes keep maxima of their own; the largest is the reference."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


@tw.kernel(target="sm_80", computes="Y[m] = log(sum(n, exp(X[m, n])))", threads=128)
def reference_is_the_largest(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    top = tw.full(f32, (256,), -3.0e38)
    total = tw.zeros(f32, (256,))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, c * 256 : c * 256 + 256], fill=float("-inf"))
        new_top = tw.maximum(top, x)
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.exp2((x - new_top) * LOG2E)
        top = new_top
    whole = tw.max(top, axis=0)
    tw.store(Y[m], whole + tw.log2(tw.sum(total * tw.exp2((top - whole) * LOG2E), axis=0)) * LN2)
