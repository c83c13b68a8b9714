# expect: TW1001
# says: line 15 takes a root, a logarithm or a power
# hint: -
"""x / sqrt(x * x) is the sign of x, not 1."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * X[n] / X[n] ** 2 * W[n]")
def unit(X: tw.Tensor(f32, N), W: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1.0)
    tw.store(Y[i], x * tw.rsqrt(x * x) * tw.load(W[i : i + 128], fill=0.0))  # here
