import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")

# A barrier of its own for each slot.
@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N == 32)
    s = tw.shared(f32, (2, 16, 32))
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    with tw.warpgroups(0, name="producer"):
        n = 0
        for t in tw.persistent(tw.cdiv(M, 16)):
            empty[n % 2].wait((n // 2 + 1) % 2)
            full[n % 2].expect(16 * 32 * 4)
            tw.tma_load(s[n % 2], X[t * 16, 0], on=full[n % 2])
            n = n + 1
    with tw.warpgroups(1, name="consumer"):
        readers = tw.named_barrier(1, 128)
        n = 0
        for t in tw.persistent(tw.cdiv(M, 16)):
            full[n % 2].wait(n // 2 % 2)
            x = tw.load(s[n % 2])
            readers.sync()
            with tw.elected():
                empty[n % 2].arrive()
            tw.store(Y[t * 16, 0], x * 2.0)
            n = n + 1
