"""Each warp reads its rows and arrives for itself."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] - 1.0", threads=160)
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (2, 32, 32))
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2, arrivals=4)
    with tw.warps(4):
        for c in tw.range(tw.cdiv(N, 32)):
            empty[c % 2].wait((c // 2 + 1) % 2)
            full[c % 2].expect(32 * 32 * 4)
            tw.tma_load(s[c % 2], X[bm * 32, c * 32], on=full[c % 2])
    with tw.warps(0, 1, 2, 3) as w:
        for c in tw.range(tw.cdiv(N, 32)):
            full[c % 2].wait(c // 2 % 2)
            x = tw.load(s[c % 2, w * 8 : w * 8 + 8, :])
            tw.syncwarp()
            empty[c % 2].arrive()
            tw.store(Y[bm * 32 + w * 8, c * 32], x - 1.0)
