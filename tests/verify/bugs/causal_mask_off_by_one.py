# expect: TW1001
# hint: line 16: `coord(0) <= block.x` instead of `coord(0) < block.x`
# rebuilds: causal mask excludes the diagonal
"""The mask leaves out the diagonal."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(j in 0:n+1, X[m, j])", threads=128)
def prefix(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 128)
    bn, m = tw.grid(N, M)
    x = tw.load(X[m, 0:128], fill=0.0)
    kept = tw.where(tw.coord(x, 0) < bn, x, 0.0)
    tw.store(Y[m, bn], tw.sum(kept, axis=0))  # here
