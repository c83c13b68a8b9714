"""BUG: as y7, by a counter that counts down"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def copy(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4 == 0)
    tw.grid(1)
    s = tw.shared(f32, (2, 128))
    ring = tw.pipeline(2)
    with tw.warps(0):
        left = 3000
        for c in tw.range(tw.cdiv(N, 128)):
            if left > 0:
                slot = ring.acquire()
                tw.tma_load(s[slot], X[c * 128], on=ring.full(slot))
            left = left - 1
    with tw.warps(1):
        for c in tw.range(tw.cdiv(N, 128)):
            slot = ring.wait()
            x = tw.load(s[slot])
            tw.syncwarp()
            ring.release()
            tw.store(Y[c * 128], x)
