"""BUG: groups of more than 512 rows wait for more than is sent"""
import tilewright as tw
from tilewright import f32, i32

P, E = tw.sizes("P E")


@tw.kernel(target="sm_90a", computes="Y[p] = X[p] * W[expert[p]]", threads=64)
def k(X: tw.Tensor(f32, P), W: tw.Tensor(f32, E), expert: tw.Tensor(i32, P), starts: tw.Tensor(i32, E + 1, offsets_of="expert"), Y: tw.Tensor(f32, P)):
    full = tw.mbarrier(1, arrivals=1)
    empty = tw.mbarrier(1, arrivals=1)
    e = tw.grid(E)
    end = starts[e + 1]
    with tw.warps(0):
        i = 0
        for m in tw.range(tw.cdiv(end - starts[e], 32)):
            empty[0].wait((i + 1) % 2)
            tw.syncwarp()
            full[0].arrive()
            i = i + 1
    with tw.warps(1):
        j = 0
        w = tw.load(W[e])
        for m in tw.range(tw.cdiv(end - starts[e], 32)):
            row = starts[e] + m * 32
            tw.store(Y[row : row + 32], tw.load(X[row : row + 32], fill=0.0) * w, limit=(end,))
        for m in tw.range(tw.cdiv(end - starts[e], 32) + (end - starts[e]) // 32 // 16):
            full[0].wait(j % 2)
            tw.syncwarp()
            empty[0].arrive()
            j = j + 1
