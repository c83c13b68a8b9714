# expect: TW1002
# hint: line 16: `x * 2` instead of `x * 2 + y`
# rebuilds: beta * C with an uninitialised C
"""The result is accumulated into memory that nobody has set."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def double(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 128), M)
    x = tw.load(X[m, bn * 128 : bn * 128 + 128], fill=0.0)
    y = tw.load(Y[m, bn * 128 : bn * 128 + 128], fill=0.0)  # here
    tw.store(Y[m, bn * 128 : bn * 128 + 128], x * 2.0 + y)  # here
