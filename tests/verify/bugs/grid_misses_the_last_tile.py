# expect: TW1002
# hint: line 12: the grid along axis 0: `(N + 127) // 128` instead of `N // 128`
# rebuilds: launch grid by floor division: tail tile never computed
"""The grid is rounded down: the last elements are never written."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def double(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(N // 128, M)
    x = tw.load(X[m, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(Y[m, bn * 128 : bn * 128 + 128], x * 2.0)  # here
