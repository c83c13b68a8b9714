# expect: TW2005
# hint: `c % 2` instead of `(c + 1) % 2`
# rebuilds: double buffer: reads the other slot in the first iteration
"""The first iteration reads the slot that only the second one fills."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    s = tw.shared(f32, (2, 128))
    for c in tw.range(tw.cdiv(N, 128)):
        tw.sync()
        tw.store(s[c % 2], tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0))
        tw.sync()
        tw.store(Y[m, c * 128 : c * 128 + 128], tw.load(s[(c + 1) % 2]))  # here
