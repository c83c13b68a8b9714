# expect: proved
"""With its maximum subtracted."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = exp(X[m, n]) / sum(j, exp(X[m, j]))", threads=128)
def softmax(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=float("-inf"))
    e = tw.exp(x - tw.max(x, axis=0))
    tw.store(Y[m, 0:1024], e / tw.sum(e, axis=0))
