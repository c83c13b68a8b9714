"""A maximum of magnitudes may start at 0."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = max(n, abs(X[m, n]))", threads=128)
def choice_maximum_from_zero(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N >= 1)
    m = tw.grid(M)
    t = tw.zeros(f32, (256,))
    for c in tw.range(tw.cdiv(N, 256)):
        t = tw.maximum(t, tw.abs(tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)))
    tw.store(Y[m], tw.max(t, axis=0))
