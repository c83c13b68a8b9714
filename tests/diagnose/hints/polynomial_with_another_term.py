# expect: TW1001
# hint: -
"""Nothing near it is right: no hint may be given."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] ** 3 - X[m, n]", threads=128)
def cubic(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=0.0)
    tw.store(Y[m, 0:256], tw.sin(x * 3.0) + x * x * x * x)  # here
