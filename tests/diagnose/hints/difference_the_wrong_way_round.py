# expect: TW1001
# hint: `x - top` instead of `top - x`
"""A subtraction with its sides exchanged."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] - max(k in 0:N, X[m, k])", threads=128)
def below_top(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=float("-inf"))
    top = tw.max(x, axis=0)
    tw.store(Y[m, 0:256], top - x)  # here
