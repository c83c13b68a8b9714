"""The next tile of a persistent loop fills the buffer again."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 4.0", threads=128)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    tw.assume(N <= 64)
    s = tw.shared(f32, (16, 64))
    full = tw.mbarrier(1)
    count = 0
    for t in tw.persistent(tw.cdiv(M, 16)):
        full[0].expect(16 * 64 * 4)
        tw.tma_load(s, X[t * 16, 0], on=full[0])
        full[0].wait(count % 2)
        count = count + 1
        x = tw.load(s)
        tw.sync()
        tw.store(Y[t * 16, 0], x * 4.0)
