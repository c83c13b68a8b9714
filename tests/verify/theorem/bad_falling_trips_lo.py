"""BUG: no iteration from N = 20 * 32 on"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, 128), Y: tw.Tensor(f32, 128), Z: tw.Tensor(f32, N)):
    s = tw.shared(f32, (128,))
    bar = tw.mbarrier(1, arrivals=1)
    with tw.warpgroups(0):
        done = tw.named_barrier(1, 128)
        for c in tw.range(N // 32, 20):
            tw.store(s, tw.load(X[0:128]))
            done.sync()
            if c == 19:
                bar[0].arrive()
        tw.store(Y[0:128], tw.load(X[0:128]))
    with tw.warpgroups(1):
        bar[0].wait(0)
