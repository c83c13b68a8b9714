"""BUG: block 50 fills the slots in the other order: tiles are exchanged"""
import tilewright as tw
from tilewright import bf16, f16, f32, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * scale")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), scale: tw.scalar(f32)):
    b = tw.grid(M)
    s = tw.shared(f32, (2, 128))
    ring = tw.pipeline(2)
    with tw.warpgroups(0):
        for i in tw.range(tw.cdiv(N, 128)):
            slot = ring.acquire()
            if b == 50:
                slot = 1 - slot
            tw.store(s[slot], tw.load(X[b, i * 128 : i * 128 + 128], fill=0.0) * scale)
            ring.commit(slot)
    with tw.warpgroups(1):
        readers = tw.named_barrier(1, 128)
        for i in tw.range(tw.cdiv(N, 128)):
            slot = ring.wait()
            x = tw.load(s[slot])
            readers.sync()
            ring.release()
            tw.store(Y[b, i * 128 : i * 128 + 128], x)
