"""Ordinary reads of a slot, a named barrier, an elected arrival: the kernel that an H200 got wrong without the fence."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(f32, (2, 64, 64), swizzle=32)
    ring = tw.pipeline(2, consumers=1)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            slot = ring.acquire()
            tw.tma_load(s[slot], X[bm * 64, c * 64], on=ring.full(slot))
    with tw.warpgroups(1, name="consumer"):
        met = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            slot = ring.wait()
            x = tw.load(s[slot])
            met.sync()
            ring.release()
            tw.store(Y[bm * 64, c * 64], x * 2.0)
