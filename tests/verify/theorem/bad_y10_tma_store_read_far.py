"""BUG: waits with read for one fewer after 500 tiles"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(f32, (2, 64, 32))
    slow = 0
    for c in tw.range(tw.cdiv(N, 32)):
        x = tw.load(X[bm * 64 : bm * 64 + 64, c * 32 : c * 32 + 32], fill=0.0)
        with tw.warps(0):
            if slow < 30:
                tw.tma_store_wait(1, read=True)
            else:
                tw.tma_store_wait(2, read=True)
        tw.sync()
        if c % 50 == 49:
            slow = slow + 1
        tw.store(s[c % 2], x)
        tw.fence_async()
        tw.sync()
        with tw.warps(0):
            tw.tma_store(Y[bm * 64, c * 32], s[c % 2])
            tw.tma_store_commit()
    with tw.warps(0):
        tw.tma_store_wait(0)
