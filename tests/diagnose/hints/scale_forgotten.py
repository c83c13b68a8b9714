# expect: TW1001
# hint: scale
"""The factor is not there."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * scale + B[n]", threads=128)
def affine(X: tw.Tensor(f32, M, N), B: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N), scale: tw.scalar(f32)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=0.0)
    b = tw.load(B[0:256], fill=0.0)
    tw.store(Y[m, 0:256], x + b)  # here
