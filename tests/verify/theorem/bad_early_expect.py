import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")

# The expectation of the next phase may be counted in this one, whose copy is under way.
@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n] * 2.0")
def k(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N == 32)
    s = tw.shared(f32, (1, 16, 32))
    full = tw.mbarrier(1)
    empty = tw.mbarrier(1)
    with tw.warpgroups(0, name="producer"):
        n = 0
        for t in tw.range(tw.cdiv(M, 16)):
            full[0].expect(16 * 32 * 4)
            empty[0].wait((n + 1) % 2)
            tw.tma_load(s[0], X[t * 16, 0], on=full[0])
            n = n + 1
    with tw.warpgroups(1, name="consumer"):
        readers = tw.named_barrier(1, 128)
        n = 0
        for t in tw.range(tw.cdiv(M, 16)):
            full[0].wait(n % 2)
            x = tw.load(s[0])
            readers.sync()
            with tw.elected():
                empty[0].arrive()
            tw.store(Y[t * 16, 0], x * 2.0)
            n = n + 1
