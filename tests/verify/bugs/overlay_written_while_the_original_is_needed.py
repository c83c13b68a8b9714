# expect: TW1001
# hint: -
# rebuilds: shared-memory union: epilogue buffer aliases data that are still needed
"""Two views of the same bytes: the second store destroys what the first put there."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    s = tw.shared(f32, (128,))
    t = tw.overlay(s, f32, (64,))
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
        tw.sync()
        tw.store(s, x)
        tw.sync()
        tw.store(t, tw.zeros(f32, (64,)))  # here
        tw.sync()
        tw.store(Y[m, c * 128 : c * 128 + 128], tw.load(s))  # here
