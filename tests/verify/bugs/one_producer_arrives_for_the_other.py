# expect: TW2001 TW2002 TW2005 TW2007
# hint: -
# rebuilds: mbarrier with two arrivals a phase, both of which one fast producer makes
"""Both producers arrive at one barrier for each half, and nothing keeps one from arriving twice before the other has come."""
import tilewright as tw
from tilewright import f32

M = tw.sizes("M")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=384)
def copy(X: tw.Tensor(f32, M, 128), Y: tw.Tensor(f32, M, 128)):
    bm = tw.grid(tw.cdiv(M, 32)) * 32
    s = tw.shared(f32, (2, 32, 64))
    ready = tw.mbarrier(1, arrivals=2)
    with tw.warpgroups(0, 1, name="producer") as w:
        own = tw.named_barrier(1 + w, 128)
        for c in tw.unroll(2):
            x = tw.load(X[bm + w * 16 : bm + w * 16 + 16, c * 64 : c * 64 + 64], fill=0.0)
            tw.store(s[c, w * 16 : (w + 1) * 16, :], x)  # here
            own.sync()
            ready[0].arrive()  # here
    with tw.warpgroups(2, name="consumer"):
        for c in tw.unroll(2):
            ready[0].wait(c)  # here
            tw.store(Y[bm, c * 64], tw.load(s[c]))  # here
