# expect: TW1001
# hint: 0.001
"""Another constant than `computes` has."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="""
    let square[m] = mean(n, X[m, n] ** 2)
    Y[m, n] = X[m, n] * rsqrt(square[m] + 0.001)
""", threads=128)
def rms(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=0.0)
    scale = tw.rsqrt(tw.sum(x * x, axis=0) / N + 0.1)  # here
    tw.store(Y[m, 0:256], x * scale)
