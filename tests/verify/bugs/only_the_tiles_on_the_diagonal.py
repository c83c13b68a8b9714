# expect: TW1002
# hint: -
# rebuilds: persistent loop: one tile coordinate used for rows and columns
"""One coordinate of a persistent loop stands for rows and columns: the tiles off the diagonal are never written."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def diagonal(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    for t in tw.persistent(tw.cdiv(N, 32)):
        x = tw.load(X[t * 32 : t * 32 + 32, t * 32 : t * 32 + 32], fill=0.0)
        tw.store(Y[t * 32, t * 32], x * 2.0)  # here
