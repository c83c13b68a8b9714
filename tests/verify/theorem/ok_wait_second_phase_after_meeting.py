"""The first phase is waited for by the other group alone, and both meet after it: then the second one is the only one that is left."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n in 0:256] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N >= 256)
    s = tw.shared(f32, (2, 128))
    bar = tw.mbarrier(1)
    with tw.warpgroups(0):
        nb = tw.named_barrier(1, 128)
        both = tw.named_barrier(3, 256)
        tw.store(s[0], tw.load(X[0:128]))
        nb.sync()
        bar[0].arrive()
        bar[0].wait(0)
        both.sync()
        tw.store(s[1], tw.load(X[128:256]))
        nb.sync()
        bar[0].arrive()
    with tw.warpgroups(1):
        both = tw.named_barrier(3, 256)
        both.sync()
        bar[0].wait(1)
        for i in tw.unroll(2):
            tw.store(Y[i * 128 : i * 128 + 128], tw.load(s[i]))
