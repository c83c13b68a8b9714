"""BUG: block 40 makes one step less"""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    b = tw.grid(tw.cdiv(N, 128))
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0):
        for i in tw.range(5 if b == 40 else 6):
            empty[i % 2].wait((i // 2 + 1) % 2)
            full[i % 2].arrive()
    with tw.warpgroups(1):
        for i in tw.range(6):
            full[i % 2].wait(i // 2 % 2)
            empty[i % 2].arrive()
    with tw.warpgroups(2):
        i = tw.block(0) * 128
        tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0))
