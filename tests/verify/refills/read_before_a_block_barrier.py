"""One buffer, filled again after a barrier of the block."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] + 1.0", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32))
    full = tw.mbarrier(1)
    for c in tw.range(tw.cdiv(N, 32)):
        full[0].expect(32 * 32 * 4)
        tw.tma_load(s, X[bm * 32, c * 32], on=full[0])
        full[0].wait(c % 2)
        x = tw.load(s)
        tw.sync()
        tw.store(Y[bm * 32, c * 32], x + 1.0)
