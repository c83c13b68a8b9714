import tilewright as tw
from tilewright import bf16, f16, f32, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] + W[n]", cluster=(2, 1, 1))
def k(X: tw.Tensor(f32, M, N), W: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    tw.assume(M % 2 == 0)
    m = tw.grid(M)
    s = tw.shared(f32, (2, 64))
    ring = tw.pipeline(2)
    with tw.warps(0):
        rank = tw.cluster_rank()
        for c in tw.range(tw.cdiv(N, 64)):
            if m != 1000000:
                tw.syncwarp()
            slot = ring.acquire()
            tw.tma_load(s[slot, rank * 32 : (rank + 1) * 32], W[c * 64 + rank * 32], on=ring.full(slot), multicast=3)
    with tw.warps(1):
        for c in tw.range(tw.cdiv(N, 64)):
            slot = ring.wait()
            w = tw.load(s[slot])
            tw.syncwarp()
            ring.release()
            tw.store(Y[m, c * 64 : c * 64 + 64], tw.load(X[m, c * 64 : c * 64 + 64], fill=0.0) + w)
