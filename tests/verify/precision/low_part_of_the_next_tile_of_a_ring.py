# expect: not proved: bf16 loses
"""High parts of one tile and low parts of the next: a ring of one slot that is waited for twice."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="Y[m, n] = sum(j in 0:K, X[2 * j, n])", threads=256)
def low_part_of_the_next_tile_of_a_ring(X: tw.Tensor(f32, M, 128), Y: tw.Tensor(f32, 1, 128)):
    tw.assume(M == 2 * K)
    g = tw.grid(1)
    high = tw.shared(bf16, (128,))
    low = tw.shared(bf16, (128,))
    ring = tw.pipeline(1)
    with tw.warpgroups(0):
        for i in tw.range(2 * K):
            slot = ring.acquire()
            x = tw.load(X[i, 0:128])
            h = x.to(bf16)
            tw.store(high, h)
            tw.store(low, (x - h.to(f32)).to(bf16))
            ring.commit(slot)
    with tw.warpgroups(1):
        readers = tw.named_barrier(1, 128)
        acc = tw.zeros(f32, (128,))
        for j in tw.range(K):
            a = ring.wait()
            h = tw.load(high)
            readers.sync()
            ring.release()
            b = ring.wait()
            l = tw.load(low)
            readers.sync()
            ring.release()
            acc = acc + h.to(f32) + l.to(f32)
        tw.store(Y[0, 0:128], acc)
