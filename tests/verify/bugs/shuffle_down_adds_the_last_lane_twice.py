# expect: TW1001
# hint: -
# rebuilds: shfl.down at the end of the warp gives a lane its own value
"""The sum with the lane after: the last lane has none, and the instruction gives it its own value."""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + where(n < 31, X[m, n + 1], 0.0)")
def pairs(X: tw.Tensor(f32, M, 32), Y: tw.Tensor(f32, M, 32)):
    i = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    tw.store(Y[i, 0], x + tw.shuffle(x, down=1))  # here
