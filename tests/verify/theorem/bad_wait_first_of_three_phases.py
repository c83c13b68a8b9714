"""BUG: waits for the first of three phases and reads what the third one brings; late, it happens to find all three ended"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n in 0:384] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N >= 384)
    s = tw.shared(f32, (3, 128))
    bar = tw.mbarrier(1)
    with tw.warpgroups(0):
        nb = tw.named_barrier(1, 128)
        for i in tw.unroll(3):
            tw.store(s[i], tw.load(X[i * 128 : i * 128 + 128]))
            nb.sync()
            bar[0].arrive()
    with tw.warpgroups(1):
        x = tw.load(X[0:128])
        for j in tw.unroll(100):
            x = x + 1.0
        for j in tw.unroll(100):
            x = x - 1.0
        bar[0].wait(0)
        for i in tw.unroll(3):
            tw.store(Y[i * 128 : i * 128 + 128], tw.load(s[i]) + x - x)
