# expect: TW2001
# hint: add tw.named_barrier(1, 32).sync() before line 19
# rebuilds: mbarrier wait taken for __syncwarp
"""A warp writes a tile, waits on another role's mbarrier and reads the tile across lanes: that wait does not order its lanes."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[n, m] = X[m, n]")
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    go = tw.mbarrier(1)
    with tw.warps(0):
        tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))  # here
        go[0].wait(0)
        tw.store(Y[bn * 32, bm * 32], tw.load(s.T))  # here
    with tw.warps(1):
        go[0].arrive()
