"""Two groups meet at every tile: one at its own, one at those of all blocks."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N == 32)
    with tw.warpgroups(0):
        meeting = tw.named_barrier(1, 256)
        for t in tw.persistent(tw.cdiv(M, 16)):
            meeting.sync()
            tw.store(Y[t * 16, 0], tw.load(X[t * 16 : t * 16 + 16, 0:32], fill=0.0) * 2.0)
    with tw.warpgroups(1):
        meeting = tw.named_barrier(1, 256)
        for t in tw.range(tw.cdiv(M, 16)):
            meeting.sync()
