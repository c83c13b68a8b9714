"""BUG: one wait too many for each further resident block"""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="S[m] = sum(n, X[m, n])")
def k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N % 4 == 0)
    s = tw.shared(f32, (2, 128))
    ring = tw.pipeline(2)
    with tw.warpgroups(0):
        for m in tw.persistent(M):
            for c in tw.range(tw.cdiv(N, 128)):
                slot = ring.acquire()
                tw.tma_load(s[slot], X[m, c * 128], on=ring.full(slot))
    with tw.warpgroups(1):
        readers = tw.named_barrier(1, 128)
        for m in tw.persistent(M):
            acc = tw.zeros(f32, (128,))
            for c in tw.range(tw.cdiv(N, 128) + tw.num_blocks(0) - 1):
                slot = ring.wait()
                acc = acc + tw.load(s[slot])
                readers.sync()
                ring.release()
            tw.store(S[m], tw.sum(acc, axis=0))
