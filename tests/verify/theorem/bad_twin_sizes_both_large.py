"""BUG: more messages than waits where both M and N have more than three tiles; two loops with both sizes in their counts."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", threads=64, computes="Y[m, n] = X[m, n]")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    full = tw.mbarrier(1, arrivals=1)
    empty = tw.mbarrier(1, arrivals=1)
    i, j = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    with tw.warps(0):
        for c in tw.range(tw.cdiv(M, 32) + tw.cdiv(N, 32)):
            empty[0].wait((c + 1) % 2)
            tw.syncwarp()
            full[0].arrive()
    with tw.warps(1):
        for c in tw.range(tw.cdiv(M, 32) + tw.cdiv(N, 32) + tw.max(tw.min(tw.cdiv(M, 32), tw.cdiv(N, 32)) - 3, 0)):
            full[0].wait(c % 2)
            tw.syncwarp()
            empty[0].arrive()
        tw.store(Y[i * 32, j * 32], tw.load(X[i * 32 : i * 32 + 32, j * 32 : j * 32 + 32], fill=0.0))
