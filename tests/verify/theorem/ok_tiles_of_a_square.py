"""Rows and columns follow one size; blocks have fewer tiles than there are, with loops as long."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    tw.assume(N % 4 == 0)
    s = tw.shared(f32, (4, 16, 32))
    full = tw.mbarrier(4)
    empty = tw.mbarrier(4)
    with tw.warpgroups(0, name="producer"):
        n = 0
        for t in tw.persistent(tw.cdiv(N, 16)):
            for c in tw.range(tw.cdiv(N, 32)):
                slot = n % 4
                empty[slot].wait((n // 4 + 1) % 2)
                full[slot].expect(16 * 32 * 4)
                tw.tma_load(s[slot], X[t * 16, c * 32], on=full[slot])
                n = n + 1
    with tw.warpgroups(1, name="consumer"):
        readers = tw.named_barrier(1, 128)
        n = 0
        for t in tw.persistent(tw.cdiv(N, 16)):
            for c in tw.range(tw.cdiv(N, 32)):
                slot = n % 4
                full[slot].wait(n // 4 % 2)
                x = tw.load(s[slot])
                readers.sync()
                with tw.elected():
                    empty[slot].arrive()
                tw.store(Y[t * 16, c * 32], x * 2.0)
                n = n + 1
