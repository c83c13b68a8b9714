"""BUG: rare"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

R, P, E, D = tw.sizes("R P E D")

@tw.kernel(target="sm_90a", computes="Y[p] = sum(n in 0:len[p] * 32, X[p, n])")
def sums(X: tw.Tensor(f32, P, N), len: tw.Tensor(i32, P, range=(0, 500)), other: tw.Tensor(i32, P, range=(0, 500)), Y: tw.Tensor(f32, P)):
    tw.assume(N % 4 == 0)
    tw.assume(N >= 16000)
    p = tw.grid(P)
    s = tw.shared(f32, (2, 32))
    ring = tw.pipeline(2)
    with tw.warps(0):
        for c in tw.range(len[p] + (1 if len[p] == 377 else 0)):
            slot = ring.acquire()
            tw.tma_load(s[slot], X[p, c * 32], on=ring.full(slot))
    with tw.warps(1):
        acc = tw.zeros(f32, (32,))
        for c in tw.range(len[p]):
            slot = ring.wait()
            acc = acc + tw.load(s[slot])
            tw.syncwarp()
            ring.release()
        tw.store(Y[p], tw.sum(acc, axis=0))
